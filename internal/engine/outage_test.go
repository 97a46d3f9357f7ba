package engine_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// A server that does not come back ends the run when --retry-for is over, whichever of load and look-up finds it away,
// plus one attempt to connect where that hangs.
func TestOutageHasOneBudget(t *testing.T) {
	refused := &loader.Error{Op: "connect", Applied: loader.No, Err: loadertest.ErrConnection}
	for name, c := range map[string]struct {
		lost, asked error
		hangs       time.Duration // of a look-up, which then fails
		most, extra time.Duration
	}{
		"a commit":              {lost: loadertest.ErrConnection, asked: loadertest.ErrConnection, most: 5 * time.Second},
		"a commit, ten seconds": {lost: loadertest.ErrConnection, asked: loadertest.ErrConnection, most: 10 * time.Second},
		"a commit, ten minutes": {lost: loadertest.ErrConnection, asked: loadertest.ErrConnection, most: 10 * time.Minute},
		"nothing was applied":   {lost: refused, asked: refused, most: 5 * time.Second},
		"look-ups answer":       {lost: loadertest.ErrConnection, most: 5 * time.Second},
		"packets are dropped": {lost: loadertest.ErrConnection, asked: loadertest.ErrConnection, hangs: time.Hour,
			most: 5 * time.Second, extra: 10 * time.Second},
	} {
		subtest(t, name, func(t *testing.T) {
			b := newBench(t, 100, &loadertest.Memory{})
			b.config.Retry.Outage = &retry.Outage{Most: c.most, Log: b.config.Log}
			var first time.Time
			var mu sync.Mutex
			b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
				if batch.ID.Number < 10 {
					return next.Load(ctx, batch)
				}
				mu.Lock()
				lost := !first.IsZero()
				mu.Unlock()
				if !lost {
					time.Sleep(time.Second) // the attempts that were answered had begun before
					mu.Lock()
					first = time.Now()
					mu.Unlock()
				}
				return loader.Ack{}, c.lost
			}
			b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
				if c.asked == nil {
					return next.Resolve(ctx, ref)
				}
				select {
				case <-ctx.Done():
				case <-time.After(c.hangs):
				}
				return loader.Resolution{}, c.asked
			}
			_, s, err := b.run(t.Context())
			require.ErrorIs(t, err, loadertest.ErrConnection)
			require.EqualValues(t, 10, s.Batches)
			require.Equal(t, c.most+c.extra, time.Since(first))
		})
	}
}

// The database may be away while the store of a staged contract takes every batch.
func TestStoreIsNotTheDatabase(t *testing.T) {
	subtest(t, "commits", func(t *testing.T) {
		const most = 10 * time.Minute
		b := staged(t, 4000, &loadertest.Memory{
			Script:      always(loadertest.Fault{Delay: time.Second}),
			GroupScript: always(loadertest.Fault{Before: loadertest.ErrConnection}),
		})
		b.config.Retry = retry.Policy{Retries: 1, Outage: &retry.Outage{Most: most, Log: b.config.Log}}
		var first time.Time
		b.note = func(e event.Event) error {
			if e.Members > 0 && first.IsZero() {
				first = time.Now()
			}
			return b.journal.add(e)
		}
		_, _, err := b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrConnection)
		require.NotContains(t, b.log.String(), "the server is back")
		require.Equal(t, most, time.Since(first))
	})
}

// After a failover to an empty server the claim table is missing, and a process whose sessions were ended may have lost its
// run: that is no outage, and asking again does not help.
func TestFinalAnswers(t *testing.T) {
	missing := errors.New(`relation "terapush_claims" does not exist`)
	refused := &loader.Error{Op: "load", Applied: loader.No, Err: loadertest.ErrConnection}
	for name, c := range map[string]struct {
		lost    error
		answer  error
		unknown []int64
	}{
		"no table after a lost answer":   {loadertest.ErrConnection, missing, []int64{3}},
		"no table after a refusal":       {refused, missing, nil},
		"taken over after a lost answer": {loadertest.ErrConnection, loader.Final(&loader.TakenOverError{Run: "r"}), []int64{3}},
		"taken over after a refusal":     {refused, loader.Final(&loader.TakenOverError{Run: "r"}), nil},
	} {
		subtest(t, name, func(t *testing.T) {
			b := newBench(t, 40, &loadertest.Memory{})
			b.config.Workers = 1
			b.config.Retry.Outage = &retry.Outage{Most: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)}
			classify := b.config.Classify
			b.config.Classify = func(err error) loader.Verdict {
				if errors.Is(err, missing) {
					return loader.Refused(loader.ClassMissing)
				}
				return classify(err)
			}
			sent, asked := 0, 0
			b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
				if batch.ID.Number < 3 {
					return next.Load(ctx, batch)
				}
				sent++
				return loader.Ack{}, c.lost
			}
			b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
				asked++
				return loader.Resolution{}, &loader.Error{Op: "look for the batch", Applied: loader.Unknown, Err: c.answer}
			}
			result, _, err := b.run(t.Context())
			require.ErrorIs(t, err, c.answer)
			require.ErrorAs(t, err, new(*loader.FinalError), "no resume helps")
			require.Equal(t, c.unknown, result.Unknown)
			require.Equal(t, []int{1, 1}, []int{sent, asked})
		})
	}
}

// An attempt that had no session needs no look-up: it is the question whether the server is there.
func TestUnconnectedAttemptIsNotResolved(t *testing.T) {
	subtest(t, "sessions", func(t *testing.T) {
		b := newBench(t, 4, &loadertest.Memory{})
		b.loader.refused = map[int]error{1: io.EOF, 2: io.EOF, 3: io.EOF}
		b.config.Classify = func(error) loader.Verdict { return loader.Reconnect(loader.ClassConnection) }
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Zero(t, b.memory.Resolved())
	})
}
