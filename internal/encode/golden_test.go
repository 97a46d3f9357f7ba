package encode_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/rows"
)

// go test ./internal/encode -run EveryDataset -update

// TestBytesOfEveryDataset holds the bytes of every dataset in every format: a change of either changes what a resumed
// run sends and what its proof expects.
func TestBytesOfEveryDataset(t *testing.T) {
	const first, n = 1_000_000_007, 300
	var text strings.Builder
	for _, name := range append(dataset.Names(), "documents of text") {
		o := dataset.Options{Seed: 7}
		set, kind, _ := strings.Cut(name, " of ")
		o.PayloadKind = dataset.Kind(kind)
		d, err := dataset.New(set, o)
		require.NoError(t, err)
		b, last := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
		d.Fill(b, first, n)
		d.Derive(b, first)
		dataset.Row(last, d, 0, first+n-1, 0)
		for _, f := range uncompressed() {
			e, err := encode.New(f, d.Schema(), encode.Options{Digits: encode.Digits(last)})
			if err != nil {
				fmt.Fprintf(&text, "%s as %s: %v\n", name, f, err)
				continue
			}
			buf, _ := whole(e, b)
			fmt.Fprintf(&text, "%s as %s: %d bytes, sha256 %x\n", name, f, len(buf), sha256.Sum256(buf))
		}
	}
	golden.Equal(t, "datasets.txt", text.String())
}
