package s3

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// The helpers of backendtest, by short names.
var fakeStore, targetOf, eachStore = backendtest.StoreAndKeys, backendtest.StoreTarget, backendtest.EachStore

const batchRows = 400

func contract(f batch.Format) loader.Contract {
	return loader.Contract{Method: methodPut, Format: f, Delivery: loader.ExactlyOnce, Dedup: loader.DedupKey, BatchRows: batchRows}
}

func documents(t *testing.T) dataset.Dataset {
	return backendtest.Dataset(t, "documents", dataset.Options{Seed: 1, PayloadBytes: 512, PayloadKind: dataset.Text})
}

// batchOf is batch n of a run, held.
func batchOf(t *testing.T, run string, n int64) *batch.Batch {
	b := backendtest.Batch(t, documents(t), batch.CSV, batch.ID{Run: run, Number: n}, n*batchRows, batchRows)
	b.Hold()
	return b
}

func TestConformance(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		prefix := target.Database
		h := backendtest.Harness(documents(t), loadertest.Harness{
			Driver: New(), Deps: backendtest.Deps(), Contract: contract(batch.CSV),
			Target: func(*testing.T) loader.Target {
				target.Database = prefix + "/" + strings.ToLower(rand.Text())
				return target
			},
			// The request's head is the message that a PUT is known by; its answer is the next one on the connection.
			Commit: "PUT /", Overlap: true,
		})
		if strings.Contains(t.Name(), "real") {
			// versitygw keeps what it has seen of a body that is cut: TestBodyIsCut.
			h.Driver, h.Deps = withoutFaults{New()}, loader.Deps{}
		}
		loadertest.Run(t, h)
	})
}

// withoutFaults is a driver that the suite puts no faults in front of.
type withoutFaults struct{ loader.Driver }

func (d withoutFaults) Open(ctx context.Context, t loader.Target, _ loader.Deps) (loader.Loader, error) {
	return d.Driver.Open(ctx, t, backendtest.Deps())
}

// A store must not keep half an object, and versitygw 1.8.0 does. It is not taken for the batch, and is replaced.
func TestBodyIsCut(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		faulty := backendtest.Deps()
		faults := loadertest.NewFaults(faulty.Dial)
		defer faults.Close()
		faulty.Dial = faults.Dial
		l := backendtest.Open(t, New(), target, faulty)
		_, err := l.Prepare(t.Context(), loader.Preparation{Run: "run", Contract: contract(batch.CSV)})
		require.NoError(t, err)
		s := backendtest.Session(t, l, contract(batch.CSV))

		for n := range int64(3) {
			b := batchOf(t, "run", n)
			faults.CutAfter(int64(len(b.Encoded)) / 2)
			_, err = s.Load(t.Context(), b)
			require.Error(t, err)
			v := New().Classify(err)
			assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassConnection}, v, "%v", err)
			backendtest.Resolves(t, l, loader.RefOf(b), loader.No)
			waitForHalf(t, l, n)
			_, err = s.Load(t.Context(), b)
			require.NoError(t, err)
			backendtest.Resolves(t, l, loader.RefOf(b), loader.Yes)
		}
	})
}

// waitForHalf waits until the store has put half an object there, or has had the time to: one that does so later would
// replace the whole object with it.
func waitForHalf(t *testing.T, l loader.Loader, number int64) {
	t.Helper()
	there := false
	for began := time.Now(); !there && time.Since(began) < 200*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		require.NoError(t, l.(loader.Inventory).Objects(t.Context(), "run", func(_ string, found, _ int64) error {
			there = there || found == number
			return nil
		}))
	}
}

func prepared(t *testing.T, target loader.Target, run string) loader.Loader {
	t.Helper()
	l := backendtest.Open(t, New(), target, backendtest.Deps())
	_, err := l.Prepare(t.Context(), loader.Preparation{Run: run, Contract: contract(batch.CSV), Create: loader.CreateIfMissing})
	require.NoError(t, err)
	return l
}

func load(t *testing.T, l loader.Loader, run string, numbers ...int64) {
	t.Helper()
	s := backendtest.Session(t, l, contract(batch.CSV))
	for _, n := range numbers {
		ack, err := s.Load(t.Context(), batchOf(t, run, n))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: batchRows}, ack)
	}
}

func TestRunsLieApart(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		first := prepared(t, target, "run-1")
		load(t, first, "run-1", 0, 1)
		other := prepared(t, target, "run-10")
		load(t, other, "run-10", 0)
		stored, err := first.(loader.Sizer).Stored(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, len(batchOf(t, "run-1", 0).Encoded)+len(batchOf(t, "run-1", 1).Encoded), stored)

		// A new run refuses a folder in which something lies; one that goes on expects it.
		again := backendtest.Open(t, New(), target, backendtest.Deps())
		p := loader.Preparation{Run: "run-1", Contract: contract(batch.CSV)}
		_, err = again.Prepare(t.Context(), p)
		require.ErrorContains(t, err, "000000000000.csv is in the folder of this new run")
		p.Resume = true
		table, err := again.Prepare(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, loader.Table{Name: target.Hosts[0] + "/" + target.Database + "/run-1"}, table)
	})
}

// Silent and resuming runs look at nothing.
func TestSilent(t *testing.T) {
	var listings atomic.Int64
	server := fakeStore(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			listings.Add(1)
		}
		return false
	})
	l := backendtest.Open(t, New(), targetOf(t, "s3://bucket", server.URL), backendtest.Deps())
	_, err := l.Session(t.Context(), contract(batch.CSV))
	require.Error(t, err)
	_, err = l.(loader.Resolver).Resolve(t.Context(), loader.Ref{})
	require.Error(t, err)
	_, err = l.(loader.Sizer).Stored(t.Context())
	require.Error(t, err)
	for _, create := range []loader.CreateMode{loader.CreateRecreate, loader.CreateTruncate} {
		_, err = l.Prepare(t.Context(), loader.Preparation{Run: "run", Contract: contract(batch.CSV), Create: create})
		require.Contains(t, loader.Explain(err), "leave --create "+string(create)+" out")
	}
	table, err := l.Prepare(t.Context(), loader.Preparation{Run: "run", Contract: contract(batch.CSV), Silent: true})
	require.NoError(t, err)
	assert.Equal(t, loader.Table{Name: "bucket/run", Created: true}, table)
	assert.EqualValues(t, 1, listings.Load(), "the one of Open")
	load(t, l, "run", 0)
	assert.Equal(t, "S3-compatible store", l.Server().Product)
	assert.Equal(t, server.URL, l.Server().Endpoint)
}

func TestNoBucket(t *testing.T) {
	_, err := New().Open(t.Context(), targetOf(t, "s3://elsewhere/p", fakeStore(t, nil).URL), backendtest.Deps())
	require.Contains(t, loader.Explain(err), "make the bucket first")
	assert.Equal(t, loader.ClassMissing, New().Classify(err).Class)
}

func TestCheck(t *testing.T) {
	target := targetOf(t, "s3://bucket/p", "")
	got, err := New().Check(target)
	require.NoError(t, err)
	assert.Equal(t, loader.ExactlyOnce, got.Delivery())
	target.Method = "copy"
	_, err = New().Check(target)
	require.ErrorContains(t, err, "has one method, put, and not")
	target.Method, target.Via = methodPut, &loader.Target{}
	_, err = New().Check(target)
	require.ErrorContains(t, err, "--staging")
	_, err = New().Open(t.Context(), target, backendtest.Deps())
	require.ErrorContains(t, err, "--staging")
	_, err = New().Check(targetOf(t, "s3://bucket/p?what=1", ""))
	require.ErrorContains(t, err, "no parameter")
}

func TestExplain(t *testing.T) {
	p := loader.Preparation{Contract: contract(batch.Parquet)}
	assert.Equal(t, []loader.Statement{
		{When: "once", Text: "LIST s3://bucket/a/b/RUN/"},
		{When: "per batch", Text: "PUT s3://bucket/a/b/RUN/<batch number, 12 digits>.parquet"},
		{When: "to verify", Text: "LIST s3://bucket/a/b/RUN/"},
	}, New().Explain(targetOf(t, "s3://bucket/a/b/?region=x", ""), p))
	p.Silent = true
	assert.Equal(t, "PUT s3://bucket/RUN/<batch number, 12 digits>.parquet", New().Explain(targetOf(t, "s3://bucket", ""), p)[0].Text)
}

// Nothing but the goal's store is checked: no database reads the objects.
func TestChecks(t *testing.T) {
	target := targetOf(t, "s3://bucket/p", fakeStore(t, nil).URL)
	for _, f := range backendtest.Doctor(t, New(), backendtest.Deps(), target, loader.Intent{Workers: 4}) {
		require.NotEqual(t, "store from the server", f.Check)
		require.NotEqual(t, loader.GradeFail, f.Grade, "%+v", f)
	}
}

// Nobody could check the authority of a store that is asked over http.
func TestAuthorityAndHTTP(t *testing.T) {
	target := targetOf(t, "s3://bucket/prefix", fakeStore(t, nil).URL)
	target.Method = methodPut
	deps := backendtest.Deps()
	deps.TLS = netio.Trust{CAFile: backendtest.NewAuthority(t).File}.TLS
	_, err := New().Open(t.Context(), target, deps)
	require.ErrorContains(t, err, "--tls-ca and an http:// endpoint contradict each other")
}
