package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/postgres"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, postgres.Listen, o) }

func connect(t *testing.T, s *sink.Server) *pgconn.PgConn {
	c, err := pgconn.Connect(t.Context(), "postgres://me:any%20password@"+s.Addr()+"/db?sslmode=prefer")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec1(t *testing.T, c *pgconn.PgConn, sql string) *pgconn.Result {
	t.Helper()
	results, err := c.Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err, sql)
	require.Len(t, results, 1)
	return results[0]
}

func copyIn(t *testing.T, c *pgconn.PgConn, sql, body string) (rows int64, err error) {
	tag, err := c.CopyFrom(t.Context(), strings.NewReader(body), sql)
	return tag.RowsAffected(), err
}

// refused asserts that the sink answered with an error of this state.
func refused(t *testing.T, err error, state string, what ...any) {
	t.Helper()
	var said *pgconn.PgError
	require.ErrorAs(t, err, &said, what...)
	require.Equal(t, state, said.Code, what...)
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
	exec1(t, c, "begin")
	assert.Equal(t, byte('T'), c.TxStatus())
	binaryRows := string(tuples(100_000, 313))
	for _, load := range []struct {
		sql, body string
		rows      int64
	}{
		{"COPY t FROM STDIN", strings.Repeat("1\tabcdefgh\n", 100_000), 100_000},
		{"COPY t (a, b) FROM STDIN WITH (FORMAT binary)", binaryRows, 100_000},
		{"copy t from stdin BINARY", binaryRows[:len(binaryRows)-2], 100_000}, // without trailer
		{"COPY t FROM STDIN", "", 0},
	} {
		rows, err := copyIn(t, c, load.sql, load.body)
		require.NoError(t, err, load.sql)
		assert.Equal(t, load.rows, rows, load.sql)
	}
	exec1(t, c, "commit")
	assert.Equal(t, byte('I'), c.TxStatus())
	assert.EqualValues(t, 300_000, s.Stats().Rows)

	for name, body := range map[string]string{
		"empty": "", "cut": binaryRows[:1000], "more": binaryRows + "\x00\x01\x00\x00\x00\x00", "text": "1\tabc\n1\tabc\n", "short": binaryRows[:17],
	} {
		_, err := copyIn(t, c, "COPY t FROM STDIN (FORMAT binary)", body)
		refused(t, err, "22P04", name)
	}
	_, err := c.CopyFrom(t.Context(), io.MultiReader(strings.NewReader("1\n"), failing{}), "COPY t FROM STDIN")
	refused(t, err, "57014")
	assert.EqualValues(t, 300_000, s.Stats().Rows, "what was refused does not count")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCopyDropped(t *testing.T) {
	s := listen(t, sink.Options{NoCount: true, RowBytes: 1000})
	c := connect(t, s)
	assert.Equal(t, "17.0 (terapush-sink-no-count)", c.ParameterStatus("server_version"))
	for range 3 {
		rows, err := copyIn(t, c, "COPY t FROM STDIN", strings.Repeat("x", 1_000_999))
		require.NoError(t, err)
		assert.EqualValues(t, 1000, rows)
	}
	assert.Contains(t, string(exec1(t, c, "select version()").Rows[0][0]), "terapush-sink-no-count")
	assert.EqualValues(t, 3*1_000_999, s.Stats().Bytes)
}

func TestQueries(t *testing.T) {
	c := connect(t, listen(t, sink.Options{}))
	assert.Equal(t, "PostgreSQL 17.0 (terapush-sink: counts and forgets)", string(exec1(t, c, "select version();").Rows[0][0]))
	assert.Equal(t, "1", string(exec1(t, c, "SELECT 1").Rows[0][0]))
	assert.Empty(t, exec1(t, c, "SELECT * FROM pg_class").Rows)
	assert.Empty(t, exec1(t, c, "SHOW client_encoding").Rows)
	assert.EqualValues(t, 3, exec1(t, c, "INSERT INTO t VALUES (1, 'a'), (2, '),('), (3, E'\\'')").CommandTag.RowsAffected())
	for _, sql := range []string{"CREATE TABLE t (a int)", "SET synchronous_commit = off", "TRUNCATE t", "DELETE FROM t"} {
		exec1(t, c, sql)
	}
	results, err := c.Exec(t.Context(), "SET a = 1; INSERT INTO t VALUES (1), (2); SELECT 'what'; INSERT INTO t VALUES (1)").ReadAll()
	refused(t, err, "0A000")
	require.Len(t, results, 2, "what stands behind a statement that fails is not run")
	assert.Equal(t, "INSERT 0 2", results[1].CommandTag.String())
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
	own := sinktest.TLS(f)
	counting, dropping := listen(f, sink.Options{TLS: own, CRC: true}), listen(f, sink.Options{TLS: own, NoCount: true})
	f.Fuzz(func(t *testing.T, garbage []byte) {
		sinktest.Say(t, counting, string(garbage))
		sinktest.Say(t, dropping, string(garbage))
	})
}
