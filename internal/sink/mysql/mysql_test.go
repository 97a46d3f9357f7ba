package mysql_test

import (
	"database/sql"
	"io"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, mysql.Listen, o) }

func open(t *testing.T, s *sink.Server, userinfo, parameters string) *sql.DB {
	db, err := sql.Open("mysql", userinfo+"@tcp("+s.Addr()+")/db?maxAllowedPacket=0&"+parameters)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// affected returns how many rows a statement brought, which must succeed.
func affected(t *testing.T, db *sql.DB, statement string, values ...any) int64 {
	t.Helper()
	r, err := db.Exec(statement, values...)
	require.NoError(t, err, "%.100s", statement)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

// load loads a body by LOAD DATA with these clauses.
func load(t *testing.T, db *sql.DB, clauses string, body io.Reader) (rows int64, err error) {
	name := strings.ReplaceAll(t.Name(), "'", "_")
	driver.RegisterReaderHandler(name, func() io.Reader { return body })
	defer driver.DeregisterReaderHandler(name)
	r, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::" + name + "' " + clauses)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// A body of several packets, the first of them full, and the answers in between.
func TestLoadData(t *testing.T) {
	s, dropping := listen(t, sink.Options{}), listen(t, sink.Options{NoCount: true, RowBytes: 10})
	db, dropped := open(t, s, "me:any password", ""), open(t, dropping, "root", "")
	tx, err := db.Begin()
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	many := strings.Repeat("1\tabcdefg\n", 1<<21)
	for _, c := range []struct {
		body          string
		rows, ofBytes int64
	}{{many, 1 << 21, 1 << 21}, {"a\nb", 2, 0}, {"", 0, 0}} {
		n, err := load(t, db, "INTO TABLE t", strings.NewReader(c.body))
		require.NoError(t, err)
		assert.Equal(t, c.rows, n)
		n, err = load(t, dropped, "INTO TABLE t", strings.NewReader(c.body))
		require.NoError(t, err)
		assert.Equal(t, c.ofBytes, n)
	}
	var version string
	require.NoError(t, dropped.QueryRow("SELECT VERSION()").Scan(&version))
	assert.Equal(t, "8.4.0-terapush-sink-no-count", version)
	stats := s.Stats()
	assert.Equal(t, []int64{1<<21 + 2, 10<<21 + 3, 1}, []int64{stats.Rows, stats.Bytes, stats.Connections})
	assert.EqualValues(t, 10<<21+3, dropping.Stats().Bytes)
}

func TestQueries(t *testing.T) {
	asked := func(addr string, o sink.Options) (*sink.Server, error) {
		return mysql.ListenAs(addr, o, func(s sink.Statement) (string, bool) { return strings.Repeat("y", 70_000), s.Text == "SELECT a FROM t" })
	}
	s := sinktest.Open(t, asked, sink.Options{})
	db := open(t, s, "root", "")
	var name, value string
	require.NoError(t, db.QueryRow("SELECT a FROM t").Scan(&value))
	assert.Len(t, value, 70_000)
	require.ErrorIs(t, db.QueryRow("SELECT b FROM t").Scan(&value), sql.ErrNoRows)
	for _, statement := range []string{"SET NAMES utf8mb4", "SET SESSION TRANSACTION READ WRITE", "USE db", "CREATE TABLE t (a INT)"} {
		affected(t, db, statement)
	}

	variables := map[string]string{}
	rows, err := db.Query("SHOW VARIABLES")
	require.NoError(t, err)
	for rows.Next() {
		require.NoError(t, rows.Scan(&name, &value))
		variables[name] = value
	}
	require.NoError(t, rows.Err())
	require.Equal(t, map[string]string{
		"version": "8.4.0-terapush-sink", "version_comment": "counts and forgets", "max_allowed_packet": "268435456", "local_infile": "ON",
		"lower_case_table_names": "0",
	}, variables)
	require.NoError(t, db.QueryRow("SELECT 1").Scan(&value))
	require.Equal(t, "1", value)
	for _, item := range []string{"@@memsql_version", "@@version, 1", "$$"} {
		refused(t, db.QueryRow("SELECT "+item).Scan(&value), 1193)
	}
	assert.EqualValues(t, 1, s.Stats().Connections)
}

// Whatever is said on the port, the sink neither falls nor forgets its other clients.
func FuzzGarbage(f *testing.F) {
	login := append([]byte{36, 0, 0, 1, 0, 0x82, 8, 0}, make([]byte, 32)...)
	for _, command := range []string{
		"", "\x03SELECT 1", "\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "\x03LOAD DATA LOCAL INFILE", "\x16", "\x01",
		"\x03SHOW", "\x03/*", "\x03SELECT '", "\x03INSERT INTO t VALUES (",
	} {
		f.Add(append(append(login[:len(login):len(login)], byte(len(command)), 0, 0, 0), command...))
	}
	for _, command := range []string{
		"\x16INSERT INTO t VALUES (?, ?)", "\x16SELECT '", "\x17\x01\x00\x00\x00", "\x17", "\x18\x01\x00\x00\x00\x00\x00xyz", "\x19", "\x1a\x01",
		"\x09", "\x1b", "\x02db", "\x03SET autocommit=", "\x03INSERT INTO t SET a=", "\x03;;--\n#",
	} {
		f.Add(append(append(login[:len(login):len(login)], byte(len(command)), 0, 0, 0), command...))
	}
	f.Add([]byte{32, 0, 0, 1, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0xff, 0xff, 0xff, 0, 1})
	own := sinktest.TLS(f)
	counting, dropping := listen(f, sink.Options{TLS: own, CRC: true}), listen(f, sink.Options{TLS: own, NoCount: true})
	f.Fuzz(func(t *testing.T, garbage []byte) {
		sinktest.Say(t, counting, string(garbage))
		sinktest.Say(t, dropping, string(garbage))
	})
}
