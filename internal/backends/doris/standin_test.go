package doris

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/loader"
)

// standIn is a scripted cluster.
type standIn struct {
	*fake.Cluster
	target loader.Target // names the database and no table
}

func startStandIn(t testing.TB, o fake.Options) *standIn {
	o.Password = "hunter2"
	c, err := fake.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &standIn{c, loader.Target{
		Scheme: "doris", Hosts: []string{c.SQL}, User: "root", Password: loader.Secret(o.Password), Database: fake.Database,
		Params: map[string][]string{"http_port": {c.HTTPPort()}}, TLS: loader.TLSOff,
	}}
}

// startWithStore starts a stand-in and an object store for it.
func startWithStore(t *testing.T) (*standIn, *loader.Target, *s3mem.Backend) {
	store := backendtest.StoreAndKeys(t, nil)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2secret")
	via := backendtest.StoreTarget(t, "s3://bucket/pre/fix?path_style=true&region=us-east-1", store.URL)
	return startStandIn(t, fake.Options{}), &via, store.Backend
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
	return prepared(t, target, d, c).(*opened)
}

func prepared(t testing.TB, target loader.Target, d dataset.Dataset, c loader.Contract) loader.Loader {
	t.Helper()
	l := backendtest.Open(t, New(), target, testDeps())
	_, err := l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	return l
}
