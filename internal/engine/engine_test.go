package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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

func TestEveryBatchExactlyOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault loadertest.Fault
		want  []event.Outcome // of a batch that is hit
	}{
		"no fault":              {loadertest.Fault{}, []event.Outcome{event.Applied}},
		"throttled":             {loadertest.Fault{Before: loadertest.ErrThrottled}, []event.Outcome{event.NotApplied, event.Applied}},
		"cut before the commit": {loadertest.Fault{Before: loadertest.ErrConnection}, []event.Outcome{event.Unknown, event.Applied}},
		"answer lost":           {loadertest.Fault{After: loadertest.ErrConnection}, []event.Outcome{event.Unknown, event.Already}},
		"stalled":               {loadertest.Fault{Stall: true}, []event.Outcome{event.NotApplied, event.Applied}},
		"slow":                  {loadertest.Fault{Delay: time.Minute}, []event.Outcome{event.Applied}},
	} {
		subtest(t, name, func(t *testing.T) {
			b := newBench(t, 20, &loadertest.Memory{Script: atEveryThird(c.fault)})
			result, s, err := b.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, engine.Result{Handed: 20}, result)
			b.exact()
			require.Equal(t, c.want, b.journal.outcomes(1))
			require.EqualValues(t, 19*batchRows+lastRows, s.Rows)
			require.EqualValues(t, 20, s.Batches)
			require.EqualValues(t, len(b.journal.events), s.Attempts)
		})
	}
}

// Where the source ends is known only when it is there, and then no number behind it counts as handed out or left.
func TestTheSourceSaysWhereItEnds(t *testing.T) {
	for _, batches := range []int64{0, 1, 3, 20} {
		for _, drained := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, batches, &loadertest.Memory{})
				b.end = 1 << 40
				var once sync.Once
				b.loader.load = func(ctx context.Context, in *batch.Batch, next loader.Session) (loader.Ack, error) {
					if drained && in.ID.Number == batches-1 { // of which nobody knows yet that it is the last
						once.Do(func() { close(b.drain) })
						synctest.Wait()
					}
					return next.Load(ctx, in)
				}
				result, s, err := b.run(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, batches, s.Batches)
				b.exact()
				if !result.Drained {
					require.Equal(t, engine.Result{Handed: batches}, result)
				}
				require.False(t, result.Drained && !drained)
			})
		}
	}
}

// One in five attempts at a thousand batches meets a fault, and the first question after each has no answer.
func TestChaosEndsExact(t *testing.T) {
	faults := []loadertest.Fault{
		{Before: loadertest.ErrConnection}, {After: loadertest.ErrConnection}, {Before: loadertest.ErrThrottled},
		{Stall: true}, {Delay: 3 * time.Second},
	}
	// Attempts that live on after their connection is gone would double their rows, were they not ended before a resend.
	lingering := append(faults, loadertest.Fault{Linger: loadertest.ErrConnection})
	for name, c := range map[string]struct {
		open   func(*testing.T, int64, *loadertest.Memory) *bench
		faults []loadertest.Fault
	}{
		"claims": {newBench, faults}, "labels that are no locks": {labelled, lingering}, "commit groups": {staged, faults},
	} {
		subtest(t, name, func(t *testing.T) {
			roll := func(number int64, attempt int) loadertest.Fault {
				dice := rand.New(rand.NewPCG(uint64(number), uint64(attempt)))
				if dice.IntN(5) > 0 {
					return loadertest.Fault{}
				}
				return c.faults[dice.IntN(len(c.faults))]
			}
			b := c.open(t, 1001, &loadertest.Memory{Script: roll, GroupScript: roll})
			b.config.Workers = 16
			b.config.Retry.Retries = 20
			var asked sync.Map
			b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
				if _, again := asked.LoadOrStore(ref, true); !again {
					return loader.Resolution{}, loadertest.ErrConnection
				}
				return next.Resolve(ctx, ref)
			}
			_, s, err := b.run(t.Context())
			require.NoError(t, err)
			b.exact()
			require.EqualValues(t, 1000*batchRows+lastRows, s.Rows)
			require.EqualValues(t, s.Rows*encodedRow, s.EncodedBytes)
			require.Zero(t, b.memory.Objects())
			retries := int64(0)
			for _, e := range b.journal.events {
				if e.Attempt > 1 && e.Outcome != event.Started {
					retries++
				}
			}
			require.NotZero(t, retries)
			require.Equal(t, retries, s.Retries)
		})
	}
}

func TestUnknownIsNeverSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		answer loader.Resolution
		err    error
		want   string
	}{
		"no answer": {loader.Resolution{}, errors.New("no answer"), "no answer"},
		"no idea":   {loader.Resolution{Reason: "7 are there"}, nil, "the database cannot tell the outcome: 7 are there"},
	} {
		subtest(t, name, func(t *testing.T) {
			b := newBench(t, 8, &loadertest.Memory{Script: func(number int64, _ int) loadertest.Fault {
				return loadertest.Fault{After: map[int64]error{2: loadertest.ErrConnection, 5: loadertest.ErrConnection}[number]}
			}})
			b.config.Workers = 8
			b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) { return c.answer, c.err }
			result, s, err := b.run(t.Context())
			require.Equal(t, []int64{2, 5}, result.Unknown)
			require.ErrorContains(t, err, "is unknown after 1 attempts: loadertest: connection reset; resolving batch")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.EqualValues(t, 5*batchRows+lastRows, s.Rows)
			require.Equal(t, []event.Outcome{event.Unknown}, b.journal.outcomes(2))
		})
	}
}

// A database that has a batch already has to have this run's rows, and all of them.
func TestAlreadyApplied(t *testing.T) {
	const never = "batch 0 of run r is applied already, although it was never sent"
	for name, c := range map[string]struct {
		open    func(*testing.T, int64, *loadertest.Memory) *bench
		resumed bool
		first   error // of an attempt before
		rows    int64 // of the answer
		want    string
	}{
		"a claim before the first attempt":    {open: newBench, rows: lastRows, want: never},
		"a claim of an earlier process":       {open: newBench, rows: lastRows, resumed: true},
		"a claim of other rows":               {open: newBench, rows: 4, resumed: true, want: "as applied with 4 rows, and it has 3"},
		"a label before the first attempt":    {open: labelled, rows: lastRows, resumed: true, want: never}, // all attempts are announced
		"a label after the first attempt":     {open: labelled, rows: lastRows, first: loadertest.ErrThrottled},
		"a label of other rows after another": {open: labelled, rows: 2, first: loadertest.ErrThrottled, want: "as applied with 2 rows, and it has 3"},
	} {
		subtest(t, name, func(t *testing.T) {
			b := c.open(t, 1, &loadertest.Memory{})
			b.resumed = c.resumed
			b.loader.load = func(_ context.Context, batch *batch.Batch, _ loader.Session) (loader.Ack, error) {
				if c.first != nil && batch.Attempt == 1 {
					return loader.Ack{}, c.first
				}
				return loader.Ack{AlreadyApplied: true, Rows: c.rows}, nil
			}
			result, s, err := b.run(t.Context())
			require.Zero(t, b.memory.Resolved(), "the answer would be the same")
			require.Zero(t, s.FailedBatches)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Equal(t, []int64{0}, result.Unknown)
				require.Zero(t, s.Rows)
				return
			}
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Outcomes[event.Already])
			require.EqualValues(t, lastRows, s.Rows)
		})
	}
}

// Sending again or asking would both turn missing rows into success: the claim says that the batch is in.
func TestMissingRowsAreUnknown(t *testing.T) {
	b := newBench(t, 1, &loadertest.Memory{Script: always(loadertest.Fault{Missing: 2})})
	result, s, err := b.run(t.Context())
	require.ErrorContains(t, err, "the server took 1 of 3 rows")
	require.Equal(t, []int64{0}, result.Unknown)
	require.Zero(t, s.Batches)
	require.Zero(t, b.memory.Resolved())
	require.Equal(t, 1, b.memory.Attempts(0))

	b = staged(t, 8, &loadertest.Memory{GroupScript: at(0, loadertest.Fault{Missing: 1})})
	result, _, err = b.run(t.Context())
	require.ErrorContains(t, err, "the server took 39 of 40 rows")
	require.Equal(t, []int64{0, 1, 2, 3}, result.Unknown)
	require.Zero(t, b.memory.Resolved())
	require.Equal(t, 1, b.memory.Commits(0))
}

func TestAtLeastOnceCountsMissingRows(t *testing.T) {
	for uncounted, missing := range map[bool]int64{false: 2, true: 0} {
		b := atLeastOnce(t, 5, &loadertest.Memory{Script: func(number int64, _ int) loadertest.Fault {
			return loadertest.Fault{Missing: number % 2}
		}})
		b.config.Uncounted = uncounted
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, missing, s.MissingRows)
		require.EqualValues(t, 5, s.Batches)
		require.EqualValues(t, 4*batchRows+lastRows-2, s.Rows)
	}
	b := newBench(t, 2, &loadertest.Memory{Script: always(loadertest.Fault{Missing: 1})})
	b.config.Uncounted = true
	_, _, err := b.run(t.Context())
	require.NoError(t, err, "with claims as well, nothing is compared")
}

func TestAtLeastOnceSendsLostBatchesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := atLeastOnce(t, 2, &loadertest.Memory{Script: at(0, loadertest.Fault{After: loadertest.ErrConnection})})
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Len(t, b.memory.Applied(), 3)
		require.Zero(t, b.memory.Resolved())
		require.EqualValues(t, 1, s.Outcomes[event.Unknown])
		require.Contains(t, b.log.String(), "rows may be in the table twice")
	})
}

func TestPermanentErrorDrainsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100, &loadertest.Memory{Script: func(number int64, _ int) loadertest.Fault {
			if number == 1 {
				return loadertest.Fault{Delay: time.Second / 2, Before: loadertest.ErrRejected}
			}
			return loadertest.Fault{Delay: time.Second}
		}})
		result, s, err := b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrRejected)
		require.ErrorContains(t, err, "batch 1 (rows 10 to 19) is not applied after 1 attempts")
		require.Equal(t, engine.Result{Handed: 4, Drained: true}, result)
		require.EqualValues(t, 3, s.Batches, "those on their way are finished")
		require.EqualValues(t, 1, s.FailedBatches)
	})
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, &loadertest.Memory{Script: always(loadertest.Fault{Before: loadertest.ErrThrottled})})
		_, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "is not applied after 9 attempts")
		require.EqualValues(t, 8, s.Retries)
		require.EqualValues(t, 9, s.Errors[loader.ClassThrottled])

		b = locking(t, 1, &loadertest.Memory{Script: always(loadertest.Fault{Before: loadertest.ErrConnection})})
		result, _, err := b.run(t.Context())
		require.ErrorContains(t, err, "is unknown after 9 attempts")
		require.Equal(t, []int64{0}, result.Unknown)
	})
}

// The rows are in, though not as they were meant to be: a resume must not send them again, and the run ends.
func TestErrorOfAppliedBatch(t *testing.T) {
	for _, dedup := range []loader.Dedup{loader.DedupNone, loader.DedupKey, loader.DedupTx} {
		b := newBench(t, 400, &loadertest.Memory{Caps: &loader.Caps{Dedup: dedup}})
		b.config.Workers = 1
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			ack, err := next.Load(ctx, batch)
			if err == nil && batch.ID.Number == 2 {
				err = &loader.Error{Op: "load", Applied: loader.Yes, Err: errors.New("it was not merged")}
			}
			return ack, err
		}
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "batch 2 (rows 20 to 29) is applied after 1 attempts: load: it was not merged")
		require.Equal(t, engine.Result{Handed: 3, Drained: true}, result)
		require.EqualValues(t, 3, s.Batches)
		require.EqualValues(t, 30, s.Rows)
		require.Zero(t, s.FailedBatches+s.UnknownBatches)
		require.Zero(t, b.memory.Resolved())
		last := b.journal.events[len(b.journal.events)-1]
		require.Equal(t, event.Applied, last.Outcome)
		require.Contains(t, last.Error, "not merged")
	}
}

// broken cannot make one of its batches.
type broken struct {
	*batches
	number int64
}

func (b broken) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	if number == b.number {
		return nil, errors.New("no such bytes")
	}
	return b.batches.Batch(ctx, number)
}

func TestBatchThatCannotBeMadeEndsTheRun(t *testing.T) {
	b := newBench(t, 20, &loadertest.Memory{})
	b.config.Workers = 1
	b.config.Source = broken{b.source, 3}
	result, s, err := b.run(t.Context())
	require.EqualError(t, err, "making batch 3 (rows 30 to 39): no such bytes")
	require.EqualValues(t, 3, s.Batches)
	require.Equal(t, engine.Result{Handed: 4, Drained: true}, result)
}
