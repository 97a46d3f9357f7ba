package doris

import (
	"crypto/rand"
	"database/sql"
	"net"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/pkg/loader"
)

// standIn is a scripted cluster with a database d.
type standIn struct {
	*fake.Cluster
	target loader.Target // names the database and no table
	db     *sql.DB       // an administrator's view
}

func startStandIn(t testing.TB, o fake.Options) *standIn {
	o.Password = "hunter2"
	c, err := fake.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr = "root", o.Password, "tcp", c.SQLAddress()
	k, err := mysql.NewConnector(config)
	require.NoError(t, err)
	s := &standIn{Cluster: c, db: sql.OpenDB(k)}
	t.Cleanup(func() { _ = s.db.Close() })
	_, err = s.db.Exec("CREATE DATABASE d")
	require.NoError(t, err)
	host, _, err := net.SplitHostPort(c.SQLAddress())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	s.target = loader.Target{
		Scheme: "doris", Hosts: []string{c.SQLAddress()}, User: "root", Password: loader.Secret(o.Password), Database: "d",
		Params: map[string][]string{"http_port": {c.HTTPPort()}}, TLS: loader.TLSOff,
	}
	return s
}

// table is the target with a method and a table that does not exist yet.
func (s *standIn) table(method string, options map[string]string) loader.Target {
	t := s.target
	t.Method, t.Options = method, options
	t.Table = "t_" + strings.ToLower(rand.Text())
	return t
}

// open opens and prepares a table.
func (s *standIn) open(t testing.TB, target loader.Target, d dataset.Dataset, c loader.Contract) *opened {
	t.Helper()
	l := prepared(t, target, d, c)
	if s, ok := l.(*staged); ok {
		return s.opened
	}
	return l.(*opened)
}

func prepared(t testing.TB, target loader.Target, d dataset.Dataset, c loader.Contract) loader.Loader {
	t.Helper()
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	return l
}
