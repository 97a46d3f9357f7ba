package postgres_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	open, closed := listen(t, sink.Options{TLS: sinktest.TLS(t)}), listen(t, sink.Options{TLS: sinktest.TLS(t), Password: "sécret"})
	for _, mode := range []string{"disable", "prefer", "require"} {
		out, err := run("postgres://me:anything@"+open.Addr()+"/db?sslmode="+mode,
			"begin; insert into t values (1, $$a;b$$), (2, ';'); savepoint s; rollback to s; commit; insert into t default values; "+
				"select version() as v; select a, b from t; show server_version")
		require.NoError(t, err, out)
		for _, want := range []string{
			"BEGIN\nINSERT 0 2\nSAVEPOINT\nROLLBACK\nCOMMIT\nINSERT 0 1\n", "PostgreSQL 17.0 (terapush-sink:", " a | b \n", "(0 rows)", "17.0 (terapush-sink)",
		} {
			assert.Contains(t, out, want)
		}
		out, err = run("postgres://me:s%C3%A9cret@"+closed.Addr()+"/db?sslmode="+mode, `\copy t from '`+file+`' csv`)
		require.NoError(t, err, out)
		assert.Equal(t, "COPY 100000\n", out)
		for _, user := range []string{"me", "me:wrong"} {
			out, err = run("postgres://"+user+"@"+closed.Addr()+"/db?sslmode="+mode, "insert into t values (1)")
			assert.Error(t, err, out)
			assert.NotContains(t, out, "INSERT")
		}
	}
	assert.Equal(t, []int64{9, 300_000}, []int64{open.Stats().Rows, closed.Stats().Rows})
	out, err := run("postgres://me@"+listen(t, sink.Options{}).Addr()+"/db?sslmode=require", "select 1")
	require.Error(t, err)
	assert.Contains(t, out, "server does not support SSL")
}

// A statement that fails ends its transaction, as on a real server.
func TestFailedTransactions(t *testing.T) {
	s := listen(t, sink.Options{Fail: 2})
	c := connect(t, s)
	exec1(t, c, "begin")
	exec1(t, c, "insert into t values (1)")
	for _, state := range []string{"40001", "25P02"} {
		_, err := c.Exec(t.Context(), "insert into t values (1)").ReadAll()
		refused(t, err, state)
		assert.Equal(t, byte('E'), c.TxStatus())
	}
	assert.Equal(t, "ROLLBACK", exec1(t, c, "commit").CommandTag.String())
	assert.Equal(t, byte('I'), c.TxStatus())
	_, err := copyIn(t, c, "COPY t FROM STDIN", "1\n2\n")
	require.NoError(t, err)
	_, err = copyIn(t, c, "COPY t FROM STDIN", "1\n2\n")
	refused(t, err, "40001")
	assert.Equal(t, []int64{2, 1 + 2}, []int64{s.Stats().Failed, s.Stats().Rows})
}

// pgx prepares, describes, binds and executes, and asks for a table's columns before it copies.
func TestPgx(t *testing.T) {
	s := listen(t, sink.Options{TLS: sinktest.TLS(t), Password: "secret"})
	for _, parameters := range []string{
		"sslmode=disable", "sslmode=require", "sslmode=disable&default_query_exec_mode=exec", "sslmode=disable&default_query_exec_mode=describe_exec",
		"sslmode=disable&default_query_exec_mode=simple_protocol", "sslmode=disable&default_query_exec_mode=cache_describe",
	} {
		t.Run(parameters, func(t *testing.T) {
			c, err := pgx.Connect(t.Context(), "postgres://me:secret@"+s.Addr()+"/db?"+parameters)
			require.NoError(t, err)
			defer c.Close(context.Background())
			before := s.Stats()
			for i := range 3 {
				tag, err := c.Exec(t.Context(), "insert into t (a, b, c, d) values ($1, $2, $3, null), ($4, '$9', $5, $1)", i, "it's", time.Now(), int16(7), nil)
				require.NoError(t, err)
				assert.Equal(t, "INSERT 0 2", tag.String())
			}
			tx, err := c.Begin(t.Context())
			require.NoError(t, err)
			n, err := tx.CopyFrom(t.Context(), pgx.Identifier{"public", "t"}, []string{"a", "b", "c"}, pgx.CopyFromSlice(1000, func(i int) ([]any, error) {
				return []any{int64(i), fmt.Sprint("row ", i), time.Now()}, nil
			}))
			require.NoError(t, err)
			assert.EqualValues(t, 1000, n)
			require.NoError(t, tx.Commit(t.Context()))
			var version string
			require.NoError(t, c.QueryRow(t.Context(), "select version()").Scan(&version))
			assert.Contains(t, version, "terapush-sink")
			assert.ErrorIs(t, c.QueryRow(t.Context(), "select a from t where a = $1", 1).Scan(new(int)), pgx.ErrNoRows)
			b := &pgx.Batch{}
			for i := range 10 {
				b.Queue("insert into t values ($1)", i)
			}
			require.NoError(t, c.SendBatch(t.Context(), b).Close())
			assert.EqualValues(t, 6+1000+10, s.Stats().Rows-before.Rows)
		})
	}
	for _, user := range []string{"me", "me:wrong"} {
		_, err := pgx.Connect(t.Context(), "postgres://"+user+"@"+s.Addr()+"/db?sslmode=disable")
		refused(t, err, "28P01")
	}
}

func TestExtendedProtocolFailsUpToSync(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	for statement, state := range map[string]string{
		"insert into t values (1); insert into t values (2)": "42601", "show nothing_known": "42704", "copy t to stdout": "0A000",
	} {
		refused(t, c.ExecParams(t.Context(), statement, nil, nil, nil, nil).Read().Err, state, statement)
	}
	refused(t, c.ExecPrepared(t.Context(), "unknown", nil, nil, nil).Read().Err, "26000")
	assert.Equal(t, "x", string(c.ExecParams(t.Context(), "select 'x'", nil, nil, nil, nil).Read().Rows[0][0]))
	exec1(t, c, "begin")
	refused(t, c.ExecPrepared(t.Context(), "unknown", nil, nil, nil).Read().Err, "26000")
	assert.Equal(t, byte('E'), c.TxStatus())
	exec1(t, c, "rollback")
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		_, err = c.Prepare(t.Context(), fmt.Sprint("s", n), "insert into t values ($1)", nil)
	}
	refused(t, err, "54000")
	require.NoError(t, c.Deallocate(t.Context(), "s0"))
}

// Who claims two gigabytes, or lies about lengths otherwise, gets an error, and its connection is closed.
func TestOversized(t *testing.T) {
	s := listen(t, sink.Options{})
	for _, head := range []string{"Q\x7f\xff\xff\xff", "P\xff\xff\xff\xff", "Q\x00\x00\x00\x04", "d\x00\x00\x00\x03"} {
		assert.Contains(t, sinktest.Say(t, s, "\x00\x00\x00\x09\x00\x03\x00\x00\x00"+head), "08P01", "%q", head)
	}
}
