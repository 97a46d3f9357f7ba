package postgres_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func TestPsql(t *testing.T) {
	program := sinktest.Program(t, "psql")
	run := func(url, command string) (string, error) {
		return program("", "-X", "-v", "ON_ERROR_STOP=1", url, "-c", command)
	}
	file := filepath.Join(t.TempDir(), "rows")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("1,abc\n", 100_000)), 0o600))
	s := listen(t, sink.Options{TLS: sinktest.TLS(t)})
	for _, mode := range []string{"disable", "prefer", "require"} {
		out, err := run("postgres://me:anything@"+s.Addr()+"/db?sslmode="+mode,
			"begin; insert into t values (1, 'a;b'), (2, ';'); commit; insert into t values (3); select version(); select a, b from t")
		require.NoError(t, err, out)
		for _, want := range []string{
			"BEGIN\nINSERT 0 2\nCOMMIT\nINSERT 0 1\n", "PostgreSQL 17.0 (terapush-sink:",
		} {
			assert.Contains(t, out, want)
		}
		out, err = run("postgres://me@"+s.Addr()+"/db?sslmode="+mode, `\copy t from '`+file+`' csv`)
		require.NoError(t, err, out)
		assert.Equal(t, "COPY 100000\n", out)
	}
	assert.EqualValues(t, 9+300_000, s.Stats().Rows)
	out, err := run("postgres://me@"+listen(t, sink.Options{}).Addr()+"/db?sslmode=require", "select 1")
	require.Error(t, err)
	assert.Contains(t, out, "server does not support SSL")
}

// Loads fail by an error that clients retry, whether they are statements or have data.
func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 2})
	c := connect(t, s)
	exec1(t, c, "begin")
	exec1(t, c, "insert into t values (1)")
	_, err := c.Exec(t.Context(), "insert into t values (1)").ReadAll()
	refused(t, err, "40001")
	assert.Equal(t, "ROLLBACK", exec1(t, c, "rollback").CommandTag.String())
	assert.Equal(t, byte('I'), c.TxStatus())
	_, err = copyIn(t, c, "COPY t FROM STDIN", "1\n2\n")
	require.NoError(t, err)
	_, err = copyIn(t, c, "COPY t FROM STDIN", "1\n2\n")
	refused(t, err, "40001")
	assert.Equal(t, []int64{2, 1 + 2}, []int64{s.Stats().Failed, s.Stats().Rows})
}

// What asks to prepare is told that nothing can be prepared, up to its Sync.
func TestExtendedProtocolIsRefused(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	for range 2 {
		refused(t, c.ExecParams(t.Context(), "insert into t values ($1)", [][]byte{[]byte("1")}, nil, nil, nil).Read().Err, "0A000")
		_, err := c.Prepare(t.Context(), "s", "insert into t values (1)", nil)
		refused(t, err, "0A000")
		require.ErrorContains(t, err, "use the simple query protocol")
	}
	assert.Equal(t, "INSERT 0 1", exec1(t, c, "insert into t values (1)").CommandTag.String())
	assert.EqualValues(t, 1, s.Stats().Rows)
}

// pgx asks nothing beforehand in its simple protocol.
func TestPgx(t *testing.T) {
	s := listen(t, sink.Options{TLS: sinktest.TLS(t)})
	for _, parameters := range []string{"sslmode=disable", "sslmode=require"} {
		c, err := pgx.Connect(t.Context(), "postgres://me:secret@"+s.Addr()+"/db?default_query_exec_mode=simple_protocol&"+parameters)
		require.NoError(t, err)
		defer c.Close(context.Background())
		tx, err := c.Begin(t.Context())
		require.NoError(t, err)
		tag, err := tx.Exec(t.Context(), "insert into t (a, b) values ($1, $2), ($3, '$9')", 1, "it's", nil)
		require.NoError(t, err)
		assert.Equal(t, "INSERT 0 2", tag.String())
		require.NoError(t, tx.Commit(t.Context()))
	}
	assert.EqualValues(t, 4, s.Stats().Rows)
}

// Who claims two gigabytes, or lies about lengths otherwise, gets an error, and its connection is closed.
func TestOversized(t *testing.T) {
	s := listen(t, sink.Options{})
	for _, head := range []string{"Q\x7f\xff\xff\xff", "P\xff\xff\xff\xff", "Q\x00\x00\x00\x04", "d\x00\x00\x00\x03"} {
		assert.Contains(t, sinktest.Say(t, s, "\x00\x00\x00\x09\x00\x03\x00\x00\x00"+head), "08P01", "%q", head)
	}
}
