package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// eachServer runs the test on MariaDB and on MySQL, in a database of its own.
func eachServer(t *testing.T, test func(t *testing.T, s *testServer)) {
	onServers(t, []flavour{mariaDB, mySQL}, test)
}

// transactional is eachServer for what holds wherever LOAD DATA can be rolled back.
func transactional(t *testing.T, test func(t *testing.T, s *testServer)) {
	onServers(t, []flavour{mariaDB, mySQL, tiDB}, test)
}

// everyServer is eachServer for what holds on all servers of the family.
func everyServer(t *testing.T, test func(t *testing.T, s *testServer)) {
	onServers(t, []flavour{mariaDB, mySQL, tiDB, oceanBase}, test)
}

func onServers(t *testing.T, all []flavour, test func(t *testing.T, s *testServer)) {
	for _, f := range all {
		t.Run(strings.ToLower(string(f)), func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for the server
			s := newTestServer(t, backendtest.Server(t, "TERAPUSH_TEST_"+strings.ToUpper(string(f))))
			s.flavour = f
			if f == oceanBase { // where it alone is exactly once
				s.target.Method = methodInsert
			}
			test(t, s)
		})
	}
}

// testServer is a database of its own on a real server.
type testServer struct {
	flavour flavour
	target  loader.Target // names the database, method load-data (OceanBase: insert) and no table
	deps    loader.Deps
	db      *sql.DB // an administrator's view, for setting the stage
}

func newTestServer(t testing.TB, url string) *testServer {
	target, err := loader.ParseTarget(url)
	require.NoError(t, err)
	target.TLS, target.Method = loader.TLSOff, methodLoadData
	s := &testServer{target: target, deps: backendtest.Deps()}
	all, err := endpoints(target, s.deps)
	require.NoError(t, err)
	config := all[0].config.Clone()
	config.DBName, config.InterpolateParams = "", true
	s.db = sql.OpenDB(connector(config, setup{}, nil))
	t.Cleanup(func() { _ = s.db.Close() })
	s.target.Database = "tp-" + strings.ToLower(rand.Text()[:10]) // a dash: names need their quotes
	s.exec(t, "CREATE DATABASE "+quote(s.target.Database))
	t.Cleanup(func() { s.exec(t, "DROP DATABASE "+quote(s.target.Database)) })
	return s
}

func (s *testServer) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := s.db.ExecContext(context.Background(), query, args...)
	require.NoError(t, err, query)
}

// count answers a question with a number.
func (s *testServer) count(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, s.db.QueryRowContext(t.Context(), query, args...).Scan(&n), query)
	return n
}

// rowsIn counts the rows of a table of the test's database.
func (s *testServer) rowsIn(t *testing.T, table string) int64 {
	t.Helper()
	return s.count(t, "SELECT COUNT(*) FROM "+tableName{s.target.Database, table}.quoted())
}

// table is the test's target with a table's name.
func (s *testServer) table(name string) loader.Target {
	t := s.target
	t.Table = name
	return t
}

// open opens and prepares a table.
func (s *testServer) open(t testing.TB, target loader.Target, p loader.Preparation) *opened {
	t.Helper()
	return prepared(t, target, s.deps, p)
}

func prepared(t testing.TB, target loader.Target, deps loader.Deps, p loader.Preparation) *opened {
	t.Helper()
	l := backendtest.Open(t, New(), target, deps)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	return l.(*opened)
}

// silent asks nothing about a table of documents.
func silent(t testing.TB, c loader.Contract) loader.Preparation {
	p := preparation(documents(t, 10), c)
	p.Silent = true
	return p
}

// table1 is where most tests load, and its name in SQL.
func (s *testServer) table1() string { return tableName{s.target.Database, "t"}.quoted() }

// account makes an account with a password that may do what is listed in the test's database.
func (s *testServer) account(t *testing.T, password, privileges string) (to loader.Target, quoted string) {
	user := "u" + strings.TrimPrefix(s.target.Database, "tp-")
	quoted = "'" + user + "'@'%'"
	s.exec(t, "CREATE USER "+quoted+" IDENTIFIED BY ?", password)
	t.Cleanup(func() { s.exec(t, "DROP USER "+quoted) })
	s.exec(t, "GRANT "+privileges+" ON "+quote(s.target.Database)+".* TO "+quoted)
	to = s.table("t")
	to.User, to.Password = user, loader.Secret(password)
	return to, quoted
}

func (db *opened) testSession(t testing.TB, c loader.Contract) *session {
	t.Helper()
	s, err := db.open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// documents are the rows of most tests.
func documents(t testing.TB, payloadBytes int) dataset.Dataset {
	return backendtest.Dataset(t, "documents", dataset.Options{Seed: 1, PayloadBytes: payloadBytes})
}

// sourceOf is one of the datasets without a payload.
func sourceOf(t testing.TB, name string) dataset.Dataset {
	return backendtest.Dataset(t, name, dataset.Options{Seed: 7})
}

// contractOf is the method's with claims, in batches of n rows.
func contractOf(method string, n int64) loader.Contract {
	m, _ := loader.FindMethod(New(), method)
	c := loader.Contract{
		Method: method, Format: m.Caps.Formats[0], Delivery: loader.ExactlyOnce, Dedup: m.Caps.Dedup, BatchRows: n,
	}
	if m.Caps.Staged {
		c.GroupBatches, c.Commits = 3, m.Caps.Commits
	}
	return c
}

// preparation makes the table if it is missing.
func preparation(d dataset.Dataset, c loader.Contract) loader.Preparation {
	return loader.Preparation{
		Run: "test", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing,
		Begin: &loader.Beginning{Appends: true}, Owner: "a test",
	}
}

// batchOf encodes rows first … first+n−1.
func batchOf(t testing.TB, d dataset.Dataset, f batch.Format, id batch.ID, first, n int64) *batch.Batch {
	b := backendtest.Batch(t, d, f, id, first, n)
	b.Hold()
	return b
}

// textBatch is a batch of hand-written rows, which may be wrong on purpose.
func textBatch(id batch.ID, n int64, text string) *batch.Batch {
	b := &batch.Batch{ID: id, Format: batch.TSV, Rows: n, Encoded: []byte(text)}
	b.Hold()
	return b
}

func id(number int64) batch.ID { return batch.ID{Run: "test", Number: number} }

func stateOf(t *testing.T, db *opened) *sqlload.State {
	s, err := db.State()
	require.NoError(t, err)
	return s
}
