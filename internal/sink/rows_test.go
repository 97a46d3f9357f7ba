package sink

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// pieces feeds data in pieces of n bytes.
func pieces(data string, n int, write func([]byte)) {
	for len(data) > 0 {
		n = min(n, len(data))
		write([]byte(data[:n]))
		data = data[n:]
	}
}

func TestLines(t *testing.T) {
	for data, want := range map[string]int64{"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2} {
		for n := 1; n <= 3; n++ {
			var l Lines
			pieces(data, n, l.Write)
			rows, err := l.Rows()
			assert.NoError(t, err)
			assert.Equal(t, want, rows, "%q by %d", data, n)
		}
	}
}

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
		{"INSERT INTO svalues VALUES (1)", true, 1},
		{"INSERT INTO t (a) SELECT (1), (2)", true, 0},
		{"))) VALUES )(", true, 0},
	} {
		for _, n := range []int{1, 2, 3, 7, 1000} {
			s := Statement{Backslash: c.backslash}
			pieces(c.sql, n, s.Write)
			assert.Equal(t, c.rows, s.Rows(), "%s by %d", c.sql, n)
			assert.Equal(t, c.sql, s.Text())
		}
	}
}

func TestStatementIsBounded(t *testing.T) {
	var s Statement
	s.Write([]byte("INSERT INTO t VALUES "))
	for range 1000 {
		s.Write([]byte("('" + strings.Repeat("x", 1000) + "'),"))
	}
	assert.EqualValues(t, 1000, s.Rows())
	assert.EqualValues(t, 21+1000*1005, s.Bytes())
	assert.Len(t, s.Text(), head)
	s.Reset()
	s.Write([]byte("SELECT 1"))
	assert.Equal(t, "SELECT 1", s.Text())
	assert.Zero(t, s.Rows())
}

// The counter must come to the same, however the text is cut, and whatever it is.
func FuzzStatement(f *testing.F) {
	f.Add(`INSERT INTO t VALUES (E'\'),('),("a"),('b''c')`, 3, true)
	f.Fuzz(func(t *testing.T, sql string, n int, backslash bool) {
		whole, cut := Statement{Backslash: backslash}, Statement{Backslash: backslash}
		whole.Write([]byte(sql))
		pieces(sql, max(1, n), cut.Write)
		if whole.Rows() != cut.Rows() {
			t.Errorf("%d rows in one piece, %d in pieces of %d", whole.Rows(), cut.Rows(), n)
		}
	})
}

func TestConstants(t *testing.T) {
	lookup := func(item string) (string, bool) {
		return "<" + item + ">", item != "@@no" && item != "*"
	}
	for _, c := range []struct {
		sql, unknown string
		row          []string
	}{
		{sql: "SELECT 1", row: []string{"1"}},
		{sql: "/* who */ select VERSION(), 'a,b' , -2 LIMIT 1;", row: []string{"<version()>", "a,b", "-2"}},
		{sql: "SELECT f(a, b) AS x", row: []string{"<f(a, b)>"}},
		{sql: "SELECT 1, @@no", unknown: "@@no"},
		{sql: "SELECT * FROM t", unknown: "FROM"},
		{sql: "SELECT", unknown: "FROM"},
	} {
		_, row, unknown := Constants(c.sql, lookup)
		assert.Equal(t, c.row, row, c.sql)
		assert.Equal(t, c.unknown, unknown, c.sql)
	}
}
