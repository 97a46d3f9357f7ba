package sink

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatementRows(t *testing.T) {
	for _, c := range []struct {
		sql       string
		backslash bool
		rows      int64
	}{
		{"INSERT INTO t VALUES (1,'a')", true, 1},
		{"insert into t(a, b) values (1,'a'),\n (2,x'ff') , (3, f(4, (5)))", true, 3},
		{"INSERT INTO `values (` (`a)`) VALUES (1,'),('),(2,\"),(\")", true, 2},
		{`INSERT INTO t VALUES ('\'),('),('\\'),('a''),(''')`, true, 3},
		{`INSERT INTO t VALUES ('\'),('a'), (E'\'),('), (E'a''\'),(')`, false, 4},
		{"INSERT INTO t VALUES (1,2) ON DUPLICATE KEY UPDATE a=VALUES(a), b=VALUES(b)", true, 1},
		{"INSERT INTO t VALUES (1),(2) ON CONFLICT (k, l) DO NOTHING", false, 2},
		{"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET (a, b) = (1, 2), (c, d) = (3, 4)", false, 1},
		{"INSERT INTO svalues VALUES (1)", true, 1},
		{"INSERT INTO t (a) SELECT (1), (2)", true, 0},
		{"))) VALUES )(", true, 0},
		{"INSERT INTO t VALUES /* (1), it's */ (1), -- (2)\n (3), (1--1), (1-- 4)\n)", true, 4},
		{"INSERT INTO t VALUES (1) # (2), '", true, 1},
		{"INSERT INTO t VALUES --(2), '\n (1), (2 /* ) */) -- ,(3)", false, 2},
		{"INSERT INTO t VALUES ($$),('$$), ($a$;),($$),($a$), ($1, $2)", false, 3},
	} {
		for _, n := range []int{1, 2, 3, 7, 1000} {
			p := only(t, read(c.sql, n, c.backslash))
			assert.Equal(t, c.rows, p.Rows, "%s by %d", c.sql, n)
			assert.Equal(t, c.sql, p.Text)
		}
	}
}

// read feeds a message in pieces of n bytes.
func read(sql string, n int, backslash bool) *Statement {
	s := &Statement{Backslash: backslash, CRC: true}
	s.Reset()
	pieces(sql, n, s.Write)
	return s
}

func only(t *testing.T, s *Statement) Part {
	parts, many := s.Parts()
	require.Len(t, parts, 1)
	require.False(t, many)
	return parts[0]
}

func TestStatementParts(t *testing.T) {
	for _, c := range []struct {
		sql       string
		backslash bool
		want      []string
	}{
		{"", false, nil},
		{" ;\n; -- nothing;\n /* ; */ ;", false, nil},
		{"SELECT 1;", false, []string{"SELECT 1;"}},
		{"BEGIN; INSERT INTO t VALUES (';');COMMIT; -- that's it", false, []string{"BEGIN;", " INSERT INTO t VALUES (';');", "COMMIT;"}},
		{"DO $$ begin; end $$; DO $x$ $$;$ $x$ ; SELECT $1", false, []string{"DO $$ begin; end $$;", " DO $x$ $$;$ $x$ ;", " SELECT $1"}},
		{"SELECT '\\';'; # ; it's", true, []string{"SELECT '\\';';"}},
		{"SELECT a$1;b$", false, []string{"SELECT a$1;", "b$"}},
		{"CREATE RULE r (a; b)", false, []string{"CREATE RULE r (a; b)"}},
	} {
		for _, n := range []int{1, 2, 3, 7, 1000} {
			parts, many := read(c.sql, n, c.backslash).Parts()
			var texts []string
			for _, p := range parts {
				texts = append(texts, p.Text)
				assert.EqualValues(t, len(p.Text), p.Bytes)
				assert.Equal(t, Checksum(0, []byte(p.Text)), p.CRC)
			}
			assert.Equal(t, c.want, texts, "%s by %d", c.sql, n)
			assert.False(t, many)
		}
	}
}

func TestStatementParameters(t *testing.T) {
	p := only(t, read("INSERT INTO t VALUES (?, '?', ?) -- ?", 2, true))
	assert.Equal(t, 2, p.Marks)
	p = only(t, read("INSERT INTO t VALUES ($1, '$7', $12), (a$9, $x$ $20 $x$, $3::int)", 2, false))
	assert.Equal(t, 12, p.Numbers)
	assert.EqualValues(t, 2, p.Rows)
	p = only(t, read("SELECT $99999999999999999999", 5, false))
	assert.Equal(t, maxParameters+1, p.Numbers)
}

func TestStatementIsBounded(t *testing.T) {
	s := read("INSERT INTO t VALUES ", 100, true)
	for range 1000 {
		s.Write([]byte("('" + strings.Repeat("x", 1000) + "'),"))
	}
	p := only(t, s)
	assert.EqualValues(t, 1000, p.Rows)
	assert.EqualValues(t, 21+1000*1005, p.Bytes)
	assert.Len(t, p.Text, head)
	s.Reset()
	s.Write([]byte("SELECT 1"))
	p = only(t, s)
	assert.Equal(t, "SELECT 1", p.Text)
	assert.Zero(t, p.Rows)

	parts, many := read(strings.Repeat("SELECT 1;", maxParts+1), 1000, false).Parts()
	assert.Len(t, parts, maxParts)
	assert.True(t, many)
	kept := 0
	parts, _ = read(strings.Repeat("SELECT '"+strings.Repeat("x", 1000)+"';", 900), 1000, false).Parts()
	for _, p := range parts {
		kept += len(p.Text)
	}
	assert.Equal(t, head, kept, "of all statements of a message together")
}

// The counter must come to the same, however the text is cut, and whatever it is.
func FuzzStatement(f *testing.F) {
	f.Add(`INSERT INTO t VALUES (E'\'),('),("a"),('b''c')`, 3, true)
	f.Add("SELECT $1; DO $a$ ; $a$; -- x\n # y\n /* ; */ --;", 1, false)
	f.Fuzz(func(t *testing.T, sql string, n int, backslash bool) {
		whole, many := read(sql, len(sql)+1, backslash).Parts()
		cut, manyCut := read(sql, max(1, n), backslash).Parts()
		assert.Equal(t, whole, cut)
		assert.Equal(t, many, manyCut)
	})
}
