package backendtest

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Tables says how to reach a table that does not exist yet, on a server with transactions. Its methods are what holds
// for the table on every such server.
type Tables struct {
	Driver loader.Driver
	Deps   loader.Deps
	Target loader.Target
	// Preparation makes a table for rows like (1, 'x').
	Preparation loader.Preparation
	Name        string // of the table in SQL
	Exec        func(statement string)
	Count       func() int64 // the table's rows
	EmptyIsNull bool         // an empty text is NULL there, so that Types has none
}

// Open returns a loader on the table.
func (s Tables) Open(t testing.TB) loader.Loader {
	t.Helper()
	return Open(t, s.Driver, s.Target, s.Deps)
}

// Prepare prepares the table in a process of its own.
func (s Tables) Prepare(t testing.TB, change func(*loader.Preparation)) (loader.Table, loader.Loader, error) {
	t.Helper()
	p, l := s.Preparation, s.Open(t)
	if change != nil {
		change(&p)
	}
	table, err := l.Prepare(t.Context(), p)
	return table, l, err
}

// Life checks what the server says of a table that is made, filled, emptied and dropped, and that it takes the
// statements for that. What is sent when, and what is refused, is package sqlload's to show.
func (s Tables) Life(t *testing.T) {
	prepare := func(how loader.CreateMode) loader.Table {
		t.Helper()
		table, _, err := s.Prepare(t, func(p *loader.Preparation) { p.Create = how })
		require.NoError(t, err)
		return table
	}
	fill := func() { s.Exec("INSERT INTO " + s.Name + " VALUES (1, 'x')") }

	made := prepare(loader.CreateIfMissing)
	assert.True(t, made.Created)
	assert.NotEmpty(t, made.Identity)
	empty := prepare(loader.CreateIfMissing)
	assert.False(t, empty.Created || empty.HasRows)
	fill()
	full := prepare(loader.CreateNever)
	assert.True(t, full.HasRows)
	assert.Equal(t, made.Identity, full.Identity)

	s.Exec("TRUNCATE TABLE " + s.Name)
	emptied := prepare(loader.CreateNever)
	assert.NotEqual(t, made.Identity, emptied.Identity, "someone else has emptied it")
	fill()
	truncated := prepare(loader.CreateTruncate)
	assert.NotEqual(t, emptied.Identity, truncated.Identity)
	assert.Zero(t, s.Count())
	assert.Equal(t, truncated.Identity, prepare(loader.CreateNever).Identity, "a resume will find it")
	fill()
	recreated := prepare(loader.CreateRecreate)
	assert.NotEqual(t, truncated.Identity, recreated.Identity)
	assert.Zero(t, s.Count())

	s.Exec("DROP TABLE " + s.Name)
	for kind, says := range map[string]string{
		"TABLE %s (precious INT)": "was not made by terapush (its comment does not say",
		"VIEW %s AS SELECT 1":     "is a view",
	} {
		s.Exec("CREATE " + fmt.Sprintf(kind, s.Name))
		_, _, err := s.Prepare(t, func(p *loader.Preparation) { p.Create = loader.CreateRecreate })
		assert.ErrorContains(t, err, says)
		thing, _, _ := strings.Cut(kind, " ")
		s.Exec("DROP " + thing + " " + s.Name)
	}
}

// Arithmetic runs the proof's statements on tables that it loads.
func (s Tables) Arithmetic(t *testing.T) {
	Arithmetic(t, s.Preparation.Contract.Format, func(t *testing.T, d dataset.Dataset, rows ...*batch.Batch) Proven {
		s.Exec("DROP TABLE IF EXISTS " + s.Name)
		s.Preparation.Schema, s.Preparation.UUID, s.Preparation.Run = d.Schema(), dataset.UUIDOf(d), rows[0].ID.Run
		_, l, err := s.Prepare(t, nil)
		require.NoError(t, err)
		session := Session(t, l, s.Preparation.Contract)
		for _, b := range rows {
			b.Hold()
			_, err := session.Load(t.Context(), b)
			require.NoError(t, err)
		}
		return l.(Proven)
	}, "native")
}

// AllTypes is a schema with every type, a derived text among them.
func AllTypes() rows.Schema {
	return rows.Schema{
		Dataset: "everything",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "code", Type: rows.Text, MaxBytes: 4, Derived: true, Plain: true},
			{Name: "note", Type: rows.Text, MaxBytes: 100},
			{Name: "blob", Type: rows.Bytes, MaxBytes: 100},
			{Name: "d", Type: rows.Date},
			{Name: "t", Type: rows.Timestamp, Derived: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

// allTypes are rows of AllTypes. The time of the last one does not exist in Berlin.
var allTypes = []struct{ code, note, blob, day, at string }{
	{"c000", "é", "x", "0001-01-01", "0001-01-01 00:00:00.000000"},
	{"c001", "", "", "1969-12-31", "1969-12-31 23:59:59.999999"},
	{"c002", "n", "y", "9999-12-31", "9999-12-31 23:59:59.999999"},
	{"c003", "n", "y", "2026-03-29", "2026-03-29 02:30:00.000001"},
}

// Dates checks that dates, and all other types, come back as they were sent, whatever time zone the target's settings
// name. blob is how a raw byte is written in a format of tab-separated text. changes are those of a table that no
// longer takes the rows, as in "ALTER TABLE … ".
func (s Tables) Dates(t *testing.T, blob string, changes ...string) {
	s.Preparation.Schema = AllTypes()
	b := &batch.Batch{ID: batch.ID{Run: s.Preparation.Run}, Format: s.Preparation.Contract.Format, Rows: int64(len(allTypes))}
	var want [][]any
	for i, r := range allTypes {
		raw := r.blob
		if raw != "" {
			raw = fmt.Sprintf(blob, raw)
		}
		b.Encoded = fmt.Appendf(b.Encoded, "%d\t%s\t%s\t%s\t%s\t%s\n", i, r.code, r.note, raw, r.day, r.at)
		day, err := time.Parse(time.DateOnly, r.day)
		require.NoError(t, err)
		at, err := time.Parse(time.DateTime, r.at)
		require.NoError(t, err)
		want = append(want, []any{int64(i), []byte(r.code), []byte(r.note), []byte(r.blob), day.Unix() / 86400, at.UnixMicro()})
	}
	_, l, err := s.Prepare(t, nil)
	require.NoError(t, err)
	b.Hold()
	ack, err := Session(t, l, s.Preparation.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: b.Rows}, ack)

	found := 0
	require.NoError(t, loader.FeaturesOf(l).Fetcher.Fetch(t.Context(), []int64{0, 1, 2, 3, 4}, func(number int64, values []any) error {
		found++
		assert.Equal(t, want[number], values)
		return nil
	}))
	assert.Equal(t, len(want), found)
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: 3}, Size: 4, Measures: true}
	require.NoError(t, loader.FeaturesOf(l).Counter.Count(t.Context(), g, func(b loader.Bucket) error {
		assert.Equal(t, []*big.Int{big.NewInt(16), big.NewInt(4), big.NewInt(3)}, b.Measures, "bytes of the texts and bytes")
		return nil
	}))

	_, _, err = s.Prepare(t, nil)
	require.NoError(t, err, "the table that was made fits")
	for _, change := range changes {
		s.Exec("DROP TABLE " + s.Name)
		_, _, err = s.Prepare(t, nil)
		require.NoError(t, err)
		s.Exec("ALTER TABLE " + s.Name + " " + change)
		_, _, err = s.Prepare(t, nil)
		assert.ErrorContains(t, err, "cannot take the rows of dataset everything: column ", change)
	}
}

// Microseconds checks that they are exact wherever a timestamp may be, in the years far from 1970, too.
func (s Tables) Microseconds(t *testing.T) {
	const first = -62_135_596_800_000_000 // 0001-01-01 00:00:00
	s.Preparation.Schema = rows.Schema{
		Columns: []rows.Column{{Name: "at", Type: rows.Timestamp, Derived: true}},
		Number:  []rows.Term{{Minus: first, Times: 1}},
	}
	_, l, err := s.Prepare(t, nil)
	require.NoError(t, err)
	last := s.Preparation.Schema.MaxNumber()
	numbers := []int64{0, 1, 999_999, -first - 1, -first, 64_386_966_896_789_013, last - 1, last}
	for _, n := range numbers {
		s.Exec("INSERT INTO " + s.Name + " VALUES ('" + time.UnixMicro(n+first).UTC().Format("2006-01-02 15:04:05.000000") + "')")
	}
	var found []int64
	require.NoError(t, loader.FeaturesOf(l).Fetcher.Fetch(t.Context(), numbers, func(n int64, values []any) error {
		found = append(found, n)
		assert.Equal(t, n+first, values[0])
		return nil
	}))
	assert.ElementsMatch(t, numbers, found)
	counted := int64(0)
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: last}, Size: loader.MaxMixed}
	require.NoError(t, loader.FeaturesOf(l).Counter.Count(t.Context(), g, func(b loader.Bucket) error { counted += b.Rows; return nil }))
	assert.EqualValues(t, len(numbers), counted)
}

// NextFree checks which keys are free behind those of other programs. changes are those of a table whose number has
// another type, with the largest number that it holds.
func (s Tables) NextFree(t *testing.T, changes map[string]string) {
	reserve := func() (int64, error) {
		_, l, err := s.Prepare(t, nil)
		require.NoError(t, err)
		claims := loader.FeaturesOf(l).Claims
		first, err := claims.Reserve(t.Context(), -1, 10, 9_999)
		require.NoError(t, claims.GiveBack(t.Context()))
		return first, err
	}
	for _, of := range []rows.Column{
		{Name: "k", Type: rows.Int64, Derived: true},
		{Name: "k", Type: rows.Text, MaxBytes: 4, Declared: 20, Derived: true, Plain: true},
	} {
		s.Preparation.Schema = rows.Schema{Columns: []rows.Column{of}, Number: []rows.Term{{Times: 1}}}
		first, err := reserve()
		require.NoError(t, err)
		assert.Zero(t, first)
		s.Exec("INSERT INTO " + s.Name + " VALUES ('0041')")
		first, err = reserve()
		require.NoError(t, err)
		assert.EqualValues(t, 42, first)
		if of.Type == rows.Text {
			for _, own := range []string{"9999999", "abc", "z-42"} { // each sorts after the one before
				s.Exec("INSERT INTO " + s.Name + " VALUES ('" + own + "')")
				_, err = reserve()
				assert.Contains(t, loader.Explain(err), `"`+own+`", is no number of 4 digits, so it does not tell which keys are free (give --first-key)`)
			}
		} else {
			for change, largest := range changes {
				if change != "" {
					s.Exec("ALTER TABLE " + s.Name + " " + change)
				}
				s.Exec("INSERT INTO " + s.Name + " VALUES (" + largest + ")")
				_, err = reserve()
				assert.ErrorContains(t, err, "there is no room for 10 rows", largest)
			}
		}
		s.Exec("DROP TABLE " + s.Name)
	}
}
