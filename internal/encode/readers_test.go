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
			s, want, buf := typed(t, c.format)
			path := filepath.Join(t.TempDir(), "rows")
			require.NoError(t, os.WriteFile(path, buf, 0o600))
			out, err := exec.CommandContext(t.Context(), python, "testdata/readers.py", c.reader, string(c.format), path, duckColumns(s)).Output()
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
func duckColumns(s rows.Schema) string {
	var all []string
	for _, c := range s.Columns {
		kind := duckTypes[c.Type]
		if c.Type.IsDecimal() {
			kind = fmt.Sprintf("DECIMAL(%d,%d)", c.Digits, c.Scale)
		}
		all = append(all, fmt.Sprintf("%q: %q", c.Name, kind))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// fromReader decodes bytes. A document that is null is a NULL to a reader of NDJSON.
func fromReader(t *testing.T, f batch.Format, s rows.Schema, want, row []any) []any {
	for i, c := range s.Columns {
		text, is := row[i].(string)
		switch {
		case is && c.Type == rows.Bytes:
			raw, err := hex.DecodeString(text)
			require.NoError(t, err)
			row[i] = string(raw)
		case !is && c.Type == rows.JSON && f == batch.NDJSON && want[i] != nil && string(want[i].([]byte)) == "null":
			row[i] = "null"
		}
	}
	return row
}

func stderrOf(err error) []byte {
	if e, is := err.(*exec.ExitError); is { //nolint:errorlint // as Output returns it
		return e.Stderr
	}
	return nil
}
