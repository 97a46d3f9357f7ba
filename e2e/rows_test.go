package e2e_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// load is what a push was told about its rows, and so what has to be in the table.
type load struct {
	dataset   string // a name, or own
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

// own is the file of a dataset that is not built in.
const own = "testdata/own.yaml"

// ownLoad is a load of own.
func ownLoad(t testing.TB, n, batchRows int64) load {
	path, err := filepath.Abs(own)
	require.NoError(t, err)
	return load{dataset: path, table: "own", rows: n, batchRows: batchRows, seed: 1}
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

// batches is how many batches the load has.
func (l load) batches() int64 { return (l.rows + l.batchRows - 1) / l.batchRows }

func (l load) data(t testing.TB) dataset.Dataset {
	t.Helper()
	if filepath.Base(l.dataset) == filepath.Base(own) {
		text, err := os.ReadFile(l.dataset)
		require.NoError(t, err)
		spec, err := dataset.ParseSpec(l.dataset, text, nil)
		require.NoError(t, err)
		data, err := spec.Compile(l.seed)
		require.NoError(t, err)
		return data
	}

	data, err := dataset.New(l.dataset, dataset.Options{Seed: l.seed, PayloadBytes: l.payload, PayloadKind: l.kind})
	require.NoError(t, err)
	return data
}

// row gives row i of the load, as texts in the schema's order.
func (l load) row(t testing.TB) func(i int64) []string {
	t.Helper()
	data := l.data(t)
	block := rows.NewBlock(data.Schema())
	return func(i int64) []string {
		dataset.Row(block, data, l.first, i, 0)
		row := make([]string, len(data.Schema().Columns))
		for n, c := range data.Schema().Columns {
			row[n] = textOf(c, &block.Columns[n])
		}
		return row
	}
}

// null is how a NULL is written here; no value is.
const null = "\x00NULL"

// textOf is the first value of a column as asText shows it.
func textOf(c rows.Column, v *rows.Vector) string {
	switch {
	case v.IsNull(0):
		return null
	case c.Type == rows.UUID:
		h := hex.EncodeToString(v.UUID(0))
		return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
	case c.Type == rows.JSON:
		return sameJSON(v.Value(0))
	case c.Type.Variable():
		return string(v.Value(0))
	case c.Type == rows.TimestampTZ:
		return fmt.Sprint(v.Ints[0])
	case c.Type == rows.Wide:
		return c.TextOf(v.UUID(0))
	case c.Type == rows.Uint64, c.Type == rows.Time, c.Type == rows.Bool, c.Type == rows.Float32, c.Type == rows.Float64:
		return c.Text(v.Ints[0])
	default:
		return standin.Text(c, v.Ints[0])
	}
}

// sameJSON writes equal documents in one way.
func sameJSON(text []byte) string {
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		return err.Error()
	}
	same, _ := json.Marshal(document)
	return string(same)
}

// shown is what asText has returned, as textOf writes it.
func shown(c rows.Column, value []byte) string {
	switch {
	case value == nil:
		return null
	case c.Type == rows.Bool:
		return map[string]string{"1": "true", "0": "false"}[strings.NewReplacer("true", "1", "false", "0").Replace(string(value))]
	case c.Type == rows.Float32 || c.Type == rows.Float64:
		f, err := strconv.ParseFloat(string(value), 64)
		return strings.TrimSpace(fmt.Sprint(strconv.FormatFloat(f, 'g', -1, 64), " ", strings.TrimPrefix(fmt.Sprint(err), "<nil>")))
	case c.Type == rows.JSON:
		return sameJSON(value)
	case c.Type == rows.Char:
		return strings.TrimRight(string(value), " ")
	default:
		return string(value)
	}
}

// isExact asks the server by its own client: every row of the loads once, every byte of them, and no other. The loads
// follow each other by their keys.
func (d *database) isExact(t testing.TB, loads ...load) {
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
		row, found := want(n), make([]string, len(got))
		for i, c := range schema.Columns {
			found[i] = shown(c, got[i])
		}
		if n >= loads[of].rows || !slices.Equal(row, found) {
			return fmt.Errorf("row %d of load %d is %q, want %q", n, of, found, row)
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
	case c.Type == rows.TimestampTZ && d.kind == postgres:
		return "CAST(CAST(extract(epoch FROM " + c.Name + ") * 1000000 AS bigint) AS text)"
	case c.Type == rows.TimestampTZ:
		return "CAST(UNIX_TIMESTAMP(" + c.Name + ") * 1000000 AS SIGNED)"
	case d.kind != postgres && (c.Type == rows.Float32 || c.Type == rows.Float64):
		return c.Name + " + 0e0" // a FLOAT is shown with six digits
	case d.kind != postgres && c.Type == rows.UUID:
		return c.Name
	case c.Type.Variable() && d.kind == postgres && (c.Type == rows.Char || c.Type == rows.JSON):
		return "CAST(" + c.Name + " AS text) AS as_text"
	case c.Type.Variable() || d.kind == dorisKind:
		return c.Name
	case d.kind == postgres && c.Type == rows.Timestamp:
		return "to_char(" + c.Name + ", 'YYYY-MM-DD HH24:MI:SS.US')"
	case d.kind == postgres: // ORDER BY would take a text of the column's own name
		return "CAST(" + c.Name + " AS text) AS as_text"
	default:
		return "CAST(" + c.Name + " AS CHAR(60))"
	}
}

// isAll asserts that these are the rows of the load, each once and with every value. They may be in any order.
func (l load) isAll(t testing.TB, found []standin.Row) {
	t.Helper()
	require.Len(t, found, int(l.rows))
	slices.SortFunc(found, func(a, b standin.Row) int { return cmp.Compare(a.Number, b.Number) })
	columns, want := l.data(t).Schema().Columns, l.row(t)
	for i, r := range found {
		require.Equal(t, l.first+int64(i), r.Number)
		var got []string
		for n, v := range r.Values {
			got = append(got, standin.Text(columns[n], v))
		}
		require.Equal(t, want(int64(i)), got, "row %d", r.Number)
	}
}

// holds asks the store itself: every batch of the run as one object, in them the load's rows, and nothing else.
func (f *folder) holds(t testing.TB, run, format string, l load) {
	t.Helper()
	found, columns := f.list(t), []standin.Column{}
	require.Len(t, found, int(l.batches()))
	for _, c := range l.data(t).Schema().Columns {
		columns = append(columns, standin.Column{Name: c.Name})
	}
	table, all := standin.NewTable(l.table, columns), []standin.Row{}
	for n, o := range found {
		require.Equal(t, f.object(run, int64(n), format), o.key)
		batch, err := table.Decode(formats[format], nil, f.get(t, o.key))
		require.NoError(t, err, o.key)
		require.Len(t, batch, int(min(l.batchRows, l.rows-int64(len(all)))), o.key)
		all = append(all, batch...)
	}
	l.isAll(t, all)
}

var formats = map[string]standin.Format{
	"csv": {Kind: standin.CSV}, "tsv": {Kind: standin.Separated, Comma: "\t", Newline: "\n"},
	"ndjson": {Kind: standin.NDJSON}, "parquet": {Kind: standin.Parquet},
}
