package faultproxy_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// target returns the server that an environment variable names. Without one the test is skipped, except in CI.
func target(t *testing.T, variable string) *url.URL {
	value := os.Getenv(variable)
	if value == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(variable + " is not set")
		}
		t.Skip(variable + " is not set")
	}
	u, err := url.Parse(value)
	require.NoError(t, err)
	return u
}

// An answer lost after the commit: the row is there, the client saw an error. A statement cut before it: no row.
func TestPostgresCommit(t *testing.T) {
	u := target(t, "TERAPUSH_TEST_POSTGRES")
	ctx := t.Context()
	direct, err := pgx.Connect(ctx, u.String())
	require.NoError(t, err)
	defer direct.Close(ctx)
	_, err = direct.Exec(ctx, "DROP TABLE IF EXISTS faultproxy_test; CREATE TABLE faultproxy_test (a int)")
	require.NoError(t, err)
	defer direct.Exec(context.Background(), "DROP TABLE faultproxy_test")

	insert := func(fault *faultproxy.Fault, value int) {
		p, err := faultproxy.New(u.Host, fault)
		require.NoError(t, err)
		defer p.Close()
		through := *u
		through.Host = p.Addr()
		through.RawQuery = "sslmode=disable"
		c, err := pgx.Connect(ctx, through.String())
		require.NoError(t, err)
		defer c.Close(ctx)
		tx, err := c.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, "INSERT INTO faultproxy_test VALUES ($1)", value)
		require.NoError(t, err)
		assert.Error(t, tx.Commit(ctx))
		assert.EqualValues(t, 1, fault.Injected())
	}
	insert(&faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("commit")}, 1)
	insert(&faultproxy.Fault{Action: faultproxy.Cut, Match: []byte("commit")}, 2)

	rows, err := direct.Query(ctx, "SELECT a FROM faultproxy_test")
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	assert.Equal(t, []int{1}, found)
}

func TestMariaDBCommit(t *testing.T) {
	u := target(t, "TERAPUSH_TEST_MARIADB")
	open := func(address string) *sql.DB {
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", address, u.Path[1:]
		config.Passwd, _ = u.User.Password()
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		return sql.OpenDB(connector)
	}
	direct := open(u.Host)
	defer direct.Close()
	for _, statement := range []string{"DROP TABLE IF EXISTS faultproxy_test", "CREATE TABLE faultproxy_test (a int) ENGINE=InnoDB"} {
		_, err := direct.Exec(statement)
		require.NoError(t, err)
	}
	defer direct.Exec("DROP TABLE faultproxy_test")

	insert := func(fault *faultproxy.Fault, value string) {
		p, err := faultproxy.New(u.Host, fault)
		require.NoError(t, err)
		defer p.Close()
		db := open(p.Addr())
		defer db.Close()
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("INSERT INTO faultproxy_test VALUES (" + value + ")")
		require.NoError(t, err)
		assert.Error(t, tx.Commit())
		assert.EqualValues(t, 1, fault.Injected())
	}
	insert(&faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("COMMIT")}, "1")
	insert(&faultproxy.Fault{Action: faultproxy.Cut, Match: []byte("COMMIT")}, "2")

	var count, sum int
	require.NoError(t, direct.QueryRow("SELECT COUNT(*), SUM(a) FROM faultproxy_test").Scan(&count, &sum))
	assert.Equal(t, []int{1, 1}, []int{count, sum})
}
