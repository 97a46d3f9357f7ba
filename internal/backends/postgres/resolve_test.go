package postgres_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// made opens a loader on a table that it has made.
func made(t *testing.T, to loader.Target) loader.Loader {
	t.Helper()
	return prepared(t, to, preparation(t, loader.CreateIfMissing))
}

// Runs that start at the same moment get ranges of their own.
func TestReserveAtOnce(t *testing.T) {
	to := target(t)
	made(t, to)
	const runs, rows = 8, 1000
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		taken = make(map[int64]bool)
	)
	for run := range runs {
		wg.Go(func() {
			p := preparation(t, loader.CreateNever)
			p.Run = fmt.Sprintf("run-%d", run)
			l := open(t, to)
			_, err := l.Prepare(t.Context(), p)
			assert.NoError(t, err)
			first, err := l.(loader.Claims).Reserve(t.Context(), -1, rows, math.MaxInt64)
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			taken[first] = true
		})
	}
	wg.Wait()
	for i := range int64(runs) {
		assert.True(t, taken[i*rows], "%v", taken)
	}
}

// An attempt that hangs in Load is ended as well, and only that: what the other workers do is none of its business.
func TestResolveEndsOnlyWhatIsStuck(t *testing.T) {
	d := backendtest.Deps()
	faults := loadertest.NewFaults(d.Dial)
	t.Cleanup(faults.Close)
	d.Dial = faults.Dial
	to := target(t)
	to.TLS = loader.TLSOff
	l := backendtest.Open(t, postgres.New(), to, d)
	c := contract("copy", batch.PGBinary)
	require.NoError(t, prepare(t, l, c))
	stuck, well := backendtest.Session(t, l, c), backendtest.Session(t, l, c)

	b := documentsOf(t, 0, 0, 1000)
	hit := faults.StallAfter(int64(len(b.Encoded)) / 2)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := stuck.Load(ctx, b)
		failed <- err
	}()
	<-hit
	backendtest.Resolves(t, l, loader.RefOf(b), loader.No)
	_, err := well.Load(t.Context(), documentsOf(t, 1, 1000, 1000))
	assert.NoError(t, err)
	ack, err := well.Load(t.Context(), documentsOf(t, 0, 0, 1000))
	require.NoError(t, err)
	assert.False(t, ack.AlreadyApplied)
	cancel()
	assert.ErrorIs(t, <-failed, context.Canceled)
}

// A transaction that cannot be ended holds the claim: nothing is certain until it has gone one way or the other.
func TestResolveWaitsForTheClaim(t *testing.T) {
	to := target(t)
	to.Settings = []loader.Setting{{Name: "lock_timeout", Value: "200ms"}}
	l := made(t, to)
	ref := loader.Ref{ID: batch.ID{Run: "run-1", Number: 3}, First: 30, Rows: 10}
	for range 2 { // the first look leaves nothing behind
		backendtest.Resolves(t, l, ref, loader.No)
	}

	c, err := pgconn.Connect(t.Context(), server(t))
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	claim := "BEGIN; INSERT INTO " + claimsOf(to) + " VALUES ('run-1', 3, 30, 10)"
	for end, want := range map[string]loader.Applied{"ROLLBACK": loader.No, "COMMIT": loader.Yes} {
		sql(t, "DELETE FROM "+claimsOf(to))
		require.NoError(t, c.Exec(t.Context(), claim).Close())
		_, err := l.(loader.Resolver).Resolve(t.Context(), ref)
		assert.ErrorContains(t, err, "55P03")
		v := postgres.New().Classify(err)
		assert.Equal(t, loader.Unknown, v.Applied)
		assert.True(t, v.Retry)
		require.NoError(t, c.Exec(t.Context(), end).Close())
		backendtest.Resolves(t, l, ref, want)
	}
}
