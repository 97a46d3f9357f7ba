package encode_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// A compressed batch is one stream of the bytes that the plain format has, also where nothing shrinks and the bound of a
// buffer is needed.
func TestCompressed(t *testing.T) {
	for _, f := range encode.Formats() {
		plain, how := f.Compression()
		if how == "" {
			continue
		}
		s := recordsSchema(plain, 1000)
		random := rand.NewChaCha8([32]byte{})
		var records []record
		for i := range 3000 {
			value := make([]byte, 1000)
			_, _ = random.Read(value)
			for n := range value {
				value[n] = value[n]&0x3F + '0' // of what no format escapes, and no dictionary finds twice
			}
			records = append(records, record{id: int64(i), n: -int64(i), words: string(value)})
		}
		e := newEncoder(t, f, s)
		require.Equal(t, f, e.Format())
		want, _ := whole(newEncoder(t, plain, s), blockOf(s, records...))
		var first []byte
		for range 2 { // the second takes the first one's compressor
			got, at := whole(e, blockOf(s, records[:1]...), blockOf(s), blockOf(s, records[1:]...))
			require.Zero(t, *at, "nothing can be stamped")
			require.Equal(t, want, decompressed(t, how, got), "%s", f)
			if first == nil {
				first = bytes.Clone(got)
			}
			require.Equal(t, first, got, "an object that is put again has the same bytes")
		}
		empty, _ := whole(e, blockOf(s))
		require.Empty(t, decompressed(t, how, empty))
	}
}

func decompressed(t *testing.T, how string, text []byte) []byte {
	var r io.Reader
	var err error
	if how == batch.Gzip {
		r, err = gzip.NewReader(bytes.NewReader(text))
	} else {
		r, err = zstd.NewReader(bytes.NewReader(text))
	}
	require.NoError(t, err)
	all, err := io.ReadAll(r)
	require.NoError(t, err)
	return all
}
