package mysql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
)

func listen(t testing.TB, o sink.Options) *sink.Server {
	s, err := mysql.Listen("127.0.0.1:0", o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func open(t *testing.T, s *sink.Server, userinfo string) *sql.DB {
	db, err := sql.Open("mysql", userinfo+"@tcp("+s.Addr()+")/db?maxAllowedPacket=0")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func loadData(t *testing.T, db *sql.DB, body io.Reader) int64 {
	driver.RegisterReaderHandler(t.Name(), func() io.Reader { return body })
	t.Cleanup(func() { driver.DeregisterReaderHandler(t.Name()) })
	r, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::" + t.Name() + "' INTO TABLE t")
	require.NoError(t, err)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

func TestLoadData(t *testing.T) {
	s := listen(t, sink.Options{})
	db := open(t, s, "me:any password")
	tx, err := db.Begin()
	require.NoError(t, err)
	require.NoError(t, tx.Commit())

	line := "1\t" + strings.Repeat("x", 997) + "\n"
	assert.EqualValues(t, 100_000, loadData(t, db, strings.NewReader(strings.Repeat(line, 100_000))))
	assert.EqualValues(t, 2, loadData(t, db, strings.NewReader("a\nb")))
	assert.EqualValues(t, 0, loadData(t, db, strings.NewReader("")))

	var warnings int
	require.NoError(t, db.QueryRow("SELECT @@warning_count").Scan(&warnings))
	assert.Zero(t, warnings)
	stats := s.Stats()
	assert.EqualValues(t, 100_002, stats.Rows)
	assert.EqualValues(t, 100_000_003, stats.Bytes)
	assert.EqualValues(t, 1, stats.Connections)
}

func TestLoadDataDropped(t *testing.T) {
	s := listen(t, sink.Options{NoCount: true, RowBytes: 1000})
	db := open(t, s, "root")
	assert.EqualValues(t, 30_000, loadData(t, db, io.LimitReader(rand.Reader, 30_000_000)))
	assert.EqualValues(t, 7, loadData(t, db, io.LimitReader(rand.Reader, 7_000)))
	assert.EqualValues(t, 30_007_000, s.Stats().Bytes)
}

func TestInsert(t *testing.T) {
	s := listen(t, sink.Options{})
	db := open(t, s, "root")
	// Larger than a packet can be, so that it comes in two.
	values := strings.Repeat(",(1,'"+strings.Repeat("x", 1<<20)+"')", 20)
	r, err := db.Exec("INSERT INTO t VALUES " + values[1:])
	require.NoError(t, err)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	assert.EqualValues(t, 20, n)
	assert.EqualValues(t, 20, s.Stats().Rows)
}

func TestQueries(t *testing.T) {
	s := listen(t, sink.Options{Answer: func(q string) ([]string, [][]string, bool) {
		return []string{"a", "b"}, [][]string{{"1", "x"}, {"2", strings.Repeat("y", 70_000)}}, q == "SELECT a, b FROM t"
	}})
	db := open(t, s, "root")

	rows, err := db.Query("SELECT a, b FROM t")
	require.NoError(t, err)
	var a, b string
	for rows.Next() {
		require.NoError(t, rows.Scan(&a, &b))
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, "2", a)
	assert.Len(t, b, 70_000)

	var version, one string
	require.NoError(t, db.QueryRow("SELECT VERSION(), 1").Scan(&version, &one))
	assert.Contains(t, version, "terapush")

	assert.ErrorIs(t, db.QueryRow("SELECT * FROM information_schema.tables").Scan(&a), sql.ErrNoRows)
	var refused *driver.MySQLError
	assert.ErrorAs(t, db.QueryRow("SELECT @@memsql_version").Scan(&a), &refused)
	assert.EqualValues(t, 1193, refused.Number)
	_, err = db.Exec("LOAD DATA INFILE '/etc/passwd' INTO TABLE t")
	assert.ErrorAs(t, err, &refused)
	_, err = db.Exec("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
	assert.ErrorAs(t, err, &refused)
	assert.EqualValues(t, 1064, refused.Number, "half of it must not be taken for the whole")
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
	own, err := sink.SelfSigned()
	require.NoError(f, err)
	open, closed := listen(f, sink.Options{TLS: own, CRC: true}), listen(f, sink.Options{TLS: own, Password: "secret", NoCount: true})
	f.Fuzz(func(t *testing.T, garbage []byte) {
		say(t, open, garbage)
		say(t, closed, garbage)
	})
}

// say sends it and waits until the sink closes the connection.
func say(t *testing.T, s *sink.Server, garbage []byte) {
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, _ = c.Write(garbage)
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = io.Copy(io.Discard, c)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the sink did not close the connection")
}

func TestCloseHangsUp(t *testing.T) {
	s, err := mysql.Listen("127.0.0.1:0", sink.Options{})
	require.NoError(t, err)
	db := open(t, s, "root")
	require.NoError(t, db.PingContext(context.Background()))
	require.NoError(t, s.Close())
	assert.Error(t, db.Ping())
}
