package standin_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

const someone, another = "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "00000000-0000-0000-0000-000000000000"

// ordersTable is a table of no dataset.
func ordersTable(key ...string) *standin.Table {
	return standin.NewTable("orders", []standin.Column{
		{Name: "customer", Type: "UUID", Nullable: true}, {Name: "n", Type: "BIGINT"},
		{Name: "price", Type: "DECIMAL(9, 2)", Nullable: true},
		{Name: "note", Type: "VARCHAR(20)", Nullable: true},
	}, key...)
}

func decode(t *testing.T, table *standin.Table, body string) []standin.Row {
	t.Helper()
	found, err := table.Decode(standin.Format{Kind: standin.NDJSON}, nil, []byte(body))
	require.NoError(t, err)
	return found
}

func show(c rows.Column, v any) any { return standin.Text(c, v) }

const (
	first  = `{"customer":"6F9619FF-8B86-D011-B42D-00CF4FC964FF","n":1,"price":1.5,"note":"a"}`
	second = `{"customer":"` + another + `","n":1,"price":null,"note":null}`
	nobody = `{"customer":null,"n":1}`
)

// A table of no dataset has the types of its columns, and NULLs where they may be.
func TestATableOfNoDataset(t *testing.T) {
	table := ordersTable()
	// Without a key the same row may be there twice.
	table.Rows = append(table.Rows, decode(t, table, first+second+nobody+first)...)
	assert.Equal(t, []any{[]byte(someone), int64(1), int64(150), []byte("a")}, table.Rows[0].Values)
	assert.Equal(t, []any{[]byte(another), int64(1), nil, nil}, table.Rows[1].Values)
	for _, bad := range []string{`{"customer":"6f9619ff","n":1}`, `{"n":null}`, `{"n":"x"}`, `{"n":1,"price":1.234}`} {
		_, err := table.Decode(standin.Format{Kind: standin.NDJSON}, nil, []byte(bad))
		assert.Error(t, err, bad)
	}
	for condition, want := range map[string]int{
		"customer = '" + someone + "'": 2, "customer <> '" + someone + "' AND n BETWEEN 0 AND 1": 1, "n >= 2": 0, "n >= 1": 4,
		"note IN ('a', 'b') AND n IN (1,2)": 2, "1 = 0": 0, "price = 1.5": 2,
	} {
		is, err := table.Where(condition)
		require.NoError(t, err, condition)
		found := 0
		for _, r := range table.Rows {
			if is(r) {
				found++
			}
		}
		assert.Equal(t, want, found, condition)
	}
	find := func(string) (*standin.Table, error) { return table, nil }
	sql := "SELECT customer, n, price, note FROM orders WHERE customer = '" + another + "'"
	found, known, err := standin.Select(sql, find, show)
	require.NoError(t, err)
	assert.True(t, known)
	assert.Equal(t, [][]any{{another, "1", nil, nil}}, found)
	for _, unknown := range []string{"n LIKE 1", "m = 1", "n = 1 OR n = 2"} {
		_, err := table.Where(unknown)
		assert.Error(t, err, unknown)
	}
}

// Both formats of Doris have a way to write NULL.
func TestNulls(t *testing.T) {
	for body, as := range map[string]standin.Format{
		"('" + someone + "',1,NULL,'NULL')":  {Kind: standin.Values},
		someone + "\x011\x01\\N\x01NULL\x02": {Kind: standin.Separated, Comma: "\x01", Newline: "\x02"},
	} {
		found, err := ordersTable().Decode(as, nil, []byte(body))
		require.NoError(t, err)
		assert.Equal(t, []any{[]byte(someone), int64(1), nil, []byte("NULL")}, found[0].Values)
	}
}

// A row of a key is there once, also where the key has several columns and a UUID, and only one transaction at a time
// may put it there. Rows with NULL in the key are all different.
func TestKeys(t *testing.T) {
	table := ordersTable("CUSTOMER", "N")
	of := decode(t, table, first+second+nobody)
	open := standin.NewTransactions(&sync.Mutex{})
	one, other := open.Begin(nil), open.Begin(nil)
	insert := func(tx *standin.Transaction, r standin.Row) []any {
		blocker, duplicate := tx.Insert(table, r)
		return []any{blocker == one, duplicate}
	}
	free, waits, taken := []any{false, false}, []any{true, false}, []any{false, true}
	assert.Equal(t, free, insert(one, of[0]))
	assert.Equal(t, taken, insert(one, of[0]))
	assert.Equal(t, waits, insert(other, of[0]))
	assert.Equal(t, free, insert(other, of[1]))
	assert.Equal(t, free, insert(other, of[2]))
	assert.Equal(t, free, insert(one, of[2]))
	assert.Len(t, one.Rows(table), 2)
	assert.Len(t, other.Rows(table), 2)
	one.End(false)
	assert.Equal(t, free, insert(other, of[0]))
	other.End(true)
	assert.Len(t, table.Rows, 3)

	one, other = open.Begin(nil), open.Begin(nil)
	all := func(standin.Row) bool { return true }
	gone, _ := one.Delete(table, all)
	assert.Len(t, gone, 3)
	_, blocker := other.Delete(table, all)
	assert.Same(t, one, blocker)
	assert.Equal(t, waits, insert(other, of[0]), "it may come back")
	assert.Equal(t, free, insert(one, of[0]), "in the transaction it is gone")
	one.Undo(0)
	assert.Equal(t, taken, insert(other, of[0]))
	assert.Len(t, one.Rows(table), 3)

	assert.Nil(t, one.Lock(table, false))
	assert.Nil(t, other.Lock(table, false))
	assert.Same(t, other, one.Lock(table, true))
	other.End(false)
	assert.Nil(t, one.Lock(table, true))
	open.RollBack()
	assert.Zero(t, open.Open())
}
