package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// lostFirst loses the answer to the first attempt and meets another fault at all later ones.
func lostFirst(later loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(_ int64, attempt int) loadertest.Fault {
		if attempt == 1 {
			return loadertest.Fault{After: loadertest.ErrConnection}
		}
		return later
	}
}

// However certain the end of a later attempt is: the first one may be in, and the database was not asked.
func TestUnknownStaysUnknownUntilResolved(t *testing.T) {
	throttled, rejected := loadertest.Fault{Before: loadertest.ErrThrottled}, loadertest.Fault{Before: loadertest.ErrRejected}
	for _, later := range []loadertest.Fault{throttled, rejected} {
		for name, open := range map[string]func(t *testing.T) *bench{
			"at least once": func(t *testing.T) *bench {
				return newBench(t, 1, &loadertest.Memory{Caps: &loader.Caps{Dedup: loader.DedupNone}, Script: lostFirst(later)})
			},
			"labels that lock": func(t *testing.T) *bench {
				b := labelled(t, 1, lostFirst(later))
				b.config.Loader = lockOnly{b.loader.Loader}
				return b
			},
			"a group at least once": func(t *testing.T) *bench {
				b := staged(t, 1, &loadertest.Memory{GroupScript: lostFirst(later)})
				b.config.Contract.Dedup = loader.DedupNone
				return b
			},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := open(t)
					result, s, err := b.run(t.Context())
					require.ErrorContains(t, err, "is unknown after")
					require.Equal(t, []int64{0}, result.Unknown)
					require.Len(t, b.memory.Applied(), 1)
					require.Zero(t, s.FailedBatches)
				})
			})
		}
	}
}

// With a Resolver the answer counts, and what comes after it.
func TestUnknownThatWasAskedForIsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, &loadertest.Memory{Script: func(_ int64, attempt int) loadertest.Fault {
			return loadertest.Fault{Before: map[bool]error{true: loadertest.ErrConnection, false: loadertest.ErrRejected}[attempt == 1]}
		}})
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "is not applied after 2 attempts")
		require.Empty(t, result.Unknown)
		require.EqualValues(t, 1, s.FailedBatches)
	})
}

func TestMissingRowsAfterALostAnswerAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 1, lostFirst(loadertest.Fault{}))
		b.config.Loader = lockOnly{b.loader.Loader}
		attempts := 0
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			if attempts++; attempts == 1 {
				return next.Load(ctx, batch)
			}
			return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: &loader.RowsError{Sent: batch.Rows, Acknowledged: 1}}
		}
		b.config.Loader = lockOnly{b.loader}
		result, _, err := b.run(t.Context())
		require.ErrorContains(t, err, "the server took 1 of 3 rows")
		require.Equal(t, []int64{0}, result.Unknown)
	})
}

// An earlier process lost the answer, and there is no Resolver.
func TestUnknownOfAnEarlierProcessStaysUnknown(t *testing.T) {
	for unknown, want := range map[bool][]int64{true: {0}, false: nil} {
		b := newBench(t, 1, &loadertest.Memory{
			Caps: &loader.Caps{Dedup: loader.DedupNone}, Script: func(int64, int) loadertest.Fault { return loadertest.Fault{Before: loadertest.ErrRejected} },
		})
		b.config.Begun = func(int64) engine.Begun { return engine.Begun{Attempt: 2, Unknown: unknown} }
		result, _, err := b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrRejected)
		require.Equal(t, want, result.Unknown)
	}
}

// The attempt certainly failed, and rows of the batch are there all the same: nothing is sent beside them.
func TestUndecidedAnswerIsAboutEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 4, nil)
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			if batch.ID.Number != 1 {
				return next.Load(ctx, batch)
			}
			return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: loadertest.ErrConnection} // retry, session dead
		}
		b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
			return loader.Resolution{Reason: "7 of its 10 rows are there"}, nil
		}
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "batch 1 (keys 10 to 19) is unknown after 1 attempts")
		require.ErrorContains(t, err, "the database cannot tell the outcome: 7 of its 10 rows are there")
		require.Equal(t, []int64{1}, result.Unknown)
		require.EqualValues(t, 3, s.Batches, "the others go on")
	})
}

// A label that says that the batch is in, with other rows, is not asked: it would say so again.
func TestKnownWithOtherRowsIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 1, nil)
		attempts := 0
		b.loader.load = func(context.Context, *batch.Batch, loader.Session) (loader.Ack, error) {
			if attempts++; attempts == 1 {
				return loader.Ack{}, loadertest.ErrThrottled
			}
			return loader.Ack{AlreadyApplied: true, Rows: 2}, nil
		}
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "the database reports batch 0 of run r as applied with 2 rows, and it has 3")
		require.Equal(t, []int64{0}, result.Unknown)
		require.Zero(t, b.memory.Resolved())
		require.Zero(t, s.FailedBatches)
	})
}

// The rows are in, though not as they were meant to be: a resume must not send them a second time, and nobody else
// should go on like that.
func TestErrorOfWhatIsIn(t *testing.T) {
	for _, dedup := range []loader.Dedup{loader.DedupNone, loader.DedupKey, loader.DedupTx} {
		b := newBench(t, 400, &loadertest.Memory{Caps: &loader.Caps{Dedup: dedup}})
		b.config.Workers = 1
		alone := errors.New("it was not merged with others")
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			ack, err := next.Load(ctx, batch)
			if err == nil && batch.ID.Number == 2 {
				err = &loader.Error{Op: "load", Applied: loader.Yes, Err: alone}
			}
			return ack, err
		}
		result, s, err := b.run(t.Context())
		require.ErrorIs(t, err, alone)
		require.ErrorContains(t, err, "batch 2 (keys 20 to 29) is applied after 1 attempts")
		require.Empty(t, result.Unknown)
		require.True(t, result.Drained)
		require.EqualValues(t, 3, s.Batches)
		require.EqualValues(t, 30, s.Rows)
		require.Zero(t, s.FailedBatches+s.UnknownBatches)
		require.Zero(t, b.memory.Resolved())
		last := b.journal.events[len(b.journal.events)-1]
		require.Equal(t, event.Applied, last.Outcome)
		require.Contains(t, last.Error, "not merged")
	}
}

func TestBackEndThatCannotCommit(t *testing.T) {
	b := staged(t, 4, &loadertest.Memory{})
	b.config.Loader = lockOnly{b.loader.Loader}
	b.config.Contract.Method = "detour"
	_, _, err := b.run(t.Context())
	require.EqualError(t, err, "method detour stores batches, and the back-end cannot commit them")
	require.Zero(t, b.memory.Objects(), "found out before the first upload")
}

// A group may be larger than the run, or than any memory.
func TestGroupLargerThanTheRun(t *testing.T) {
	for _, batches := range []int64{9, math.MaxInt64 / 2} { // of a run by duration, as many as it may have
		b := staged(t, 9, &loadertest.Memory{})
		b.config.Batches, b.config.Contract.GroupBatches = batches, 1e15
		b.config.Deadline = 1 << 40
		until := make(chan struct{})
		b.config.Until, b.config.Workers = until, 1
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			if batch.ID.Number == 8 {
				close(until)
			}
			return next.Load(ctx, batch)
		}
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Batches, int64(9))
		require.Equal(t, result.Handed, s.Batches)
		require.Equal(t, 1, b.memory.Commits(0))
	}
}
