package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/postgres"
)

func listen(t testing.TB, o sink.Options) *sink.Server {
	s, err := postgres.Listen("127.0.0.1:0", o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func connect(t *testing.T, s *sink.Server) *pgconn.PgConn {
	c, err := pgconn.Connect(t.Context(), "postgres://me:any%20password@"+s.Addr()+"/db?sslmode=prefer")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec1(t *testing.T, c *pgconn.PgConn, sql string) *pgconn.Result {
	results, err := c.Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err, sql)
	require.Len(t, results, 1)
	return results[0]
}

// tuples returns a COPY binary stream of rows (int8, bytea), of NULLs for every seventh row.
func tuples(rows, payload int) []byte {
	b := append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	for i := range rows {
		b = append(b, 0, 2, 0, 0, 0, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(i))
		if i%7 == 6 {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(payload))
		b = append(b, bytes.Repeat([]byte{0xff}, payload)...)
	}
	return append(b, 0xff, 0xff)
}

func TestCopy(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	copyIn := func(sql string, body []byte) int64 {
		tag, err := c.CopyFrom(t.Context(), bytes.NewReader(body), sql)
		require.NoError(t, err)
		return tag.RowsAffected()
	}
	exec1(t, c, "begin")
	assert.Equal(t, byte('T'), c.TxStatus())
	assert.EqualValues(t, 100_000, copyIn("COPY t FROM STDIN", bytes.Repeat([]byte("1\tabcdefgh\n"), 100_000)))
	binaryRows := tuples(100_000, 313)
	assert.EqualValues(t, 100_000, copyIn("COPY t (a, b) FROM STDIN WITH (FORMAT binary)", binaryRows))
	assert.EqualValues(t, 100_000, copyIn("copy t from stdin BINARY", binaryRows[:len(binaryRows)-2]), "without trailer")
	assert.EqualValues(t, 0, copyIn("COPY t FROM STDIN", nil))
	exec1(t, c, "commit")
	assert.Equal(t, byte('I'), c.TxStatus())
	assert.EqualValues(t, 300_000, s.Stats().Rows)

	var refused *pgconn.PgError
	for name, body := range map[string][]byte{
		"empty": nil, "cut": binaryRows[:1000], "more": append(binaryRows[:len(binaryRows):len(binaryRows)], 0, 1, 0, 0, 0, 0),
		"text": []byte(strings.Repeat("1\tabc\n", 100)), "short": binaryRows[:17],
	} {
		_, err := c.CopyFrom(t.Context(), bytes.NewReader(body), "COPY t FROM STDIN (FORMAT binary)")
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, "22P04", refused.Code, name)
	}
	_, err := c.CopyFrom(t.Context(), io.MultiReader(strings.NewReader("1\n"), failing{}), "COPY t FROM STDIN")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "57014", refused.Code)
	assert.EqualValues(t, 300_000, s.Stats().Rows, "what was refused does not count")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCopyDropped(t *testing.T) {
	s := listen(t, sink.Options{NoCount: true, RowBytes: 1000})
	c := connect(t, s)
	for range 3 {
		tag, err := c.CopyFrom(t.Context(), bytes.NewReader(make([]byte, 10_000_999)), "COPY t FROM STDIN")
		require.NoError(t, err)
		assert.EqualValues(t, 10_000, tag.RowsAffected())
	}
	assert.Equal(t, "SELECT 1", exec1(t, c, "SELECT 1").CommandTag.String())
	assert.EqualValues(t, 3*10_000_999, s.Stats().Bytes)
}

func TestQueries(t *testing.T) {
	s := listen(t, sink.Options{Answer: func(q string) ([]string, [][]string, bool) {
		return []string{"a", "b"}, [][]string{{"1", "x"}}, q == "SELECT a, b FROM t"
	}})
	c := connect(t, s)
	assert.Equal(t, "x", string(exec1(t, c, "SELECT a, b FROM t;").Rows[0][1]))
	assert.Contains(t, string(exec1(t, c, "select version()").Rows[0][0]), "terapush")
	assert.Equal(t, "170000", string(exec1(t, c, "SELECT current_setting('server_version_num')").Rows[0][0]))
	assert.Equal(t, "UTF8", string(exec1(t, c, "SHOW client_encoding").Rows[0][0]))
	assert.Empty(t, exec1(t, c, "SELECT * FROM pg_class").Rows)
	assert.EqualValues(t, 3, exec1(t, c, "INSERT INTO t VALUES (1, 'a'), (2, '),('), (3, E'\\'')").CommandTag.RowsAffected())
	assert.Equal(t, "CREATE TABLE", exec1(t, c, "CREATE TABLE t (a int)").CommandTag.String())
	for _, sql := range []string{"SET synchronous_commit = off", "TRUNCATE t", "DELETE FROM t"} {
		exec1(t, c, sql)
	}
	var refused *pgconn.PgError
	_, err := c.Exec(t.Context(), "COPY t TO STDOUT").ReadAll()
	assert.ErrorAs(t, err, &refused)
	exec1(t, c, "SELECT 1")
}

// Whatever is said on the port, the sink neither falls nor forgets its other clients.
func FuzzGarbage(f *testing.F) {
	startup := []byte{0, 0, 0, 9, 0, 3, 0, 0, 0}
	for _, command := range []string{
		"Q\x00\x00\x00\x0dSELECT 1\x00", "Q\x00\x00\x00\x04", "Q\x7f\xff\xff\xffINSERT", "P\x00\x00\x00\x04S\x00\x00\x00\x04",
		"Q\x00\x00\x00\x16COPY t FROM STDIN\x00d\x00\x00\x00\x05x", "d\x00\x00\x00\x03", "Q\x00\x00\x00\x09SHOW\x00",
		"Q\x00\x00\x00\x20COPY t FROM STDIN WITH BINARY\x00d\x00\x00\x00\x17PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x7f\xff\xff\xff",
	} {
		f.Add(append(startup[:len(startup):len(startup)], command...))
	}
	for _, command := range []string{
		"P\x00\x00\x00\x11\x00INSERT $1\x00\x00\x00", "B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00E\x00\x00\x00\x09\x00\x00\x00\x00\x00S\x00\x00\x00\x04",
		"P\x00\x00\x00\x10\x00SELECT a\x00\xff\xff", "P\x40\x00\x00\x00\x00INSERT", "D\x00\x00\x00\x06S\x00", "D\x00\x00\x00\x06P\x00", "C\x00\x00\x00\x06S\x00",
		"Q\x00\x00\x00\x1aBEGIN; COPY t; COMMIT\x00", "Q\x00\x00\x00\x0b$a$;$b\x00", "p\x00\x00\x00\x08abcd", "H\x00\x00\x00\x04", "F\x00\x00\x00\x04",
		"E\x00\x00\x00\x05x", "B\x00\x00\x00\x06xy", "P\x00\x00\x00\x04",
	} {
		f.Add(append(startup[:len(startup):len(startup)], command...))
	}
	f.Add([]byte("\x00\x00\x00\x09\x00\x03\x00\x00\x00p\x00\x00\x00\x26SCRAM-SHA-256\x00\x00\x00\x00\x0cn,,n=,r=abcdp\x00\x00\x00\x0ac=biws"))
	f.Add([]byte{0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0, 0, 0, 8, 4, 210, 22, 47, 0, 0, 0, 8, 4, 210, 22, 47})
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
