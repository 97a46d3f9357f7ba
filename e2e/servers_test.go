package e2e_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
)

// kind is one of the servers, by the scheme of its URL.
type kind string

const (
	postgres kind = "postgres"
	mariaDB  kind = "mariadb"
	mySQL    kind = "mysql"
)

// database is one on a real server that belongs to one test, with the state folder of its runs.
type database struct {
	kind  kind
	url   *url.URL // with the superuser, who has no password
	db    *sql.DB  // what the server's own client library sees
	state string
}

// eachServer runs a test on all servers, each with a database of its own.
func eachServer(t *testing.T, test func(t *testing.T, d *database)) {
	t.Parallel()
	onServers(t, []kind{postgres, mariaDB, mySQL}, test)
}

func onServers(t *testing.T, kinds []kind, test func(t *testing.T, d *database)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, k))
		})
	}
}

// newDatabase makes a database on the server that is up for all tests.
func newDatabase(t *testing.T, k kind) *database {
	t.Helper()
	variable := "TERAPUSH_TEST_" + strings.ToUpper(string(k))
	text := os.Getenv(variable)
	if text == "" {
		missing(t, `%s is not set: run scripts/servers up and eval "$(scripts/servers env)"`, variable)
	}
	return makeDatabase(t, k, text)
}

func makeDatabase(t *testing.T, k kind, server string) *database {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	admin := openSQL(t, k, u)
	name := "e2e_" + strings.ToLower(rand.Text()[:10])
	_, err = admin.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	t.Cleanup(func() {
		drop := "DROP DATABASE " + name
		if k == postgres {
			drop += " WITH (FORCE)"
		}
		_, _ = admin.Exec(drop) // the server may be one that the test has killed
	})
	own := *u
	own.Path = "/" + name
	return &database{kind: k, url: &own, db: openSQL(t, k, &own), state: filepath.Join(t.TempDir(), "state")}
}

func openSQL(t *testing.T, k kind, u *url.URL) *sql.DB {
	t.Helper()
	driver, source := "pgx", u.String()
	if k != postgres {
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		c.Passwd, _ = u.User.Password()
		driver, source = "mysql", c.FormatDSN()
	}
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// exec runs statements as the superuser.
func (d *database) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := d.db.Exec(s)
		require.NoError(t, err, s)
	}
}

// number answers a question with a number.
func (d *database) number(t *testing.T, query string) (n int64) {
	t.Helper()
	require.NoError(t, d.db.QueryRow(query).Scan(&n), query)
	return n
}

// text answers a question with a text.
func (d *database) text(t *testing.T, query string) (s string) {
	t.Helper()
	require.NoError(t, d.db.QueryRow(query).Scan(&s), query)
	return s
}

// bytesType is the server's name for a column of any bytes.
func (d *database) bytesType() string {
	if d.kind == postgres {
		return "bytea"
	}
	return "LONGBLOB"
}

// createTable makes the dataset's table by hand; more is added behind the columns.
func (d *database) createTable(t *testing.T, name, more string) {
	t.Helper()
	d.exec(t, fmt.Sprintf("CREATE TABLE %s (document_id BIGINT NOT NULL, payload %s NOT NULL%s)", name, d.bytesType(), more))
}

// target is the database's URL for terapush, perhaps by another way than straight, or as another user.
func (d *database) target(change ...func(*url.URL)) string {
	u := *d.url
	for _, f := range change {
		f(&u)
	}
	return u.String()
}

// through leads by another address: a proxy's.
func through(address string) func(*url.URL) { return func(u *url.URL) { u.Host = address } }

// as is another user. The password may be empty.
func as(user, password string) func(*url.URL) {
	return func(u *url.URL) {
		u.User = url.User(user)
		if password != "" {
			u.User = url.UserPassword(user, password)
		}
	}
}
