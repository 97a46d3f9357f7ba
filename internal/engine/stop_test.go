package engine_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// The batches that are done need no run to be complete.
func TestDrainAfterTheLastBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100, &loadertest.Memory{Script: always(loadertest.Fault{Delay: time.Second})})
		b.done = func(number int64) bool { return number >= 4 }
		time.AfterFunc(time.Second/2, func() { close(b.drain) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.False(t, result.Drained)
		require.EqualValues(t, 4, s.Batches)
	})
}

func TestDrainEndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100, &loadertest.Memory{Script: always(loadertest.Fault{Before: loadertest.ErrConnection})})
		b.config.Retry.Retries = 1000
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(b.drain) })
		result, s, err := b.run(t.Context())
		require.Error(t, err)
		require.Equal(t, time.Minute, time.Since(start))
		require.Empty(t, result.Unknown, "the database was asked after each attempt")
		require.EqualValues(t, 4, s.FailedBatches)
	})
}

func TestCancelEndsAttempts(t *testing.T) {
	stall := always(loadertest.Fault{Stall: true})
	for name, c := range map[string]struct {
		open   func(*testing.T, int64, *loadertest.Memory) *bench
		memory *loadertest.Memory
		begun  int64 // batches
	}{
		"batches": {newBench, &loadertest.Memory{Script: stall}, 4}, "groups": {staged, &loadertest.Memory{GroupScript: stall}, 8},
	} {
		subtest(t, name, func(t *testing.T) {
			b := c.open(t, 400, c.memory)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			_, s, err := b.run(ctx)
			require.Equal(t, time.Second, time.Since(start))
			require.Error(t, err)
			require.Zero(t, s.Batches)
			require.Equal(t, c.begun, s.FailedBatches+s.UnknownBatches)
		})
	}
}

func TestCancelBetweenBatchesSaysWhy(t *testing.T) {
	b := newBench(t, 100, &loadertest.Memory{})
	why := errors.New("a second signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, s, err := b.run(ctx)
	require.Equal(t, why, err)
	require.Zero(t, s.Attempts)
}

func TestStuckWorkerDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 50, &loadertest.Memory{Script: func(number int64, attempt int) loadertest.Fault {
			if number == 0 && attempt == 1 {
				return loadertest.Fault{Stall: true}
			}
			return loadertest.Fault{Delay: time.Second}
		}})
		var others time.Time
		b.note = func(e event.Event) error {
			if e.Batch == 49 {
				others = time.Now()
			}
			return b.journal.add(e)
		}
		start := time.Now()
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, 17*time.Second, others.Sub(start), "three workers, 49 batches")
		require.GreaterOrEqual(t, time.Since(start), 2*time.Minute, "and then the deadline")
		require.Equal(t, 1, strings.Count(b.log.String(), "no answer within 2m0s"), b.log.String())

		stalls := strings.Count(b.log.String(), "a worker is stalled")
		require.Equal(t, 1, stalls, "once a stall:\n%s", b.log.String())
		require.Regexp(t, `send for 1m5s, batch 0, 0 B of 80[.0]* B sent`, b.log.String())
	})
}

func TestWatchdogOutlivesTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 4, &loadertest.Memory{Script: always(loadertest.Fault{Delay: 90 * time.Second})})
		close(b.drain)
		b.drain = nil
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4, strings.Count(b.log.String(), "a worker is stalled"))
	})
}

// The deadline of an attempt grows with the slowest one so far; a commit has one of its own for each of its batches;
// asking for the outcome has one that does not depend on the user's.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, &loadertest.Memory{Script: func(number int64, attempt int) loadertest.Fault {
			if number == 0 {
				return loadertest.Fault{Delay: 10 * time.Second}
			}
			return loadertest.Fault{Stall: attempt == 1}
		}})
		b.config.Workers = 1
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(b.log.String(), "no answer within 3m20s"), b.log.String())

		b = staged(t, 4, &loadertest.Memory{GroupScript: at(0, loadertest.Fault{Stall: true})})
		b.config.BatchTimeout = time.Minute
		_, _, err = b.run(t.Context())
		require.NoError(t, err)
		require.Contains(t, b.log.String(), "no answer within 4m0s")
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, &loadertest.Memory{Script: at(0, loadertest.Fault{Stall: true})})
		b.config.BatchTimeout = time.Second
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			ack, err := next.Load(ctx, batch)
			if err != nil {
				err = loadertest.ErrConnection // what a driver makes of a connection that was closed under it
			}
			return ack, err
		}
		b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
			until, _ := ctx.Deadline()
			require.Equal(t, time.Minute, time.Until(until))
			return next.Resolve(ctx, ref)
		}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Contains(t, b.log.String(), "no answer within 1s (see --batch-timeout): loadertest: connection reset")
		require.Equal(t, []event.Outcome{event.Unknown, event.Applied}, b.journal.outcomes(0))
		require.EqualValues(t, 1, s.Retries)
	})
}

func TestJournalThatCannotBeWrittenEndsTheRun(t *testing.T) {
	b := newBench(t, 100, &loadertest.Memory{})
	b.config.Workers = 1
	b.note = func(e event.Event) error {
		if e.Batch == 3 {
			return syscall.ENOSPC
		}
		return nil
	}
	result, s, err := b.run(t.Context())
	require.Equal(t, syscall.ENOSPC, err)
	require.EqualValues(t, 4, s.Batches, "the batch is in, whether or not the journal says so")
	require.Empty(t, result.Unknown)
	require.Zero(t, s.FailedBatches)
	require.Equal(t, 0, b.memory.Attempts(4))
	require.Zero(t, b.memory.Resolved(), "this disk does not affect the server's rows")
}

// A worker that waits for the rate has no batch, so a drain ends at once.
func TestDrainEndsTheWaitForTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1000, &loadertest.Memory{})
		b.config.Rate = engine.Rate{PerSecond: batchRows * encodedRow, BatchBytes: batchRows * encodedRow}
		start := time.Now()
		time.AfterFunc(10*time.Second, func() { close(b.drain) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, result.Handed, s.Batches)
	})
}
