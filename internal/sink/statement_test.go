package sink

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect Dialect
		want    []string
	}{
		{"", Standard, nil},
		{" ;\n; -- nothing;\n /* ; */ ;", Standard, nil},
		{"SELECT 1;", Standard, []string{"SELECT 1"}},
		{"BEGIN; INSERT INTO t VALUES (';');COMMIT; -- that's it", Standard, []string{"BEGIN", "INSERT INTO t VALUES (';')", "COMMIT"}},
		{`SELECT '\';'; # ; it's`, Backslash, []string{`SELECT '\';'`}},
		{`SELECT 'a\\'; SELECT "b;"""`, Backslash, []string{`SELECT 'a\\'`, `SELECT "b;"""`}},
		{"CREATE RULE r (a; b)", Standard, []string{"CREATE RULE r (a; b)"}},
		{"/*!40101 SET NAMES utf8 */; 'no end;", Backslash, []string{"", "'no end;"}},
	} {
		var got []string
		for _, s := range Split(c.sql, c.dialect) {
			got = append(got, s.Text)
		}
		assert.Equal(t, c.want, got, c.sql)
	}
}

func TestRowsOfStatements(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect Dialect
		rows    int64
	}{
		{"INSERT INTO t VALUES (1,'a')", Backslash, 1},
		{"insert into t(a, b) values (1,'a'),\n (2,x'ff') , (3, f(4, (5)))", Backslash, 3},
		{"INSERT INTO `values (` (`a)`) VALUES (1,'),('),(2,\"),(\")", Backslash, 2},
		{`INSERT INTO t VALUES ('\'),('),('\\'),('a''),(''')`, Backslash, 3},
		{`INSERT INTO t VALUES ('\'),('a'), (E'\'),('), (E'a''\'),(')`, Standard, 4},
		{"INSERT INTO t VALUES (1,2) ON DUPLICATE KEY UPDATE a=VALUES(a), b=VALUES(b)", Backslash, 1},
		{"INSERT INTO t VALUES (1),(2) ON CONFLICT (k, l) DO NOTHING", Standard, 2},
		{"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET (a, b) = (1, 2), (c, d) = (3, 4)", Standard, 1},
		{"INSERT INTO svalues VALUES (1)", Backslash, 1},
		{"INSERT INTO t (a) SELECT (1), (2)", Backslash, 0},
		{"))) VALUES )(", Backslash, 0},
		{"INSERT INTO t VALUES /* (1), it's */ (1), -- (2)\n (3), (1--1), (1-- 4)\n)", Backslash, 4},
		{"INSERT INTO t VALUES (1) # (2), '", Backslash, 1},
		{"INSERT INTO t VALUES --(2), '\n (1), (2 /* ) */) -- ,(3)", Standard, 2},
	} {
		all := Split(c.sql, c.dialect)
		require.Len(t, all, 1, c.sql)
		assert.Equal(t, c.rows, all[0].Rows, c.sql)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		sql     string
		dialect Dialect
		want    string
	}{
		{"INSERT INTO t VALUES (1)", Standard, ""},
		{"INSERT INTO t SELECT 1", Standard, "no tables to select from"},
		{"INSERT INTO t VALUES ($$a$$)", Standard, "dollar quotes"},
		{"INSERT INTO t VALUES (1), ($1)", Standard, "dollar quotes and parameters"},
		{"INSERT INTO t VALUES ('$1')", Standard, ""},
		{"INSERT INTO t VALUES ('$1'), (2) /*!50000 , (3) */", Backslash, "/*! … */"},
		{"/*!50000 INSERT INTO t VALUES (1) */", Backslash, "/*! … */"},
		{"SET a = 1 /*!50708 , b = 2 */", Backslash, ""},
		{"SELECT $$a$$", Standard, "dollar quotes"},
		{"WITH x AS (SELECT 1) INSERT INTO t VALUES (1)", Standard, "what rows WITH brings"},
		{"merge into t using s", Standard, "what rows MERGE brings"},
		{"CREATE TABLE t (a int)", Standard, ""},
	} {
		all := Split(c.sql, c.dialect)
		require.Len(t, all, 1, c.sql)
		if c.want == "" {
			assert.Empty(t, all[0].Refusal(), c.sql)
		} else {
			assert.Contains(t, all[0].Refusal(), c.want, c.sql)
		}
	}
}

func TestItem(t *testing.T) {
	for sql, want := range map[string]string{
		"/* who */ select VERSION() ;": "version()", "SELECT @@version_comment\nLIMIT 1": "@@version_comment", "SELECT a FROM t": "", "SELECT": "",
		"SELECT f(1) WHERE true": "", "SHOW x": "",
	} {
		all := Split(sql, Backslash)
		require.Len(t, all, 1, sql)
		assert.Equal(t, want, all[0].Item(), sql)
	}
}

func TestUnquote(t *testing.T) {
	for literal, want := range map[string][2]string{ // to PostgreSQL, and to MySQL
		`'a''b'`:     {"a'b", "a'b"},
		`"a""b"`:     {`a"b`, `a"b`},
		`'\t'`:       {`\t`, "\t"},
		`E'\t'`:      {"\t", `E'\t'`},
		`e'\x01\''`:  {"\x01'", `e'\x01\''`},
		`'\0\Z\q\x'`: {`\0\Z\q\x`, "\x00\x1aqx"},
		`'\xg0\\'`:   {`\xg0\\`, `xg0\`},
		`word`:       {"word", "word"},
		`'`:          {"'", "'"},
		``:           {"", ""},
		`''`:         {"", ""},
	} {
		assert.Equal(t, want, [2]string{Unquote(literal, Standard), Unquote(literal, Backslash)}, literal)
	}
}

// Whatever the text, splitting ends, and statements are pieces of it in their order.
func FuzzSplit(f *testing.F) {
	f.Add(`INSERT INTO t VALUES (E'\'),('),("a"),('b''c')`, true)
	f.Add("SELECT $1; -- x\n # y\n /* ; */ --;", false)
	f.Fuzz(func(t *testing.T, sql string, mysql bool) {
		d := Standard
		if mysql {
			d = Backslash
		}
		rest := sql
		for _, s := range Split(sql, d) {
			_, behind, found := strings.Cut(rest, s.Text)
			require.True(t, found)
			rest = behind
		}
	})
}
