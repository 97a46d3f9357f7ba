package encode_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Vectors and NULLs in every format; numbers beyond what datasets draw, too.
func TestVectors(t *testing.T) {
	s := rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "id", Type: rows.Int64, Derived: true}, {Name: "v", Type: rows.Float32s, MaxBytes: 12, Nullable: true},
	}}
	value := []byte("\x00\x00\x80\x38" + "\x00\x20\x00\xBF" + "\xFF\xFF\x7F\x7F")
	const text = "[0.00006103515625,-0.50048828125,3.4028234663852886e+38]"
	for f, want := range map[batch.Format]string{
		batch.TSV: "1\t" + text + "\n2\t\\N\n", batch.PGText: "1\t" + text + "\n2\t\\N\n",
		batch.CSV: `1,"` + text + `"` + "\n2,\\N\n", batch.DorisCSV: "1\x01" + text + "\x022\x01\\N\x02",
		batch.NDJSON: `{"id":1,"v":` + text + "}\n" + `{"id":2,"v":null}` + "\n",
		batch.Values: "(1,'" + text + "'),(2,NULL)", batch.PGValues: "(1,'" + text + "'),(2,NULL)",
		batch.PGBinary: "PGCOPY\n\xFF\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x00\x02\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00\x10\x00\x03\x00\x00\x38\x80\x00\x00\xBF\x00\x20\x00\x7F\x7F\xFF\xFF" +
			"\x00\x02\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x02" + "\xFF\xFF\xFF\xFF" + "\xFF\xFF",
	} {
		buf, _ := whole(newEncoder(t, f, s, 1, 0), backendtest.Block(s, [][]any{{int64(1), value}, {int64(2), nil}}))
		assert.Equal(t, want, string(buf), "%s", f)
		assert.Panics(t, func() { whole(newEncoder(t, f, s), backendtest.Block(s, [][]any{{int64(1), value[:8]}})) }, "%s", f)
	}
	assert.ErrorContains(t, encode.Carries(batch.ColumnArrays, s), "cannot carry column v of type vector")
}

// BenchmarkVectorsBesideDocuments makes batches of vectors and of documents in turns, and reports the ratio of the fastest rounds
// a byte, which is to be 1.5 at most in a binary format.
func BenchmarkVectorsBesideDocuments(b *testing.B) {
	documents, err := dataset.New("documents", dataset.Options{})
	require.NoError(b, err)
	for _, dims := range []int{128, 768, 1536} {
		for _, of := range []string{"{}", "{normalised: true}"} {
			for _, format := range []batch.Format{batch.PGBinary, batch.PGText, batch.Parquet} {
				b.Run(fmt.Sprintf("%d/%s/%s", dims, of, format), func(b *testing.B) {
					text := "version: 1\nname: v\ncolumns:\n  id: {type: bigint, sequence: {}}\n  v: {type: vector(%d), vector: %s}\n"
					spec, err := dataset.ParseSpec("v.yaml", fmt.Appendf(nil, text, dims, of), nil)
					require.NoError(b, err)
					vectors, err := spec.Compile(1)
					require.NoError(b, err)

					best := [2]float64{1e9, 1e9} // ns a byte of column data
					for b.Loop() {
						for i, d := range []dataset.Dataset{documents, vectors} {
							best[i] = min(best[i], nanosecondsPerByte(b, format, d))
						}
					}
					b.ReportMetric(best[0], "documents-ns/B")
					b.ReportMetric(best[1], "vectors-ns/B")
					b.ReportMetric(best[1]/best[0], "times-documents")
				})
			}
		}
	}
}

// nanosecondsPerByte fills and encodes eight pieces.
func nanosecondsPerByte(b *testing.B, format batch.Format, d dataset.Dataset) float64 {
	const pieces = 8
	n := int(128 << 10 / d.Schema().MaxRowBytes())
	e, err := encode.New(format, d.Schema(), encode.Options{})
	require.NoError(b, err)
	block, buf := rows.NewBlock(d.Schema()), make([]byte, 0, maxBytes(e, pieces*n))
	var at encode.Offsets
	d.Fill(block, 0, n)

	began := time.Now()
	if whole, is := e.(encode.PerBatch); is {
		e = whole.ForBatch(pieces * n)
	}
	buf = e.AppendHead(buf)
	for range pieces {
		d.Fill(block, 0, n)
		d.Derive(block, 0)
		buf = e.AppendRows(buf, block, &at)
	}
	e.AppendTail(buf)
	return float64(time.Since(began).Nanoseconds()) / float64(pieces*block.PayloadBytes())
}
