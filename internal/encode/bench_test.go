package encode_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// benchBlock is 256 rows of a key and 512 plain bytes: the default load, in a piece that fits the caches.
func benchBlock(f batch.Format) *rows.Block {
	payload := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: 512, Plain: true}
	if textOnly(f) {
		payload.Type = rows.Text
	}
	b := rows.NewBlock(benchSchema(payload))
	b.Reset(256)
	for i := range b.Rows {
		b.Columns[0].Ints[i] = 1_000_000_000 + int64(i)
		b.Columns[1].Data = append(b.Columns[1].Data, bytes.Repeat([]byte{'a' + byte(i%26)}, 512)...)
		b.Columns[1].Ends = append(b.Columns[1].Ends, uint32(len(b.Columns[1].Data)))
	}
	return b
}

func benchSchema(payload rows.Column) rows.Schema {
	return rows.Schema{
		Dataset: "bench",
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, payload},
		Number:  []rows.Term{{Column: 0, Times: 1}},
	}
}

func benchEncoder(b *testing.B, f batch.Format, block *rows.Block, plain bool) encode.Encoder {
	return newEncoder(b, f, benchSchema(rows.Column{
		Name: "payload", Type: block.Columns[1].Type, MaxBytes: 512, Plain: plain,
	}), 10, 0)
}

func BenchmarkEncode(b *testing.B) {
	for _, f := range encode.Formats() {
		for _, plain := range []bool{true, false} {
			if f == batch.Parquet || f == batch.DorisCSV && !plain {
				continue
			}
			b.Run(fmt.Sprintf("%s/plain=%t", f, plain), func(b *testing.B) {
				block := benchBlock(f)
				benchmarkEncode(b, benchEncoder(b, f, block, plain), block, 1)
			})
		}
	}
}

// benchmarkEncode makes buffers of the block's rows, over and over.
func benchmarkEncode(b *testing.B, e encode.Encoder, block *rows.Block, blocks int) {
	at := encode.Offsets{
		Starts: make([]uint32, 0, blocks*block.Rows),
		Fields: make([]uint32, 0, blocks*block.Rows*len(block.Columns)),
	}
	buf := make([]byte, 0, maxBytes(e, blocks*block.Rows))
	b.ReportAllocs()
	for b.Loop() {
		at.Reset()
		w := e
		if p, ok := e.(encode.PerBatch); ok {
			w = p.ForBatch(blocks * block.Rows)
		}
		buf = w.AppendHead(buf[:0])
		for range blocks {
			buf = w.AppendRows(buf, block, &at)
		}
		buf = w.AppendTail(buf)
	}
	b.SetBytes(int64(len(buf)))
	reportPerRow(b, blocks*block.Rows)
}

// forEachDataset runs f with the first piece of each dataset that the format carries, as the feed makes it: documents of
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

// BenchmarkEncodeDatasets makes batches of 8 MiB of column data.
func BenchmarkEncodeDatasets(b *testing.B) {
	forEachDataset(b, encode.Formats(), func(b *testing.B, e encode.Encoder, block *rows.Block) {
		benchmarkEncode(b, e, block, 64)
	})
}

func BenchmarkStampDatasets(b *testing.B) {
	forEachDataset(b, stampable(), func(b *testing.B, e encode.Encoder, block *rows.Block) {
		buf, at := whole(e, block)
		b.SetBytes(int64(len(buf)))
		b.ReportAllocs()
		for b.Loop() {
			e.(encode.Stamper).Stamp(buf, at, 0, block)
		}
		reportPerRow(b, block.Rows)
	})
}

func BenchmarkStamp(b *testing.B) {
	for _, f := range stampable() {
		b.Run(string(f), func(b *testing.B) {
			block := benchBlock(f)
			e := benchEncoder(b, f, block, true)
			buf, at := whole(e, block)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				e.(encode.Stamper).Stamp(buf, at, 0, block)
			}
			reportPerRow(b, block.Rows)
		})
	}
}

func reportPerRow(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}
