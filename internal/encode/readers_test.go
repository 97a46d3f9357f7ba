package encode_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// duckTypes are DuckDB's, by which it is told what the fields of a text are.
var duckTypes = map[rows.Type]string{
	rows.Int64: "BIGINT", rows.Int32: "INTEGER", rows.Int16: "SMALLINT", rows.Bool: "BOOLEAN", rows.Float32: "FLOAT", rows.Float64: "DOUBLE",
	rows.UUID: "UUID", rows.TimestampTZ: "TIMESTAMPTZ", rows.Timestamp: "TIMESTAMP", rows.Date: "DATE", rows.Time: "TIME",
	rows.Text: "VARCHAR", rows.Char: "VARCHAR", rows.Enum: "VARCHAR", rows.JSON: "JSON", rows.Bytes: "BLOB",
	rows.Uint16: "USMALLINT", rows.Uint32: "UINTEGER", rows.Uint64: "UBIGINT",
	rows.Float32s: "FLOAT[]",
}

// Objects are read by the programs that people read them with.
func TestTypesByOtherReaders(t *testing.T) {
	python := backendtest.Server(t, "TERAPUSH_TEST_DATABEND_PYTHON")
	for _, c := range []struct {
		reader string
		format batch.Format
	}{
		{"pyarrow", batch.Parquet}, {"duckdb", batch.Parquet}, {"duckdb", batch.CSV}, {"duckdb", batch.NDJSON},
	} {
		t.Run(c.reader+" "+string(c.format), func(t *testing.T) {
			s, want, buf := typedAs(t, c.format, schemaWithout(c.format))
			path := filepath.Join(t.TempDir(), "rows")
			require.NoError(t, os.WriteFile(path, buf, 0o600))
			arguments := []string{"testdata/readers.py", c.reader, string(c.format), path, duckColumns(c.format, s)}
			out, err := exec.CommandContext(t.Context(), python, arguments...).Output()
			require.NoError(t, err, "%s", stderrOf(err))

			var got [][]any
			for line := range strings.Lines(string(out)) {
				var row []any
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				got = append(got, fromReader(t, c.format, s, want[len(got)], row))
			}
			requireTyped(t, s, want, got)
		})
	}
}

// duckColumns lists the columns in their order, which encoding/json would not keep.
func duckColumns(f batch.Format, s rows.Schema) string {
	var all []string
	for _, c := range s.Columns {
		all = append(all, fmt.Sprintf("%q: %q", c.Name, duckType(f, c)))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// duckType is the type of a column. The arrays of a CSV are texts, which PostgreSQL reads.
func duckType(f batch.Format, c rows.Column) string {
	switch {
	case c.Type.IsDecimal():
		return fmt.Sprintf("DECIMAL(%d,%d)", c.Digits, c.Scale)
	case c.Type == rows.Arrays && f == batch.CSV:
		return "VARCHAR"
	case c.Type == rows.Arrays:
		return duckType(f, *c.Of) + "[]"
	default:
		return duckTypes[c.Type]
	}
}

// fromReader decodes bytes and lists. A document that is null is a NULL to a reader of NDJSON.
func fromReader(t *testing.T, f batch.Format, s rows.Schema, want, row []any) []any {
	for i, c := range s.Columns {
		text, is := row[i].(string)
		switch {
		case c.Type.IsList() && row[i] != nil:
			row[i] = listFromReader(t, c, row[i])
		case is && c.Type == rows.Bytes:
			row[i] = fromHex(t, text)
		case !is && c.Type == rows.JSON && f == batch.NDJSON && want[i] != nil && string(want[i].([]byte)) == "null":
			row[i] = "null"
		}
	}
	return row
}

// listFromReader is what listText returns of a list. It is PostgreSQL's text, or an array of texts.
func listFromReader(t testing.TB, c rows.Column, found any) string {
	of := rows.Column{Type: rows.Float32}
	if c.Of != nil {
		of = *c.Of
	}
	list, is := found.([]any)
	if !is {
		var texts []*string
		require.NoError(t, pgtype.NewMap().Scan(pgtype.TextArrayOID, pgtype.TextFormatCode, []byte(found.(string)), &texts))
		list = []any{}
		for _, text := range texts {
			if text == nil {
				list = append(list, nil)
				continue
			}
			list = append(list, *text)
		}
	}

	for i, element := range list {
		text, is := element.(string)
		switch {
		case !is:
		case of.Type == rows.Bytes:
			list[i] = fromHex(t, text)
		default:
			list[i] = read(t, of, text)
		}
	}
	text, err := json.Marshal(list)
	require.NoError(t, err)
	return string(text)
}

func fromHex(t testing.TB, text string) string {
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	return string(raw)
}

func stderrOf(err error) []byte {
	if e, is := err.(*exec.ExitError); is { //nolint:errorlint // as Output returns it
		return e.Stderr
	}
	return nil
}
