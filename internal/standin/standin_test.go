package standin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

func tableOf(s rows.Schema) *standin.Table {
	var columns []standin.Column
	for _, c := range s.Columns {
		columns = append(columns, standin.Column{Name: c.Name, Type: map[rows.Type]string{rows.Text: "VARCHAR"}[c.Type]})
	}
	slices.Reverse(columns) // a server may want the key first: the rows have the dataset's order all the same
	return standin.NewTable("t", columns)
}

// What terapush writes in each format is read back value by value.
func TestDecode(t *testing.T) {
	for format, as := range map[batch.Format]standin.Format{
		batch.CSV:      {Kind: standin.CSV},
		batch.DorisCSV: {Kind: standin.Separated, Comma: "\x01", Newline: "\x02"},
		batch.NDJSON:   {Kind: standin.NDJSON},
		batch.Parquet:  {Kind: standin.Parquet},
		batch.Values:   {Kind: standin.Values},
	} {
		for _, name := range dataset.Names() {
			o := dataset.Options{}
			if name == "documents" {
				o.PayloadKind = dataset.Text
			}
			if format == batch.DorisCSV && (name == "documents" || name == "journal") {
				continue // it quotes and escapes nothing
			}
			d, err := dataset.New(name, o)
			require.NoError(t, err)
			table := tableOf(d.Schema())
			b := backendtest.Batch(t, d, format, batch.ID{}, 1000, 50)
			found, err := table.Decode(as, nil, b.Encoded)
			require.NoError(t, err, "%s as %s", name, format)
			require.Len(t, found, 50)
			for i, r := range found {
				require.EqualValues(t, 1000+i, r.Number)
				require.Equal(t, backendtest.Row(d, r.Number), r.Values, "%s as %s", name, format)
			}
		}
	}
}

// Every statement of verification is known, for each kind of key.
func TestSelect(t *testing.T) {
	dialect := sqlload.Dialect{Divide: "DIV(%s, %d)", Quote: `"`, TimeLiteral: "TIMESTAMP '%s'", Decimal: "DECIMAL(38, 0)", Leading: true, MaxList: 2}
	for _, name := range dataset.Names() {
		d, err := dataset.New(name, dataset.Options{})
		require.NoError(t, err)
		table := tableOf(d.Schema())
		for _, n := range []int64{10, 11, 12, 13, 13, 15, 99} {
			r, err := table.Row(backendtest.Row(d, n))
			require.NoError(t, err)
			table.Rows = append(table.Rows, r)
		}
		s := sqlload.Statements{Dialect: dialect, Schema: d.Schema(), Table: "t"}
		find := func(string) (*standin.Table, error) { return table, nil }
		ask := func(sql string) [][]any {
			answer, known, err := standin.Select(sql, find, show)
			require.NoError(t, err, sql)
			require.True(t, known, sql)
			return answer
		}
		all := loader.KeyRange{First: 10, Last: 15}
		assert.Equal(t, [][]any{{"6"}}, ask(s.SelectCount(all)), name)
		assert.Equal(t, [][]any{{"5"}}, ask(s.SelectDistinct(all)), name)
		assert.Equal(t, [][]any{{"0", "5", "0", "3", "9", "23"}, {"1", "1", "1", "1", "1", "1"}},
			ask(s.SelectBuckets(loader.Grouping{KeyRange: all, Size: 4}))[:2], name)
		assert.Len(t, ask(s.SelectRows([]int64{10, 12, 14, 15})), 3, name)
		_, known, err := standin.Select(strings.ReplaceAll(s.SelectCount(all), "BETWEEN", "UNLIKE"), find, nil)
		assert.NoError(t, err)
		assert.False(t, known)
	}
}
