package dataset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/rows"
)

const twoTables = `version: 1
tables:
  lines:
    rows: 4000
    key: [order_id, line]
    columns:
      order_id: {sequence: {of: orders.id, every: 4}}
      line:     {type: int, sequence: {start: 1, cycle: 4}}
      note:     {ref: shop.notes.id, nulls: 50%}
  orders:
    rows: 1000
    key: [id]
    columns:
      id:       {type: bigint, sequence: {start: 7}}
      next:     {ref: orders.id, nulls: 10%}
      last:     {ref: shop.notes.id, nulls: 10%}
      country:  {type: "text(5)", ref: {table: countries, column: code, rows: 30, format: "C{:02}"}}
  shop.notes:
    rows: 50
    key: [id]
    columns:
      id:       {type: uuid, uuid: v4}
      order_id: {ref: orders.id, nulls: 1%, zipf: {s: 1.1}}
`

func TestTablesComeInTheOrderOfTheirReferences(t *testing.T) {
	for _, one := range []struct {
		scale dataset.Scale
		rows  []int64
	}{
		{dataset.Scale{}, []int64{1000, 50, 4000}},
		{dataset.Scale{Rows: 300}, []int64{300, 300, 300}},
		{dataset.Scale{Times: 0.001}, []int64{1, 1, 4}},
	} {
		all, err := dataset.ParseTables("shop.yaml", []byte(twoTables), nil, one.scale)
		require.NoError(t, err)
		require.Equal(t, "shop", all.Name)

		var names, broken []string
		for i, table := range all.Tables {
			names = append(names, table.Name+" of "+strings.Join(table.Parents, "+"))
			broken = append(broken, strings.Join(table.Broken, "+"))
			require.Equal(t, one.rows[i], table.Spec.Rows)
		}
		require.Equal(t, []string{"orders of ", "shop.notes of orders", "lines of orders+shop.notes"}, names)
		require.Equal(t, []string{"last", "", ""}, broken)

		ref := all.Tables[1].Spec.Columns[1].Generator.(*dataset.SpecRef)
		require.Equal(t, one.rows[0], ref.Rows)
		require.Equal(t, "7", ref.Start)
		require.Equal(t, "bigint", all.Tables[1].Spec.Columns[1].Type)
		require.Equal(t, "7", all.Tables[2].Spec.Columns[0].Generator.(*dataset.SpecSequence).Start)
		require.Equal(t, "100%", all.Tables[0].Spec.Columns[2].Nulls)

		own := all.Tables[0].Spec.Columns[1].Generator.(*dataset.SpecRef)
		require.Equal(t, []any{true, max(one.rows[0]/10, 1), "7"}, []any{own.Own, own.Rows, own.Start})
	}
}

func TestTablesThatCannotBeFilledAreRefused(t *testing.T) {
	for from, want := range map[[2]string]string{
		{"ref: shop.notes.id, nulls: 10%", "ref: lines.note"}: "shop.yaml:16: table orders: column last: lines.note: " +
			"it can be referred to if it is a uuid, a scatter, or",
		{"ref: shop.notes.id, nulls: 10%", "ref: lines.order"}: "lines.order: there is no such column in this file",
		{"rows: 1000", "rows: 999"}: "shop.yaml:7: table lines: column order_id: sequence: its 4000 rows need 1000 rows of table orders, " +
			"which gets 999",
		{"    rows: 50\n", ""}:                                                    "table shop.notes: rows is missing: write it, or give --rows for all tables",
		{"ref: orders.id, nulls: 10%", "ref: orders.last"}:                        "column next: orders.last: it can be referred to if it is a uuid, a scatter, or",
		{"ref: orders.id, nulls: 10%", "ref: {column: id, start: 7}"}:             "column next: ref: of its own table only column, rows and with are said",
		{"{type: int, sequence: {start: 1, cycle: 4}}", "{type: int}"}:            "column line: a generator is missing",
		{"countries, column: code, rows: 30", "shop.notes, column: id, rows: 51"}: "ref: 51 rows of table shop.notes, which gets 50",
		{"version: 1", "version: 2"}:                                              "version 2 is not there",
		{"tables:", "name: s\ntables:"}:                                           "key name",
	} {
		_, err := dataset.ParseTables("shop.yaml", []byte(strings.Replace(twoTables, from[0], from[1], 1)), nil, dataset.Scale{})
		require.ErrorContains(t, err, want, "%q", from)
	}

	round := strings.NewReplacer("ref: shop.notes.id, nulls: 10%", "ref: shop.notes.id", "nulls: 1%, ", "").Replace(twoTables)
	_, err := dataset.ParseTables("shop.yaml", []byte(round), nil, dataset.Scale{})
	require.ErrorContains(t, err, "table orders: it and those that it refers to wait for each other: "+
		"orders.last to shop.notes, shop.notes.order_id to orders: give one of these columns nulls")

	unchecked := strings.Replace(round, "order_id: {ref: orders.id", "order_id: {ref: {of: orders.id, unchecked: true}", 1)
	all, err := dataset.ParseTables("shop.yaml", []byte(unchecked), nil, dataset.Scale{})
	require.NoError(t, err)
	require.Equal(t, "shop.notes", all.Tables[0].Name, "it does not wait")
	require.Empty(t, all.Tables[0].Parents)

	_, err = dataset.ParseSpec("one.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n  a: {type: bigint, ref: b.id}\n"), nil)
	require.ErrorContains(t, err, "one.yaml:4: column a: ref: b.id is for a file with tables")
}

// What looks at every pair of references, or reads the file for each table, shows here.
func TestManyTablesAreRead(t *testing.T) {
	text := "version: 1\ntables:\n"
	for i := range 300 {
		text += fmt.Sprintf("  t%d:\n    rows: 10\n    columns:\n      id: {type: bigint, sequence: {start: 1}}\n"+
			"      up: {ref: t%d.id, nulls: 1%%}\n", i, (i*7+1)%300)
	}
	all, err := dataset.ParseTables("many.yaml", []byte(text), nil, dataset.Scale{})
	require.NoError(t, err)
	require.Len(t, all.Tables, 300)
}

// Both columns of a key of two are drawn apart, and every pair of them is a row of the parent, whose last rows are not
// whole.
func TestReferencesToPairs(t *testing.T) {
	const text = `version: 1
tables:
  tenants: {rows: 7, columns: {id: {type: int, sequence: {start: 1}}}}
  users:
    rows: 60
    key: [id, tenant]
    columns:
      tenant: {sequence: {of: tenants.id, cycle: "${tenants.rows}"}}
      id:     {type: int, sequence: {start: 100, every: "${tenants.rows}"}}
  tasks:
    rows: 50
    key: [id]
    columns:
      id:     {type: int, sequence: {start: 1}}
      tenant: {ref: tenants.id}
      owner:  {ref: users.id, zipf: {s: 1}}
`
	all, err := dataset.ParseTables("f", []byte(text), nil, dataset.Scale{})
	require.NoError(t, err)
	owner := all.Tables[2].Spec.Columns[2].Generator.(*dataset.SpecRef)
	require.Equal(t, []int64{56, 7}, []int64{owner.Rows, owner.Every})

	made, err := all.Tables[2].Spec.Compile(1)
	require.NoError(t, err)
	block := rows.NewBlock(made.Schema())
	made.Fill(block, 0, 500)
	for i := range 500 {
		user := (block.Columns[2].Ints[i]-100)*7 + block.Columns[1].Ints[i] - 1
		require.Less(t, user, int64(60))
		require.GreaterOrEqual(t, user, int64(0))
	}

	_, err = dataset.ParseTables("f", []byte(text), nil, dataset.Scale{Times: 0.05})
	require.NoError(t, err)
	_, err = dataset.ParseTables("f", []byte(strings.Replace(text, "rows: 60", "rows: 6", 1)), nil, dataset.Scale{})
	require.ErrorContains(t, err, "table tasks: column owner: ref: table users gets 6 rows, fewer than column id has before it goes on")
}

// What ParseTables accepts can be made, and what it does not is no panic and no endless search for an order.
func FuzzParseTables(f *testing.F) {
	f.Add(twoTables)
	f.Add("tables: {a: {rows: 1, columns: {b: {ref: a.b, nulls: 1%}}}}")
	f.Add("version: 1\ntables:\n  a: {rows: 9, columns: {id: {sequence: {of: b.id}}}}\n  b: {rows: 9, columns: {id: {sequence: {of: a.id}}}}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 6<<10 {
			return
		}
		all, err := dataset.ParseTables("t.yaml", []byte(text), nil, dataset.Scale{})
		if err != nil {
			return
		}
		for _, table := range all.Tables {
			_, err := table.Spec.Compile(3)
			require.NoError(t, err)
		}
	})
}

// Columns that refer to a parent together have the values of one of its rows, and NULL together.
func TestReferencesOfSeveralColumnsOfARow(t *testing.T) {
	const text = `version: 1
tables:
  tickets:
    rows: 500
    key: [id]
    columns:
      id:   {type: bigint, sequence: {start: 1}}
      code: {ref: {of: seats.code, with: hall}}
      hall: {ref: seats.hall, nulls: 20%}
      seat: {ref: {of: seats.seat, with: hall}}
  seats:
    rows: 90
    key: [id]
    columns:
      id:   {type: bigint, sequence: {start: 1}}
      hall: {type: int, sequence: {start: 100}}
      seat: {type: int, sequence: {start: 7, cycle: 50}}
      code: {type: text, sequence: {format: "S{:03}"}}
`
	all, err := dataset.ParseTables("seats.yaml", []byte(text), nil, dataset.Scale{})
	require.NoError(t, err)
	d, err := all.Tables[1].Spec.Compile(7)
	require.NoError(t, err)
	block := rows.NewBlock(d.Schema())
	d.Fill(block, 0, 500)
	code, hall, seat := &block.Columns[1], &block.Columns[2], &block.Columns[3]
	require.InDelta(t, 100, hall.CountNulls(), 50)
	for i := range 500 {
		require.Equal(t, []bool{hall.IsNull(i), hall.IsNull(i)}, []bool{code.IsNull(i), seat.IsNull(i)})
		if parent := hall.Ints[i] - 100; !hall.IsNull(i) {
			require.Equal(t, parent%50+7, seat.Ints[i])
			require.Equal(t, fmt.Sprintf("S%03d", parent+1), string(code.Value(i)))
		}
	}

	for from, want := range map[string]string{
		"{of: seats.seat}":                      "of stands beside with or unchecked alone, as in {of: seats.seat, with: hall}; of one column write ref: seats.seat",
		"{of: seats.seat, with: hall, rows: 3}": "of stands beside with or unchecked alone",
		"{of: seats.sea, with: hall}":           "seats.sea: there is no such column in this file",
	} {
		_, err := dataset.ParseTables("seats.yaml", []byte(strings.Replace(text, "{of: seats.seat, with: hall}", from, 1)), nil, dataset.Scale{})
		require.ErrorContains(t, err, want)
	}
}
