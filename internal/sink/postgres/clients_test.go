package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// psql skips where there is none, and fails where there has to be one.
func psql(t *testing.T) func(url, command string) (string, error) {
	path, err := exec.LookPath("psql")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("psql is not installed")
	}
	if err != nil {
		t.Skip("psql is not installed")
	}
	return func(url, command string) (string, error) {
		out, err := exec.Command(path, "-X", "-v", "ON_ERROR_STOP=1", url, "-c", command).CombinedOutput()
		return string(out), err
	}
}

func TestPsqlCopies(t *testing.T) {
	run := psql(t)
	s := listen(t, sink.Options{})
	file := filepath.Join(t.TempDir(), "rows")
	for command, body := range map[string][]byte{
		"": bytes.Repeat([]byte("1\tabc\n"), 100_000), " csv": bytes.Repeat([]byte("1,abc\n"), 100_000),
		" (format binary)": tuples(100_000, 100),
	} {
		require.NoError(t, os.WriteFile(file, body, 0o600))
		out, err := run("postgres://me:secret@"+s.Addr()+"/db", `\copy t from '`+file+`'`+command)
		require.NoError(t, err, out)
		assert.Equal(t, "COPY 100000\n", out)
	}
}

func TestPsqlEncryptsAndProves(t *testing.T) {
	run := psql(t)
	own, err := sink.SelfSigned()
	require.NoError(t, err)
	open, closed := listen(t, sink.Options{TLS: own}), listen(t, sink.Options{TLS: own, Password: "sécret"})
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
		out, err = run("postgres://me:s%C3%A9cret@"+closed.Addr()+"/db?sslmode="+mode, "insert into t values (1)")
		require.NoError(t, err, out)
		for _, user := range []string{"me", "me:wrong"} {
			out, err = run("postgres://"+user+"@"+closed.Addr()+"/db?sslmode="+mode, "insert into t values (1)")
			assert.Error(t, err, out)
			assert.NotContains(t, out, "INSERT")
		}
	}
	assert.EqualValues(t, 9, open.Stats().Rows)
	assert.EqualValues(t, 3, closed.Stats().Rows)
	out, err := run("postgres://me@"+listen(t, sink.Options{}).Addr()+"/db?sslmode=require", "select 1")
	require.Error(t, err)
	assert.Contains(t, out, "server does not support SSL")
}

// A statement that fails ends its transaction, as on a real server.
func TestFailedTransactions(t *testing.T) {
	run := psql(t)
	s := listen(t, sink.Options{Fail: 2})
	url := "postgres://me@" + s.Addr() + "/db"
	out, err := run(url, "begin; insert into t values (1); insert into t values (2); insert into t values (3); commit")
	require.Error(t, err)
	assert.Contains(t, out, "told to fail some loads")
	c := connect(t, s)
	exec1(t, c, "begin")
	exec1(t, c, "insert into t values (1)") // the third
	var refused *pgconn.PgError
	for _, state := range []string{"40001", "25P02"} {
		_, err := c.Exec(t.Context(), "insert into t values (1)").ReadAll()
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, state, refused.Code)
		assert.Equal(t, byte('E'), c.TxStatus())
	}
	assert.Equal(t, "ROLLBACK", exec1(t, c, "commit").CommandTag.String())
	assert.Equal(t, byte('I'), c.TxStatus())
	_, err = c.CopyFrom(t.Context(), strings.NewReader("1\n2\n"), "COPY t FROM STDIN")
	require.NoError(t, err)
	_, err = c.CopyFrom(t.Context(), strings.NewReader("1\n2\n"), "COPY t FROM STDIN")
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "40001", refused.Code)
	stats := s.Stats()
	assert.EqualValues(t, 3, stats.Failed)
	assert.EqualValues(t, 1+1+2, stats.Rows)
}

// pgx prepares, describes, binds and executes, and asks for a table's columns before it copies.
func TestPgx(t *testing.T) {
	own, err := sink.SelfSigned()
	require.NoError(t, err)
	s := listen(t, sink.Options{TLS: own, Password: "secret"})
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
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "28P01", refused.Code)
	}
}

func TestExtendedProtocolFailsUpToSync(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	var refused *pgconn.PgError
	for statement, state := range map[string]string{
		"insert into t values (1); insert into t values (2)": "42601", "show nothing_known": "42704", "copy t to stdout": "0A000",
	} {
		require.ErrorAs(t, c.ExecParams(t.Context(), statement, nil, nil, nil, nil).Read().Err, &refused, statement)
		assert.Equal(t, state, refused.Code)
	}
	require.ErrorAs(t, c.ExecPrepared(t.Context(), "unknown", nil, nil, nil).Read().Err, &refused)
	assert.Equal(t, "26000", refused.Code)
	assert.Equal(t, "x", string(c.ExecParams(t.Context(), "select 'x'", nil, nil, nil, nil).Read().Rows[0][0]))
	var err error
	n := 0
	for ; err == nil && n < 2000; n++ {
		_, err = c.Prepare(t.Context(), fmt.Sprint("s", n), "insert into t values ($1)", nil)
	}
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "54000", refused.Code)
	require.NoError(t, c.Deallocate(t.Context(), "s0"))
}

// Who claims two gigabytes, or lies about lengths otherwise, gets an error, and its connection is closed.
func TestOversized(t *testing.T) {
	s := listen(t, sink.Options{})
	for _, head := range []string{"Q\x7f\xff\xff\xff", "P\xff\xff\xff\xff", "Q\x00\x00\x00\x04", "d\x00\x00\x00\x03"} {
		c, err := net.Dial("tcp", s.Addr())
		require.NoError(t, err)
		_, err = c.Write([]byte("\x00\x00\x00\x09\x00\x03\x00\x00\x00" + head))
		require.NoError(t, err)
		var said bytes.Buffer
		_, err = said.ReadFrom(c)
		require.NoError(t, err)
		assert.Contains(t, said.String(), "08P01", "%q", head)
		require.NoError(t, c.Close())
	}
}

func TestNoCountSaysSo(t *testing.T) {
	s := listen(t, sink.Options{NoCount: true})
	c := connect(t, s)
	assert.Equal(t, "17.0 (terapush-sink-no-count)", c.ParameterStatus("server_version"))
	assert.Contains(t, string(exec1(t, c, "select version()").Rows[0][0]), "terapush-sink-no-count")
	tag, err := c.CopyFrom(t.Context(), strings.NewReader("1\n2\n"), "COPY t FROM STDIN")
	require.NoError(t, err)
	assert.Zero(t, tag.RowsAffected())
	assert.EqualValues(t, 4, s.Stats().Bytes)
}
