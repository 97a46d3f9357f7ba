package oracle

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// TestMain runs more tests at a time than there are cores: most of their time goes into pauses before retries and into
// waiting for locks.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

const secret = "hunter2"

// patience is how long anything may take that must not hang.
const patience = 30 * time.Second

// standIn is a server, and the back-end with a client that behaves as one of the two drivers does: no Oracle can be had
// for a test.
type standIn struct {
	*fake.Server
	backend Driver
}

// startStandIn starts a stand-in that ends with the test. With o.Native its client is like godror, with direct path;
// otherwise it is like go-ora, behind the guard.
func startStandIn(t testing.TB, o fake.Options) *standIn {
	t.Helper()
	server, err := fake.Start(o)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	c := client{
		name: "stand-in", times: plainTimes, maybeTimes: plainTimes,
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
	if o.Native {
		c.directPath, c.endsByStatement = true, true
		c.connector = dialing(server, false)
	} else {
		likeGoOra(&c, server)
	}
	return &standIn{server, Driver{c}}
}

// dialing returns the connector of a client that uses the stand-in's driver as it is.
func dialing(s *fake.Server, watch bool) func(loader.Target, loader.Deps, int) (driver.Connector, error) {
	return func(_ loader.Target, d loader.Deps, _ int) (driver.Connector, error) {
		return s.Connector(watch, func(ctx context.Context) (net.Conn, error) {
			return d.Dial(ctx, "tcp", s.Address())
		}), nil
	}
}

// table is a target with a method and a table that does not exist yet.
func (s *standIn) table(method string) loader.Target {
	return loader.Target{
		Scheme: "oracle", Hosts: []string{s.Address()}, User: "tera", Password: secret, Database: "free",
		Method: method, Table: "t_" + strings.ToLower(rand.Text()), TLS: loader.TLSOff,
	}
}

// name is the table's as the catalog has it.
func name(t loader.Target) string { return strings.ToUpper(t.Table) }

// prepare opens the target and prepares the journal in it, unless change says something else.
func (s *standIn) prepare(
	t testing.TB, target loader.Target, change func(*loader.Preparation),
) (*opened, loader.Table, error) {
	t.Helper()
	l := backendtest.Open(t, s.backend, target, backendtest.Deps())
	p := loader.Preparation{
		Run: "r", Schema: schemaOf(t, "journal"), Contract: contractOf(target.Method, 100), Create: loader.CreateIfMissing,
	}
	if change != nil {
		change(&p)
	}
	table, err := l.Prepare(t.Context(), p)
	o, _ := l.(*opened)
	return o, table, err
}

// begins changes a preparation to that of a run that begins, and shares the table.
func begins(run string) func(*loader.Preparation) {
	return func(p *loader.Preparation) {
		p.Run, p.Begin, p.Owner = run, &loader.Beginning{Appends: true}, "it's me@here, process 1"
	}
}

// open prepares a table, in which the run "r" begins.
func (s *standIn) open(t testing.TB, target loader.Target, d dataset.Dataset, c loader.Contract) *opened {
	t.Helper()
	l, _, err := s.prepare(t, target, func(p *loader.Preparation) {
		begins("r")(p)
		p.Schema, p.Contract, p.PrimaryKey = d.Schema(), c, c.Delivery == loader.ExactlyOnce
	})
	require.NoError(t, err)
	return l
}

// settled is what Prepare has settled.
func settled(t *testing.T, l *opened) *sqlload.State {
	t.Helper()
	s, err := l.State()
	require.NoError(t, err)
	return s
}

// exact checks that the table holds the rows 0 … n−1, each once.
func (s *standIn) exact(t testing.TB, target loader.Target, n int64) {
	t.Helper()
	counts := s.Counts(name(target))
	require.Len(t, counts, int(n))
	for number := range n {
		require.Equal(t, 1, counts[number], "row %d", number)
	}
}

// requests counts the requests so far that contain the text.
func (s *standIn) requests(text string) (n int) {
	for _, r := range s.Requests() {
		if r.Is(text) {
			n++
		}
	}
	return n
}

// reached waits until the server has received so many requests that contain the text.
func (s *standIn) reached(t *testing.T, text string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.requests(text) >= n }, patience, time.Millisecond)
}

// quiet waits until the server has ended whatever its clients have left.
func (s *standIn) quiet(t *testing.T) {
	t.Helper()
	require.Eventually(t, s.Quiet, patience, time.Millisecond)
}

func datasetOf(t testing.TB, name string, kind dataset.Kind) dataset.Dataset {
	t.Helper()
	o := dataset.Options{Seed: 1, PayloadKind: kind}
	if name == "documents" {
		o.PayloadBytes = 256
	}
	return backendtest.Dataset(t, name, o)
}

func documents(t testing.TB) dataset.Dataset { return datasetOf(t, "documents", dataset.Text) }

// schemaOf returns a schema whose columns a test may change.
func schemaOf(t testing.TB, name string) rows.Schema {
	s := datasetOf(t, name, "").Schema()
	s.Columns = slices.Clone(s.Columns)
	return s
}

// contractOf is the best that a method can do.
func contractOf(method string, batchRows int64) loader.Contract {
	caps := capsOf(method)
	return loader.Contract{
		Method: method, Format: caps.Formats[0], Delivery: caps.Delivery(), Dedup: caps.Dedup, BatchRows: batchRows,
	}
}

// atLeastOnce is the contract without claims.
func atLeastOnce(c loader.Contract) loader.Contract {
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	return c
}

// numbered is the n-th batch of the run "r".
func numbered(t testing.TB, d dataset.Dataset, c loader.Contract, n int64) *batch.Batch {
	t.Helper()
	return backendtest.Batch(t, d, c.Format, batch.ID{Run: "r", Number: n}, n*c.BatchRows, c.BatchRows)
}

func load(ctx context.Context, s loader.Session, b *batch.Batch) (loader.Ack, error) {
	b.Hold()
	defer b.Release()
	return s.Load(ctx, b)
}

// loads sends batches over a session of its own.
func loads(t testing.TB, l loader.Loader, c loader.Contract, batches ...*batch.Batch) {
	t.Helper()
	s, err := l.Session(t.Context(), c)
	require.NoError(t, err)
	for _, b := range batches {
		_, err = load(t.Context(), s, b)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
}
