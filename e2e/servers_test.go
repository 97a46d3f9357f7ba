package e2e_test

import (
	"crypto/rand"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// kind is one of the servers, by the scheme of its URL.
type kind string

const (
	postgres kind = "postgres"
	mariaDB  kind = "mariadb"
	mySQL    kind = "mysql"
	// The others that speak MySQL's protocol take part in a push and a resume.
	tiDB      kind = "tidb"
	oceanBase kind = "oceanbase"
	// PostgreSQL with the extension.
	pgVector kind = "pgvector"
)

// database is one on a real server that belongs to one test, with the state folder of its runs.
type database struct {
	kind   kind
	url    *url.URL // with the superuser, who has no password
	client          // the superuser's view by the server's own client library
	state  string
}

// eachServer runs a test on one server of each back-end that has claims, each with a database of its own. MySQL has
// MariaDB's back-end, whose tests run on both; here it takes part where the servers themselves answer in their own way.
func eachServer(t *testing.T, test func(t *testing.T, d *database)) {
	t.Parallel()
	onServers(t, backEnds(), test)
}

func backEnds() []kind { return []kind{postgres, mariaDB} }

func sqlServers() []kind { return append(backEnds(), mySQL) }

func everyServer() []kind { return append(sqlServers(), tiDB, oceanBase) }

func onServers(t *testing.T, kinds []kind, test func(t *testing.T, d *database)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t, k))
		})
	}
}

// newDatabase makes a database on the server that is up for all tests.
func newDatabase(t testing.TB, k kind) *database {
	t.Helper()
	if k == databend {
		return newEngine(t)
	}
	server := backendtest.Server(t, "TERAPUSH_TEST_"+strings.ToUpper(string(k)))
	if k == pgVector {
		k = postgres
	}
	return makeDatabase(t, k, server)
}

func makeDatabase(t testing.TB, k kind, server string) *database {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	admin := newClient(t, k, u)
	name := "e2e_" + strings.ToLower(rand.Text()[:10])
	require.NoError(t, admin.exec("CREATE DATABASE "+name))
	t.Cleanup(func() {
		drop := "DROP DATABASE " + name
		if k == postgres {
			drop += " WITH (FORCE)"
		}
		_ = admin.exec(drop) // the server may be one that the test has killed
	})
	own := *u
	own.Path = "/" + name
	return &database{kind: k, url: &own, client: newClient(t, k, &own), state: filepath.Join(t.TempDir(), "state")}
}

// must runs statements that have to work.
func (d *database) must(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		require.NoError(t, d.exec(s), s)
	}
}

// number answers a question with a number.
func (d *database) number(t testing.TB, query string) (answer int64) {
	t.Helper()
	require.NoError(t, d.query(query, func(scan func(...any) error) error { return scan(&answer) }), query)
	return answer
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

// name is the database's.
func (d *database) name() string { return strings.TrimPrefix(d.url.Path, "/") }

// methods are the database's, the default first.
func (d *database) methods() []string {
	switch d.kind {
	case postgres:
		return []string{"copy", "insert"}
	case databend:
		return databendMethods()
	default:
		return []string{"load-data", "insert"}
	}
}

// exact is the first method that is exactly once.
func (d *database) exact() string {
	if d.kind == oceanBase {
		return "insert"
	}
	return d.methods()[0]
}

// handOver gives the database to user tera, who has the difficult password.
func (d *database) handOver(t *testing.T) {
	t.Helper()
	if d.kind == postgres {
		d.must(t, "ALTER DATABASE "+d.name()+" OWNER TO tera", "GRANT ALL ON SCHEMA public TO tera")
	} else {
		d.must(t, "GRANT ALL ON "+d.name()+".* TO tera@'%'")
		t.Cleanup(func() { _ = d.exec("REVOKE ALL ON " + d.name() + ".* FROM tera@'%'") })
	}
}
