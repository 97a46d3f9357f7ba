package engine_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
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

// An upload is sent again without a question, whatever became of it. A commit is announced.
func TestStagedGroupsExactlyOnce(t *testing.T) {
	began, lost, failed, applied := event.Started, event.Unknown, event.NotApplied, event.Applied
	for name, c := range map[string]struct {
		fault   loadertest.Fault
		want    []event.Outcome // of group 2
		commits int
	}{
		"no fault":    {loadertest.Fault{}, []event.Outcome{began, applied}, 1},
		"throttled":   {loadertest.Fault{Before: loadertest.ErrThrottled}, []event.Outcome{began, failed, began, applied}, 2},
		"cut before":  {loadertest.Fault{Before: loadertest.ErrConnection}, []event.Outcome{began, lost, began, applied}, 2},
		"answer lost": {loadertest.Fault{After: loadertest.ErrConnection}, []event.Outcome{began, lost, event.Already}, 1},
		"stalled":     {loadertest.Fault{Stall: true}, []event.Outcome{began, failed, began, applied}, 2},
	} {
		subtest(t, name, func(t *testing.T) {
			lost := atEveryThird(loadertest.Fault{After: loadertest.ErrConnection})
			b := staged(t, 22, &loadertest.Memory{Script: lost, GroupScript: at(2, c.fault)})
			result, s, err := b.run(t.Context())
			require.NoError(t, err)
			require.Equal(t, engine.Result{Handed: 22}, result)
			b.exact()
			require.Equal(t, c.want, b.journal.groupOutcomes(8))
			require.Equal(t, []event.Outcome{event.Stored}, b.journal.outcomes(8))
			require.Equal(t, []event.Outcome{event.NotApplied, event.Stored}, b.journal.outcomes(10))
			require.LessOrEqual(t, b.memory.Resolved(), 1, "only of the commit")
			for _, e := range b.journal.about(20, true) {
				require.Equal(t, []int{-1, 2, 1}, []int{e.Worker, int(e.Members), e.Attempt}, "the last group is short")
			}
			require.Equal(t, c.commits, b.memory.Commits(2))
			require.Zero(t, b.memory.Objects())
			require.Equal(t, 6, b.memory.Discards())
			require.EqualValues(t, 21*batchRows+lastRows, s.Rows)
			require.EqualValues(t, 22, s.Batches)
			require.EqualValues(t, 22, s.StoredBatches)
			require.Equal(t, s.Rows*encodedRow, s.EncodedBytes)
			require.Equal(t, event.Commit, s.Phase)
		})
	}
}

// A resume sends again what the journal does not have, so its objects must stay: after a commit, and after the answer that
// an earlier one was applied.
func TestGroupThatIsNotRecordedKeepsItsObjects(t *testing.T) {
	for _, fault := range []loadertest.Fault{{}, {After: loadertest.ErrConnection}} {
		b := staged(t, 4, &loadertest.Memory{GroupScript: at(0, fault)})
		full := errors.New("the disk is full")
		b.note = func(e event.Event) error {
			if e.Members > 0 && e.Done() {
				return full
			}
			return nil
		}
		_, _, err := b.run(t.Context())
		require.ErrorIs(t, err, full)
		require.Equal(t, 4, b.memory.Objects())
	}
}

func TestObjectsThatCannotBeRemovedAreNoFailure(t *testing.T) {
	b := staged(t, 8, &loadertest.Memory{})
	why := errors.New("access denied")
	b.loader.discard = why
	result, _, err := b.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.Result{Handed: 8, UndeletedGroups: 2, DeleteErr: why}, result)
	b.exact()
}

// A commit that hangs must not fill the store: uploads are ahead by a bounded number of groups.
func TestUploadsWaitForCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &loadertest.Memory{GroupScript: always(loadertest.Fault{Delay: time.Minute})}
		b := staged(t, 400, m)
		var most atomic.Int64
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			ack, err := next.Load(ctx, batch)
			most.Store(max(most.Load(), int64(m.Objects())))
			return ack, err
		}
		start := time.Now()
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Greater(t, s.WorkerSeconds[event.WaitCommit], 40*60.0)
		require.LessOrEqual(t, most.Load(), int64((2*2-1+4)*4), "one group less than the limit, and one that each worker may be filling")
		require.Equal(t, 50*time.Minute, time.Since(start), "100 groups, two at a time, never idle")
	})
}

func TestGroupThatFailsForGoodDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 400, &loadertest.Memory{
			Script:      always(loadertest.Fault{Delay: time.Second}),
			GroupScript: at(1, loadertest.Fault{Before: loadertest.ErrRejected}),
		})
		result, s, err := b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrRejected)
		require.ErrorContains(t, err, "commit group 1 (batches 4 to 7) (rows 40 to 79) is not applied after 1 attempts")
		require.True(t, result.Drained)
		require.Empty(t, result.Unknown)
		require.EqualValues(t, 4, s.FailedBatches)
		require.NotZero(t, b.memory.Objects(), "they stay for the resume")
		require.Less(t, result.Handed, int64(20))
	})
}

func TestGroupOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 12, &loadertest.Memory{GroupScript: at(1, loadertest.Fault{After: loadertest.ErrConnection})})
		b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
			return loader.Resolution{Applied: loader.Unknown}, nil
		}
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "resolving commit group 1 (batches 4 to 7): the database cannot tell the outcome")
		require.Equal(t, []int64{4, 5, 6, 7}, result.Unknown)
		require.EqualValues(t, 8, s.Batches, "the others go on")
		require.Equal(t, 4, b.memory.Objects())
	})
}

func TestResumeOfStagedGroups(t *testing.T) {
	b := staged(t, 12, &loadertest.Memory{})
	s, err := b.loader.Session(t.Context(), b.config.Contract)
	require.NoError(t, err)
	for number := range int64(6) { // an earlier process had stored six, and begun to commit the first four
		piece, err := b.source.Batch(t.Context(), number)
		require.NoError(t, err)
		_, err = s.Load(t.Context(), piece)
		require.NoError(t, err)
		b.stored = append(b.stored, engine.Stored{Ref: b.source.ref(number), Payload: piece.Payload, Encoded: int64(len(piece.Encoded))})
		piece.Release()
	}
	require.NoError(t, s.Close())
	b.groups = map[int64]engine.Attempts{0: {Attempt: 2}}
	b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
		require.Equal(t, loader.Ref{ID: batch.ID{Run: "r", Number: 0}, First: 0, Rows: 40, Attempt: 2}, ref)
		return next.Resolve(ctx, ref)
	}
	_, snapshot, err := b.run(t.Context())
	require.NoError(t, err)
	b.exact()
	require.Equal(t, 1, b.memory.Resolved())
	require.Equal(t, 1, b.memory.Attempts(0), "nothing is uploaded twice")
	require.EqualValues(t, 6, snapshot.StoredBatches)
	require.EqualValues(t, 12, snapshot.Batches)
	for _, e := range b.journal.events {
		if e.Members > 0 && e.Outcome == event.Applied {
			require.Equal(t, map[int64]int{0: 3, 4: 1, 8: 1}[e.Batch], e.Attempt, "attempts count over all processes")
		}
	}
}

func TestDrainCommitsFullGroupsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 400, &loadertest.Memory{
			Script:      always(loadertest.Fault{Delay: time.Second}),
			GroupScript: always(loadertest.Fault{Delay: 10 * time.Second}),
		})
		b.config.Workers = 3
		time.AfterFunc(2500*time.Millisecond, func() { close(b.drain) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.True(t, result.Drained)
		require.EqualValues(t, 9, result.Handed)
		require.EqualValues(t, 9, s.StoredBatches)
		require.EqualValues(t, 8, s.Batches)
		require.Equal(t, 1, b.memory.Objects())
	})
}

// The end of the time begins no more batches, and does not end the retries of the others.
func TestStagedRunByDurationEndsWithAShortGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 4000, &loadertest.Memory{Script: func(number int64, attempt int) loadertest.Fault {
			f := loadertest.Fault{Delay: time.Second}
			if number == 8 && attempt == 1 {
				f.Before = loadertest.ErrThrottled
			}
			return f
		}})
		b.config.Workers = 3
		until := make(chan struct{})
		b.config.Until = until
		time.AfterFunc(2500*time.Millisecond, func() { close(until) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 9, result.Handed)
		require.EqualValues(t, 9, s.Batches)
		require.Equal(t, []event.Outcome{event.Started, event.Applied}, b.journal.groupOutcomes(8))
		require.Zero(t, b.memory.Objects())
	})
}

// A group may be larger than the run, or than any memory.
func TestGroupLargerThanTheRun(t *testing.T) {
	for _, batches := range []int64{9, math.MaxInt64 / 2} { // of a run by duration, as many as it may have
		b := staged(t, 9, &loadertest.Memory{})
		b.end, b.config.Contract.GroupBatches, b.config.Workers = batches, 1e15, 1
		until := make(chan struct{})
		b.config.Until = until
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
