package oracle

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/fake/bucket"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// No Oracle can be had for a test, so the tests with rows run over a scripted stand-in, by clients that behave as the
// two drivers do.
type standIn struct {
	*fake.Server
	backend backend
}

// startStandIn starts a stand-in that ends with the test. native makes its client one like godror, with direct path;
// otherwise it is like go-ora, and what guards go-ora guards it.
func startStandIn(t testing.TB, native bool, o fake.Options) *standIn {
	t.Helper()
	o.Cancels, o.BatchErrors = native, !native
	server, err := fake.Start(o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	c := client{
		name: "stand-in", timeBinds: bindTimes(func(t time.Time) time.Time { return t }),
		code: func(err error) (int, string, bool) {
			said := (*fake.Error)(nil)
			if !errors.As(err, &said) {
				return 0, "", false
			}
			if said.First != nil {
				said = said.First
			}
			return said.Code, said.Error(), true
		},
	}
	c.connector = func(_ loader.Target, d loader.Deps, _ int) (driver.Connector, error) {
		return server.Connector(func(ctx context.Context) (net.Conn, error) {
			return d.Dial(ctx, "tcp", server.Address())
		}), nil
	}
	if native {
		c.directPath, c.endsByStatement = true, true
	} else {
		likeGoOra(&c, server)
	}
	return &standIn{server, backend{c}}
}

func testDeps() loader.Deps {
	return loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: slog.New(slog.DiscardHandler)}
}

const secret = "hunter2"

// table is a target with a method and a table that does not exist yet.
func (s *standIn) table(method string) loader.Target {
	return loader.Target{
		Scheme: "oracle", Hosts: []string{s.Address()}, User: "tera", Password: secret, Database: "free",
		Method: method, Table: "t_" + strings.ToLower(rand.Text()), TLS: loader.TLSOff,
	}
}

// through is table by way of an object store.
func (s *standIn) through(b *bucket.Bucket) loader.Target {
	t := s.table(methodCloudCopy)
	t.Options = map[string]string{optionCredential: "CRED"}
	t.Via = viaOf(b)
	return t
}

// storeAddress is where the stand-in believes the object store to be: it reads over https alone.
const storeAddress = "https://store.example"

func viaOf(b *bucket.Bucket) *loader.Target {
	via := b.Target()
	via.Params.Set("server_endpoint", storeAddress)
	return via
}

// startWithStore starts a stand-in that reads from a bucket of its own.
func startWithStore(t *testing.T, o fake.Options) (*standIn, *bucket.Bucket) {
	t.Helper()
	b := bucket.Start()
	t.Cleanup(b.Close)
	o.Objects = func(uri string) ([]byte, error) {
		key, found := strings.CutPrefix(uri, storeAddress+"/"+bucket.Name+"/")
		if text := b.Get(key); found && text != "" {
			return []byte(text), nil
		}
		return nil, fmt.Errorf("no such object")
	}
	return startStandIn(t, false, o), b
}

// open opens and prepares a table for the run "r".
func (s *standIn) open(t testing.TB, target loader.Target, d dataset.Dataset, c loader.Contract) loader.Loader {
	t.Helper()
	l, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), loader.Preparation{
		Run: "r", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing, PrimaryKey: c.Delivery == loader.ExactlyOnce,
	})
	require.NoError(t, err)
	return l
}

// name is the table's as the catalog has it.
func name(t loader.Target) string { return strings.ToUpper(t.Table) }

// exact checks that the table holds the rows 0 … n−1, each once.
func (s *standIn) exact(t testing.TB, target loader.Target, n int64) {
	t.Helper()
	keys := s.Keys(name(target))
	require.Len(t, keys, int(n))
	for key, times := range keys {
		require.Equal(t, 1, times, "row %s", key)
	}
}

func datasetOf(t testing.TB, name string, kind dataset.Kind) dataset.Dataset {
	t.Helper()
	o := dataset.Options{Seed: 1, PayloadKind: kind}
	if name == "documents" {
		o.PayloadBytes = 256
	}
	d, err := dataset.New(name, o)
	require.NoError(t, err)
	return d
}

func documents(t testing.TB) dataset.Dataset { return datasetOf(t, "documents", dataset.Text) }

// Rows of datasets.
var encoded, rowOf = backendtest.Batch, backendtest.Row

// contractOf is the best that a method can do.
func contractOf(method string, batchRows int64) loader.Contract {
	caps := capsOf(method)
	c := loader.Contract{Method: method, Format: caps.Formats[0], Delivery: caps.Delivery(), Dedup: caps.Dedup, BatchRows: batchRows}
	if caps.Staged {
		c.GroupBatches, c.Commits = 4, 1
	}
	return c
}

// atLeastOnce is the contract without claims.
func atLeastOnce(c loader.Contract) loader.Contract {
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	return c
}

func load(ctx context.Context, s loader.Session, b *batch.Batch) (loader.Ack, error) {
	b.Hold()
	defer b.Release()
	return s.Load(ctx, b)
}

// loggingTo are dependencies whose log can be read.
func loggingTo(w io.Writer) loader.Deps {
	deps := testDeps()
	deps.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return deps
}
