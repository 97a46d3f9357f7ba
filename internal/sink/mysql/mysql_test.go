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
	var warnings int
	require.NoError(t, db.QueryRow("SELECT @@warning_count").Scan(&warnings))
	assert.Zero(t, warnings)
	var version string
	require.NoError(t, dropped.QueryRow("SELECT VERSION()").Scan(&version))
	assert.Equal(t, "8.4.0-terapush-sink-no-count", version)
	stats := s.Stats()
	assert.Equal(t, []int64{1<<21 + 2, 10<<21 + 3, 1}, []int64{stats.Rows, stats.Bytes, stats.Connections})
	assert.EqualValues(t, 10<<21+3, dropping.Stats().Bytes)
}

func TestQueries(t *testing.T) {
	s := listen(t, sink.Options{Answer: func(q string) ([]string, [][]string, bool) {
		return []string{"a", "b"}, [][]string{{"1", "x"}, {"2", strings.Repeat("y", 70_000)}}, q == "SELECT a, b FROM t"
	}})
	db := open(t, s, "root", "")
	rows, err := db.Query("SELECT a, b FROM t")
	require.NoError(t, err)
	var a, b string
	for rows.Next() {
		require.NoError(t, rows.Scan(&a, &b))
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, "2", a)
	assert.Len(t, b, 70_000)

	refused(t, db.QueryRow("SELECT @@memsql_version").Scan(&a), 1193)
	assert.EqualValues(t, 1, s.Stats().Connections)
}

// Whatever is said on the port, the sink neither falls nor forgets its other clients.
func FuzzGarbage(f *testing.F) {
	login := append([]byte{36, 0, 0, 1, 0, 2, 0, 0}, make([]byte, 32)...)
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
	open, closed := listen(f, sink.Options{TLS: own, CRC: true}), listen(f, sink.Options{TLS: own, Password: "secret", NoCount: true})
	f.Fuzz(func(t *testing.T, garbage []byte) {
		sinktest.Say(t, open, string(garbage))
		sinktest.Say(t, closed, string(garbage))
	})
}
