package sqlload_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

func preparation(create loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: "r", Schema: documents(), Create: create, Contract: loader.Contract{Dedup: loader.DedupTx},
		Begin: &loader.Beginning{}, Owner: "me",
	}
}

// What an error says to do.
func TestPrepareAdvises(t *testing.T) {
	for _, c := range []struct {
		table          string // that is there, as in cell
		create         loader.CreateMode
		denied, hidden string // as in memory
		says           string
	}{
		{"", never, "", "", "table " + target + " does not exist (--create if-missing makes it)"},
		{"view", never, "", "", "s.t is a view, and rows go into tables (choose another --table)"},
		{"unfit", never, "", "", "column id (int) is missing (choose another --table, or use --create recreate)"},
		{"", ifMissing, "", target, "was made or emptied and cannot be found: may this user SELECT from it?"},
		{"full", recreate, "DROP", "", "(drop it yourself or choose another --table)"},
		{"full", recreate, "CREATE TABLE " + target, "", "(GRANT CREATE ON " + target + ", or make the table"},
		{"full", truncate, "TRUNCATE", "", "(GRANT TRUNCATE ON " + target + ")"},
		{"", ifMissing, "CREATE TABLE " + target, "", "(GRANT CREATE ON " + target +
			", or make the table with the statements of --dry-run and use --create never)"},
		{"full", never, "CREATE TABLE " + runs, "", "(GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON " + runs + ")"},
		{"full", never, "CREATE TABLE " + claims, "", "(GRANT CREATE, SELECT, INSERT, DELETE ON " + claims +
			", or do without exactly once: --delivery at-least-once)"},
		{"full", never, "", claims, "(GRANT SELECT, INSERT, DELETE ON " + claims +
			", if it is a claim table of another user)"},
	} {
		for _, atomic := range []bool{false, true} {
			m := newMemory(atomic)
			m.denied, m.hidden = c.denied, c.hidden
			if c.table != "" {
				m.tables[target] = existing[c.table]
			}
			if c.hidden != "" {
				m.tables[c.hidden] = relation{}
			}
			_, err := m.table().Prepare(t.Context(), preparation(c.create))
			assert.Contains(t, loader.Explain(err), c.says)
		}
	}
}

// What a back-end lacks is said before a table is touched, and not by a server's syntax error once all rows are in.
func TestPrepareNeedsTypesAndDialect(t *testing.T) {
	for _, c := range []struct {
		table   string // that is there, as in cell
		create  loader.CreateMode
		lack    func(*sqlload.Dialect)
		hex     bool   // the key is one of hexadecimal digits
		refused string // "": it is not
	}{
		{"", ifMissing, withoutBytes, false, "table " + target + " cannot be made: the back-end has no type for column body (bytes of at most 9 bytes)"},
		{"full", recreate, withoutBytes, false, "cannot be made"},
		{"", truncate, withoutBytes, false, "cannot be made"},
		{"full", ifMissing, withoutBytes, false, ""}, // a type that terapush does not make
		{"full", never, withoutDecimal, false, "the back-end's Dialect has no Decimal or Digits, TimeNumber"},
		{"", ifMissing, withoutDecimal, false, "the back-end's Dialect has no Decimal or Digits, TimeNumber"},
		{"full", never, withoutBytes, true, "the back-end's Dialect has no HexNumber, which this key needs"},
	} {
		m := newMemory(false)
		c.lack(&m.dialect)
		if c.table != "" {
			m.tables[target] = existing[c.table]
		}
		p := preparation(c.create)
		p.Schema.Number[0].Hex = c.hex
		_, err := m.table().Prepare(t.Context(), p)
		if c.refused == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.refused)
		require.Empty(t, m.sent)
	}
}

func withoutBytes(d *sqlload.Dialect) {
	i := slices.IndexFunc(d.Types, func(t sqlload.Type) bool { return t.Ours == rows.Bytes })
	d.Types[i].SQL = ""
}

func withoutDecimal(d *sqlload.Dialect) { d.Decimal, d.TimeNumber = "", "" }

// What others do between two statements of Prepare costs nobody a row, and nobody a run.
func TestPrepareMeanwhile(t *testing.T) {
	create := func(table string) func(*memory) {
		return func(m *memory) { m.tables[table] = relation{comment: "theirs"} }
	}
	createUseless := func(m *memory) {
		m.tables[claims], m.useless = relation{}, true
	}
	begin := func(run string) func(*memory) {
		return func(m *memory) { m.open(run, false) }
	}
	takeOver := func(m *memory) {
		m.tables[runs] = relation{rows: []record{m.tables[runs].rows[0].changed("epoch = '9-x', owner = 'them'")}}
	}
	const beforeDDL = "SELECT 1 FROM " + runs + " WHERE run = "
	for name, c := range map[string]struct {
		table  string
		create loader.CreateMode
		before string // what the others do it
		others func(*memory)
		says   string // "": no error
	}{
		"they make the table":       {"", ifMissing, "CREATE TABLE " + target, create(target), ""},
		"they make the claim table": {"full", never, "CREATE TABLE " + claims, create(claims), ""},
		"it is of no use":           {"full", recreate, "CREATE TABLE " + claims, createUseless, errUseless.Error()},
		"they make the runs' table": {"full", never, "CREATE TABLE " + runs, create(runs), ""},
		"they begin, we fill":       {"full", never, "the fence", begin("other"), "belongs to run other of them"},
		"they begin, we empty":      {"full", truncate, "the fence", begin("other"), "belongs to run other of them"},
		"they begin, we drop":       {"full", recreate, "the fence", begin("other"), "belongs to run other of them"},
		"they begin the same run":   {"full", recreate, "the fence", begin("r"), loader.ErrBegun.Error()},
		"they take over, we empty":  {"full", truncate, beforeDDL, takeOver, "run r was taken over by them"},
		"they take over, we drop":   {"full", recreate, beforeDDL, takeOver, "run r was taken over by them"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(false)
			if c.table != "" {
				m.tables[target] = existing[c.table]
			}
			m.before = func(statement string) {
				if strings.HasPrefix(statement, c.before) {
					m.before = nil
					c.others(m)
				}
			}
			_, err := m.table().Prepare(t.Context(), preparation(c.create))
			require.Nil(t, m.before, "they did nothing")
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
				assert.Equal(t, existing[c.table], m.tables[target])
			}
			if c.table == "" {
				assert.Equal(t, "theirs", m.tables[target].comment, "a mark of ours would let a later run drop it")
			}
			for _, r := range m.tables[runs].rows {
				assert.Equal(t, c.says == "", r["owner"] == "me", "whose row is left: %v", r)
			}
		})
	}
}

// Whoever wants nothing but the rows sent is asked nothing.
func TestPrepareSilent(t *testing.T) {
	m, p := newMemory(false), preparation(recreate)
	m.before = func(statement string) { panic(statement) }
	p.Silent = true
	l := m.table()
	_, err := l.State()
	require.ErrorContains(t, err, "was not prepared")
	table, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, loader.Table{Name: "t"}, table)
	_, err = l.State()
	require.NoError(t, err)
}

// What the server has in memory is written before the table is emptied, if this user may.
func TestPrepareFlushes(t *testing.T) {
	for _, denied := range []string{"", "FLUSH"} {
		m := newMemory(false)
		m.dialect.Flush, m.denied, m.tables[target] = "FLUSH", denied, existing["full"]
		_, err := m.table().Prepare(t.Context(), preparation(truncate))
		require.NoError(t, err)
		assert.Equal(t, []string{"FLUSH", "TRUNCATE TABLE " + target}, m.sent[len(m.sent)-2:])
	}
}

// A table that is made again may have its claims elsewhere. They are there before the old table is gone.
func TestPrepareMovesTheClaims(t *testing.T) {
	m := newMemory(false)
	m.next, m.tables[target] = `"s"."terapush_claims_unlogged"`, existing["full"]
	m.denied = "CREATE TABLE " + m.next
	_, err := m.table().Prepare(t.Context(), preparation(recreate))
	require.ErrorIs(t, err, errDenied)
	assert.Equal(t, existing["full"], m.tables[target])

	m.denied = "CREATE TABLE " + claims
	l := m.table()
	_, err = l.Prepare(t.Context(), preparation(recreate))
	require.NoError(t, err)
	s, err := l.State()
	require.NoError(t, err)
	assert.Equal(t, m.next, s.Claims)
}

// A single row of a table is looked for by a scan where that is short.
func TestPrepareLooksForAnIndex(t *testing.T) {
	for _, c := range []struct {
		indexed bool
		refused error // by the server that was asked for the index
		denied  string
		bytes   string
		want    bool
	}{
		{bytes: "268435456"},
		{bytes: "268435457", want: true},
		{bytes: "268435457", refused: errDenied, want: true},
		{denied: "SELECT bytes", want: true},
		{indexed: true, denied: "SELECT bytes"},
	} {
		m := newMemory(false)
		m.denied, m.tables[target] = c.denied, existing["full"]
		m.tables["sizes"] = relation{rows: []record{{"bytes": c.bytes}}}
		l := m.table()
		l.Indexed = func(context.Context, sqlload.Conn, *sqlload.State) (bool, error) { return c.indexed, c.refused }
		table, err := l.Prepare(t.Context(), preparation(never))
		require.NoError(t, err)
		assert.Equal(t, c.want, table.LongScan, "%+v", c)
	}
}

// A table that is made or emptied ends its earlier runs, and frees the keys of forgotten ones. Those of other tables, and
// of a table that is filled on, stay as they are.
func TestBeginEndsEarlierRuns(t *testing.T) {
	for _, create := range []loader.CreateMode{never, truncate, recreate} {
		m, p := newMemory(false), preparation(create)
		m.tables[target] = existing["full"]
		for name, change := range map[string]string{
			"closed": "state = 'closed'", "proven": "state = 'proven'", "forgotten": "state = 'forgotten'",
			"elsewhere": "target = 'u', state = 'closed'", "r": "fingerprint = 0", // died before it was announced
		} {
			m.open(name, false)
			all := m.tables[runs].rows
			all[len(all)-1] = all[len(all)-1].changed(change)
		}
		p.Begin.Shards, p.Shard = 2, "1/2"
		table, err := m.table().Prepare(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, "1/2", table.Row.Part)

		var got []string
		for _, r := range m.tables[runs].rows {
			got = append(got, strings.Join([]string{r["name"], r["part"], r["state"], r["last_key"]}, " "))
		}
		closed, proven, forgotten := "closed", "proven", "forgotten 9"
		if create != never {
			closed, proven, forgotten = "gone", "gone", "forgotten -1"
		}
		assert.ElementsMatch(t, []string{
			"closed 0/1 " + closed + " 9", "proven 0/1 " + proven + " 9",
			"forgotten 0/1 " + forgotten, "elsewhere 0/1 closed 9", "r 0/1 " + forgotten, "r 0/2 open -1", "r 1/2 open -1",
		}, got, create)
	}
}
