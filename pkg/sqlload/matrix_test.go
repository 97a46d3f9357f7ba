package sqlload_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// cell is one of the matrix of Prepare.
type cell struct {
	create loader.CreateMode
	table  string // that is there, by a word of existing; "": none
	claims string // "unwanted", or what there is for a run with claims: "missing", "there", "useless"
	begins string // how the run comes to the table, and whether another one has it: see matrix
	denied string // a statement's beginning
	atomic bool   // a transaction drops and creates
}

// existing are the tables that may be there.
var existing = map[string]relation{
	"empty": {id: "old", comment: loader.MadeBy},
	"full":  {id: "old", comment: loader.MadeBy, rows: []record{{"id": "1"}}},
	"unfit": {id: "old", comment: loader.MadeBy, rows: []record{{"id": "1"}}, unfit: true},
	"other": {id: "old", comment: "precious", rows: []record{{"id": "1"}}},
	"named": {id: "old", comment: "precious", rows: []record{{"id": "1"}}}, // in --allow-drop, as the target has it
	"found": {id: "old", comment: "precious", rows: []record{{"id": "1"}}}, // in --allow-drop, as the server has it
	"view":  {id: "old", comment: loader.MadeBy, rows: []record{{"id": "1"}}, kind: "view"},
}

// pick takes the next digit of n, and returns what stands for it.
func pick[T any](n *int, of ...T) T {
	picked := of[*n%len(of)]
	*n /= len(of)
	return picked
}

// matrix has every cell.
func matrix() (all []cell) {
	for i := 0; ; i++ {
		n := i
		c := cell{
			create: pick(&n, never, ifMissing, truncate, recreate),
			table:  pick(&n, "", "empty", "full", "unfit", "other", "named", "found", "view"),
			claims: pick(&n, "unwanted", "missing", "there", "useless"),
			// The first two have begun already. The last three find another run: "beside" appends where that wants the
			// table alone, "against" the other way round, and "together" both append.
			begins: pick(&n, "looks", "resumes", "alone", "beside", "against", "together"),
			denied: pick(&n, "", "CREATE TABLE "+target, "DROP", "TRUNCATE", "CREATE TABLE "+claims, "CREATE TABLE "+runs),
			atomic: pick(&n, false, true),
		}
		if n > 0 {
			return all
		}
		all = append(all, c)
	}
}

// refusals are the texts of all errors that the cell may have; none if it succeeds.
func (c cell) refusals() (all []string) {
	there, makes := c.table != "", c.table == "" || c.create == recreate
	drops, empties := there && c.create == recreate, there && c.create == truncate
	denied := func(statement string) bool { return strings.HasPrefix(statement, cmp.Or(c.denied, "none")) }

	for text, refused := range map[string]bool{
		"does not exist":             !there && c.create == never,
		"is a view":                  c.table == "view",
		"was not made by terapush":   c.table == "other" && (drops || empties),
		"cannot take the rows":       c.table == "unfit" && !drops,
		"cannot be relied on":        c.claims == "useless",
		"belongs to run other":       c.begins == "beside" || c.begins == "against",
		"is gone":                    c.claims == "missing" && c.begins == "resumes",
		"create the claim table":     c.claims == "missing" && denied("CREATE TABLE "+claims),
		"create the table " + runs:   c.claims != "unwanted" && c.begins == "alone" && denied("CREATE TABLE "+runs),
		"create the table " + target: makes && denied("CREATE TABLE "+target),
		"drop the table " + target:   drops && denied("DROP TABLE"),
		"empty the table " + target:  empties && denied("TRUNCATE TABLE"),
	} {
		if refused {
			all = append(all, text)
		}
	}
	return all
}

// hasOther reports whether another run is open.
func (c cell) hasOther() bool {
	return c.begins == "beside" || c.begins == "against" || c.begins == "together"
}

// server is what the cell finds, and the preparation.
func (c cell) server() (*memory, loader.Preparation) {
	m := newMemory(c.atomic)
	m.denied, m.useless = c.denied, c.claims == "useless"
	if c.table != "" {
		m.tables[target] = existing[c.table]
	}
	if c.claims == "there" || c.claims == "useless" {
		m.tables[claims] = relation{rows: []record{{"run": "earlier", "batch": "0"}}}
	}
	if c.hasOther() {
		m.open("other", c.begins == "together" || c.begins == "against")
	}

	p := preparation(c.create)
	p.Begin = &loader.Beginning{Appends: c.begins == "together" || c.begins == "beside"}
	if c.begins == "looks" || c.begins == "resumes" {
		p.Begin, p.Resume = nil, c.begins == "resumes"
	}
	if c.claims == "unwanted" {
		p.Contract.Dedup = loader.DedupNone
	}
	p.MayDrop = map[string]string{"named": "t", "found": "s.t", "other": "u"}[c.table]
	return m, p
}

// Whatever there is and whatever may be refused: the run has its table, its claims and its row, or nothing is lost.
func TestPrepare(t *testing.T) {
	for _, c := range matrix() {
		m, p := c.server()
		table, err := m.table().Prepare(t.Context(), p)
		if refusals := c.refusals(); len(refusals) > 0 {
			c.refused(t, m, err, refusals)
		} else if assert.NoError(t, err, "%+v", c) {
			c.accepted(t, m, table)
		}

		assert.Equal(t, c.hasOther(), len(m.rowsOf("other")) == 1, "%+v: the other run's row", c)
		if c.claims == "there" || c.claims == "useless" {
			assert.Len(t, m.tables[claims].rows, 1, "%+v: the claims of other runs", c)
		}
		if t.Failed() {
			t.Fatal(strings.Join(m.sent, "\n"))
		}
	}
}

func (c cell) refused(t *testing.T, m *memory, err error, refusals []string) {
	t.Helper()
	known := (*loader.Error)(nil)
	require.ErrorAs(t, err, &known, "%+v, want one of %q", c, refusals)
	assert.Equal(t, loader.No, known.Applied)
	expected := func(text string) bool { return strings.Contains(err.Error(), text) }
	assert.True(t, slices.ContainsFunc(refusals, expected), "%+v: %v, want one of %q", c, err, refusals)
	assert.Empty(t, m.rowsOf("r"), "%+v: a run that did not begin has the table", c)

	gone := !c.atomic && c.create == recreate && strings.Contains(err.Error(), "create the table "+target)
	if c.table != "" && !gone {
		assert.Equal(t, existing[c.table], m.tables[target], "%+v: the table that was there", c)
	}
}

func (c cell) accepted(t *testing.T, m *memory, table loader.Table) {
	t.Helper()
	got, want := m.tables[target], existing[c.table]
	created := c.table == "" || c.create == recreate
	if created || c.create == truncate {
		want.rows = nil
	}
	if created {
		want.comment = loader.MadeBy
	}
	assert.Equal(t, want.rows, got.rows, "%+v: the rows", c)
	assert.Equal(t, want.comment, got.comment, "%+v: the mark", c)
	assert.Equal(t, loader.Table{
		Name: "s.t", Identity: got.id, Created: created, HasRows: len(got.rows) > 0, Row: table.Row,
	}, table, "%+v", c)
	_, claimed := m.tables[claims]
	assert.Equal(t, c.claims != "unwanted", claimed, "%+v: the claim table", c)

	mine := m.rowsOf("r")
	if c.begins == "looks" || c.begins == "resumes" || c.denied == "CREATE TABLE "+runs && c.begins == "alone" {
		assert.Empty(t, mine, "%+v", c)
		assert.Zero(t, table.Row, "%+v", c)
		return
	}
	require.Len(t, mine, 1, "%+v", c)
	assert.Equal(t, []string{"open", table.Row.Epoch, "me"}, mine[0].read("state, epoch, owner"), "%+v", c)
}
