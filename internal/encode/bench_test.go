package encode_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// benchBlock is 256 rows of a key and 512 plain bytes: the default load, in a piece that fits the caches.
func benchBlock(f batch.Format) *rows.Block {
	payload := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: 512, Plain: true}
	if f == batch.CSV {
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
			b.Run(fmt.Sprintf("%s/plain=%t", f, plain), func(b *testing.B) {
				block := benchBlock(f)
				e := benchEncoder(b, f, block, plain)
				buf, at := whole(e, block)
				b.SetBytes(int64(len(buf)))
				b.ReportAllocs()
				for b.Loop() {
					at.Reset()
					buf = e.AppendTail(e.AppendRows(e.AppendHead(buf[:0]), block, at))
				}
				reportPerRow(b, block.Rows)
			})
		}
	}
}

func BenchmarkStamp(b *testing.B) {
	for _, f := range encode.Formats() {
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
