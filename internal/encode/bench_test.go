package encode_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// forEachDataset runs f with the first piece of each dataset that the format carries, as the ring makes it: documents of
// text, since not all formats carry bytes.
func forEachDataset(b *testing.B, formats []batch.Format, f func(b *testing.B, e encode.Encoder, block *rows.Block)) {
	for _, name := range dataset.Names() {
		o := dataset.Options{}
		if name == "documents" {
			o.PayloadKind = dataset.Text
		}
		d, err := dataset.New(name, o)
		require.NoError(b, err)
		block := rows.NewBlock(d.Schema())
		d.Fill(block, 0, int(min(4096, 128<<10/d.Schema().MaxRowBytes())))
		d.Derive(block, 1_000_000)
		for _, format := range formats {
			if encode.Carries(format, d.Schema()) != nil {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", name, format), func(b *testing.B) {
				f(b, newEncoder(b, format, d.Schema(), encode.Digits(block)...), block)
			})
		}
	}
}

// BenchmarkEncode makes batches of 8 MiB of column data.
func BenchmarkEncode(b *testing.B) {
	forEachDataset(b, uncompressed(), func(b *testing.B, e encode.Encoder, block *rows.Block) {
		blocks := slices.Repeat([]*rows.Block{block}, 64)
		n := rowsIn(blocks)
		at := encode.Offsets{Fields: make([]uint32, 0, n*len(block.Columns))}
		buf := make([]byte, 0, maxBytes(e, n))
		b.ReportAllocs()
		for b.Loop() {
			at.Reset()
			buf = appendAll(buf[:0], e, &at, blocks)
		}
		b.SetBytes(int64(len(buf)))
		reportPerRow(b, n)
	})
}

func BenchmarkStamp(b *testing.B) {
	forEachDataset(b, uncompressed(), func(b *testing.B, e encode.Encoder, block *rows.Block) {
		buf, at := whole(e, block)
		b.SetBytes(int64(len(buf)))
		b.ReportAllocs()
		for b.Loop() {
			e.(encode.Stamper).Stamp(buf, at, 0, block)
		}
		reportPerRow(b, block.Rows)
	})
}

func reportPerRow(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}
