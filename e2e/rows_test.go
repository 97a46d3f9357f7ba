package e2e_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/rows"
)

// load is what a push was told about its rows, and so what has to be in the table.
type load struct {
	dataset   string
	table     string
	rows      int64
	batchRows int64
	seed      uint64
	first     int64
	payload   int          // bytes; of documents alone
	kind      dataset.Kind // of documents alone
}

// small is a load of many little batches.
func small(rows int64) load {
	l := dataLoad("documents", rows, 200, 0)
	l.payload, l.kind = 128, dataset.Bytes
	return l
}

// dataLoad is a load of the dataset of that name into the table of that name.
func dataLoad(name string, n, batchRows, first int64) load {
	return load{dataset: name, table: name, rows: n, batchRows: batchRows, seed: 1 + uint64(first), first: first}
}

func peopleLoad(n, batchRows int64) load { return dataLoad("people", n, batchRows, 0) }

// flags are the command line's for the load.
func (l load) flags(more ...string) []string {
	f := []string{"--dataset", l.dataset, "--rows", fmt.Sprint(l.rows), "--batch-rows", fmt.Sprint(l.batchRows), "--seed", fmt.Sprint(l.seed)}
	if l.table != l.dataset {
		f = append(f, "--table", l.table)
	}
	if l.payload != 0 {
		f = append(f, "--payload-bytes", fmt.Sprint(l.payload), "--payload-kind", string(l.kind))
	}
	if l.first != 0 {
		f = append(f, "--first-key", fmt.Sprint(l.first))
	}
	return append(f, more...)
}

// unplaced are the flags without the first key, which terapush finds behind the rows that are there.
func (l load) unplaced(more ...string) []string {
	l.first = 0
	return l.flags(more...)
}

// batches is how many batches the load has.
func (l load) batches() int64 { return (l.rows + l.batchRows - 1) / l.batchRows }

func (l load) data(t *testing.T) dataset.Dataset {
	t.Helper()
	data, err := dataset.New(l.dataset, dataset.Options{Seed: l.seed, PayloadBytes: l.payload, PayloadKind: l.kind})
	require.NoError(t, err)
	return data
}

// row gives row i of the load, as texts in the schema's order.
func (l load) row(t *testing.T) func(i int64) []string {
	t.Helper()
	data := l.data(t)
	block := rows.NewBlock(data.Schema())
	return func(i int64) []string {
		dataset.Row(block, data, l.first, i, 0)
		row := make([]string, len(data.Schema().Columns))
		for n, c := range data.Schema().Columns {
			if v := &block.Columns[n]; c.Type.Variable() {
				row[n] = string(v.Value(0))
			} else {
				row[n] = textOf(c, v.Ints[0])
			}
		}
		return row
	}
}

// textOf is a number as databases and formats write it, but without zeros in front.
func textOf(c rows.Column, n int64) string {
	switch c.Type {
	case rows.Date:
		return time.Unix(n*86400, 0).UTC().Format(time.DateOnly)
	case rows.Timestamp:
		return time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.000000")
	case rows.Decimal:
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)
		return new(big.Rat).SetFrac(big.NewInt(n), unit).FloatString(c.Scale)
	default:
		return strconv.FormatInt(n, 10)
	}
}

// isExact asks the server by its own client: every row of the loads once, every byte of them, and no other. The loads
// follow each other by their keys.
func (d *database) isExact(t *testing.T, loads ...load) {
	t.Helper()
	schema := loads[0].data(t).Schema()
	var columns, keys []string
	for _, c := range schema.Columns {
		columns = append(columns, d.asText(c))
	}
	for _, term := range schema.Number {
		keys = append(keys, schema.Columns[term.Column].Name)
	}
	query := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(columns, ", "), loads[0].table, strings.Join(keys, ", "))
	got, to := make([][]byte, len(columns)), make([]any, len(columns))
	for i := range got {
		to[i] = &got[i]
	}
	of, n := 0, int64(0)
	want := loads[0].row(t)
	require.NoError(t, d.query(query, func(scan func(...any) error) error {
		if n == loads[of].rows && of+1 < len(loads) {
			of, n = of+1, 0
			want = loads[of].row(t)
		}
		if err := scan(to...); err != nil {
			return err
		}
		row := want(n)
		same := slices.EqualFunc(row, got, func(w string, g []byte) bool { return w == string(g) })
		if n >= loads[of].rows || !same {
			return fmt.Errorf("row %d of load %d is %q, want %q", n, of, got, row)
		}
		n++
		return nil
	}), query)
	require.Equal(t, []int64{int64(len(loads) - 1), loads[of].rows}, []int64{int64(of), n}, "the last load's last row")
}

// asText is a column as the formats write it.
func (d *database) asText(c rows.Column) string {
	switch {
	case d.kind == databend:
		return "to_string(" + c.Name + ")"
	case c.Type.Variable() || d.kind == dorisKind:
		return c.Name
	case d.kind == postgres && c.Type == rows.Timestamp:
		return "to_char(" + c.Name + ", 'YYYY-MM-DD HH24:MI:SS.US')"
	case d.kind == postgres: // ORDER BY would take a text of the column's own name
		return "CAST(" + c.Name + " AS text) AS as_text"
	default:
		return "CAST(" + c.Name + " AS CHAR(30))"
	}
}

// holds asks the store itself: every batch of the run as one object, which readers that are not ours read as the load's
// rows, and nothing else.
func (f *folder) holds(t *testing.T, run, format string, l load) {
	t.Helper()
	found, columns := f.list(t), l.data(t).Schema().Columns
	require.Len(t, found, int(l.batches()))
	want, i := l.row(t), int64(0)
	for n, o := range found {
		require.Equal(t, f.object(run, int64(n), format), o.key)
		next := readers[format](t, f.get(t, o.key), columns)
		for range min(l.batchRows, l.rows-i) {
			got, err := next()
			require.NoError(t, err, "row %d", i)
			if columns[0].Type == rows.Int64 { // a text of it has the digits of the run's last key
				key, err := strconv.ParseInt(got[0], 10, 64)
				require.NoError(t, err)
				got[0] = strconv.FormatInt(key, 10)
			}
			require.Equal(t, want(i), got, "row %d", i)
			i++
		}
		_, err := next()
		require.ErrorIs(t, err, io.EOF, "rows behind the batch's last one")
	}
}

// readers read an object row by row.
var readers = map[string]func(*testing.T, []byte, []rows.Column) func() ([]string, error){
	"csv": readCSV, "tsv": readTSV, "ndjson": readJSON, "parquet": readParquet,
}

func readCSV(_ *testing.T, body []byte, _ []rows.Column) func() ([]string, error) {
	return csv.NewReader(bytes.NewReader(body)).Read
}

func readTSV(t *testing.T, body []byte, _ []rows.Column) func() ([]string, error) {
	t.Helper()
	require.NotContains(t, string(body), `\`, "there is nothing that has to be escaped")
	lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	return func() ([]string, error) {
		if len(lines) == 0 {
			return nil, io.EOF
		}
		row := strings.Split(lines[0], "\t")
		lines = lines[1:]
		return row, nil
	}
}

func readJSON(_ *testing.T, body []byte, columns []rows.Column) func() ([]string, error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	return func() ([]string, error) {
		var object map[string]any
		if err := in.Decode(&object); err != nil {
			return nil, err
		}
		if len(object) != len(columns) {
			return nil, fmt.Errorf("%d fields: %v", len(object), object)
		}
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = fmt.Sprint(object[c.Name])
		}
		return row, nil
	}
}

func readParquet(t *testing.T, body []byte, columns []rows.Column) func() ([]string, error) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	require.NoError(t, err)
	for i, c := range columns {
		require.Equal(t, c.Name, file.Schema().Columns()[i][0])
	}
	in := parquet.NewReader(file)
	t.Cleanup(func() { _ = in.Close() })
	buf := make([]parquet.Row, 1)
	return func() ([]string, error) {
		if n, err := in.ReadRows(buf); n == 0 {
			return nil, err
		}
		row := make([]string, len(columns))
		for i, v := range buf[0] {
			switch c := columns[i]; c.Type {
			case rows.Date:
				row[i] = textOf(c, int64(v.Int32()))
			case rows.Int64, rows.Timestamp:
				row[i] = textOf(c, v.Int64())
			default:
				row[i] = string(v.ByteArray())
			}
		}
		return row, nil
	}
}
