package encode_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// arrayOf is a value of rows.Arrays.
func arrayOf(t rows.Type, all ...any) (value []byte) {
	s := rows.Schema{Columns: []rows.Column{{Type: t}}}
	for _, one := range all {
		value = rows.AppendElement(value, &backendtest.Block(s, [][]any{{one}}).Columns[0], 0)
	}
	return append([]byte{}, value...)
}

// Arrays, elements that are NULL, and what has to be escaped twice.
func TestArrays(t *testing.T) {
	words := rows.Column{Type: rows.Text, MaxBytes: 9, Nullable: true}
	s := rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "id", Type: rows.Int64, Derived: true},
		{Name: "words", Type: rows.Arrays, Of: &words, MaxBytes: 3 * 13, Nullable: true},
		{Name: "small", Type: rows.Arrays, Of: &rows.Column{Type: rows.Int16}, MaxBytes: 2 * 6},
	}}
	block := backendtest.Block(s, [][]any{
		{int64(1), arrayOf(rows.Text, []byte("\"\\\t,'"), nil, []byte{}), arrayOf(rows.Int16, int64(-2), int64(7))},
		{int64(2), nil, []byte{}},
	})
	for f, want := range map[batch.Format]string{
		batch.PGText:   "1\t{\"\\\\\"\\\\\\\\\\t,'\",NULL,\"\"}\t{-2,7}\n2\t\\N\t{}\n",
		batch.CSV:      "1,\"{\"\"\\\"\"\\\\\t,'\"\",NULL,\"\"\"\"}\",\"{-2,7}\"\n2,\\N,\"{}\"\n",
		batch.PGValues: "(1,'{\"\\\"\\\\\t,''\",NULL,\"\"}','{-2,7}'),(2,NULL,'{}')",
		batch.NDJSON:   `{"id":1,"words":["\"\\\t,'",null,""],"small":[-2,7]}` + "\n" + `{"id":2,"words":null,"small":[]}` + "\n",
		batch.TSV:      "1\t" + `["\\"\\\\\\t,'",null,""]` + "\t[-2,7]\n2\t\\N\t[]\n",
		batch.Values:   `(1,'["\\\"\\\\\\t,\'",null,""]','[-2,7]'),(2,NULL,'[]')`,
		batch.PGBinary: "PGCOPY\n\xFF\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x00\x03\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\x00\x00\x00\x25\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x19\x00\x00\x00\x03\x00\x00\x00\x01" +
			"\x00\x00\x00\x05\"\\\t,'\xFF\xFF\xFF\xFF\x00\x00\x00\x00" +
			"\x00\x00\x00\x20\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x15\x00\x00\x00\x02\x00\x00\x00\x01" +
			"\x00\x00\x00\x02\xFF\xFE\x00\x00\x00\x02\x00\x07" +
			"\x00\x03\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x02\xFF\xFF\xFF\xFF" +
			"\x00\x00\x00\x0C\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x15" + "\xFF\xFF",
	} {
		e := newEncoder(t, f, s, 1, 0, 0)
		buf, _ := whole(e, block)
		assert.Equal(t, want, string(buf), "%s", f)
		assert.LessOrEqual(t, len(buf), 2*e.MaxRow()+21, "%s", f)
	}

	raw := rows.Schema{Columns: []rows.Column{{Name: "c", Type: rows.Arrays, Of: &rows.Column{Type: rows.Bytes, MaxBytes: 3}, MaxBytes: 7}}}
	for _, f := range encode.Formats() {
		if slices.Contains([]batch.Format{batch.PGText, batch.PGBinary, batch.PGValues, batch.Parquet}, f) {
			assert.NoError(t, encode.Carries(f, raw), "%s", f)
			continue
		}
		assert.ErrorContains(t, encode.Carries(f, raw), "cannot carry the arrays of column c, whose elements are bytes", "%s", f)
	}
}
