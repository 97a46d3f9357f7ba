package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
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

// staged returns a bench whose batches are stored first and committed four at a time.
func staged(t *testing.T, batches int64, m *loadertest.Memory) *bench {
	m.Caps = &loader.Caps{Dedup: loader.DedupKey, Staged: true}
	b := newBench(t, batches, m)
	b.config.Contract.GroupBatches, b.config.Contract.Commits = 4, 2
	return b
}

// onGroup scripts a fault for the first commits of one group.
func onGroup(group int64, faults ...loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(number int64, attempt int) loadertest.Fault {
		if number == group && attempt <= len(faults) {
			return faults[attempt-1]
		}
		return loadertest.Fault{}
	}
}

func TestStagedGroupsExactlyOnce(t *testing.T) {
	lost := event.Unknown
	for _, c := range []struct {
		name    string
		fault   loadertest.Fault
		want    []event.Outcome // of group 2
		commits int
	}{
		{"no fault", loadertest.Fault{}, []event.Outcome{event.Started, event.Applied}, 1},
		{"throttled", loadertest.Fault{Before: loadertest.ErrThrottled}, []event.Outcome{event.Started, event.NotApplied, event.Started, event.Applied}, 2},
		{"cut before", loadertest.Fault{Before: loadertest.ErrConnection}, []event.Outcome{event.Started, lost, event.Started, event.Applied}, 2},
		{"answer lost", loadertest.Fault{After: loadertest.ErrConnection}, []event.Outcome{event.Started, lost, event.Already}, 1},
		{"hangs", loadertest.Fault{Stall: true}, []event.Outcome{event.Started, event.NotApplied, event.Started, event.Applied}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := staged(t, 22, &loadertest.Memory{GroupScript: onGroup(2, c.fault)})
				result, s, err := b.run(t.Context())
				require.NoError(t, err)
				require.Equal(t, engine.Result{Handed: 22, Complete: true}, result)
				b.exact()
				require.Equal(t, c.want, b.journal.groups(8))
				require.Equal(t, []event.Outcome{event.Stored}, b.journal.outcomes(8))
				require.Equal(t, c.commits, b.memory.Commits(2))
				require.Zero(t, b.memory.Objects())
				require.Equal(t, 6, b.memory.Discards())
				require.EqualValues(t, 21*batchRows+lastRows, s.Rows)
				require.Equal(t, s.Rows, s.StoredRows)
				require.EqualValues(t, 22, s.Batches)
				require.EqualValues(t, 22, s.StoredBatches)
				require.EqualValues(t, 22, s.AppliedBatches+s.AlreadyBatches)
				require.Equal(t, s.Rows*encodedRow, s.EncodedBytes)
				require.Equal(t, s.EncodedBytes, s.StoredBytes)
				require.EqualValues(t, 22, s.BatchSeconds.Count())
				require.Equal(t, event.Commit, s.Phase)
			})
		})
	}
}

// An upload is sent again without a question, whatever became of it.
func TestUploadsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 9, &loadertest.Memory{Script: onAttempt(1, loadertest.Fault{After: loadertest.ErrConnection})})
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Zero(t, b.memory.Resolved())
		require.Equal(t, []event.Outcome{event.NotApplied, event.Stored}, b.journal.outcomes(1))
	})
}

func TestStagedChaosEndsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := []loadertest.Fault{
			{Before: loadertest.ErrConnection}, {After: loadertest.ErrConnection}, {Before: loadertest.ErrThrottled},
			{Stall: true}, {Delay: 3 * time.Second},
		}
		roll := func(number int64, attempt int) loadertest.Fault {
			dice := rand.New(rand.NewPCG(uint64(number), uint64(attempt)))
			if dice.IntN(5) > 0 {
				return loadertest.Fault{}
			}
			return faults[dice.IntN(len(faults))]
		}
		b := staged(t, 1001, &loadertest.Memory{Script: roll, GroupScript: roll})
		b.config.Workers = 16
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.EqualValues(t, 1001, s.Batches)
		require.Zero(t, b.memory.Objects())
	})
}

func TestGroupIsAnnouncedAndKeptBeforeItsObjectsGo(t *testing.T) {
	b := staged(t, 10, &loadertest.Memory{})
	last := func(first int64) event.Event {
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		var found event.Event
		for _, e := range b.journal.events {
			if e.Batch == first && e.Members > 0 {
				found = e
			}
		}
		return found
	}
	b.loader.commit = func(ctx context.Context, g loader.Group, next loader.Committer) (loader.Ack, error) {
		e := last(g.Members[0].ID.Number)
		require.Equal(t, event.Started, e.Outcome)
		require.EqualValues(t, len(g.Members), e.Members)
		require.Equal(t, g.Attempt, e.Attempt)
		require.Equal(t, -1, e.Worker)
		return next.Commit(ctx, g)
	}
	b.loader.discard = func(ctx context.Context, g loader.Group, next loader.Committer) error {
		require.Equal(t, event.Applied, last(g.Members[0].ID.Number).Outcome)
		return next.Discard(ctx, g)
	}
	_, _, err := b.run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, last(8).Members, "the last group is short")
	require.EqualValues(t, batchRows+lastRows, last(8).Rows)
}

// What the journal does not have must not lose its objects: a resume would send it again.
func TestGroupThatIsNotKeptKeepsItsObjects(t *testing.T) {
	b := staged(t, 4, &loadertest.Memory{})
	full := errors.New("the disk is full")
	b.config.Record = func(e event.Event) error {
		if e.Members > 0 && e.Done() {
			return full
		}
		return nil
	}
	_, _, err := b.run(t.Context())
	require.ErrorIs(t, err, full)
	require.Equal(t, 4, b.memory.Objects())
}

func TestObjectsThatCannotBeRemovedAreNoFailure(t *testing.T) {
	b := staged(t, 8, &loadertest.Memory{})
	why := errors.New("access denied")
	b.loader.discard = func(context.Context, loader.Group, loader.Committer) error { return why }
	result, _, err := b.run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, result.Kept)
	require.Equal(t, why, result.KeptWhy)
	b.exact()
}

// A commit that hangs must not fill the store: uploads are ahead by a bounded number of groups.
func TestUploadsWaitForCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &loadertest.Memory{GroupScript: func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Minute} }}
		b := staged(t, 400, m)
		var most atomic.Int64
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			ack, err := next.Load(ctx, batch)
			most.Store(max(most.Load(), int64(m.Objects())))
			return ack, err
		}
		start := time.Now()
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.LessOrEqual(t, most.Load(), int64((2*2-1+4)*4), "one group less than the limit, and one that each worker may be filling")
		require.Equal(t, 50*time.Minute, time.Since(start), "100 groups, two at a time, never idle")
	})
}

func TestGroupThatFailsForGoodDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 400, &loadertest.Memory{
			Script:      func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} },
			GroupScript: onGroup(1, loadertest.Fault{Before: loadertest.ErrRejected}),
		})
		result, s, err := b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrRejected)
		require.ErrorContains(t, err, "commit group 1 (batches 4 to 7) (keys 40 to 79) is not applied after 1 attempts")
		require.True(t, result.Drained)
		require.Empty(t, result.Unknown)
		require.EqualValues(t, 4, s.FailedBatches)
		require.NotZero(t, b.memory.Objects(), "they stay for the resume")
		require.Less(t, result.Handed, int64(20))
	})
}

func TestGroupOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 12, &loadertest.Memory{GroupScript: onGroup(1, loadertest.Fault{After: loadertest.ErrConnection})})
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

func TestGroupWithMissingRowsIsUnknownAsAWhole(t *testing.T) {
	b := staged(t, 8, &loadertest.Memory{GroupScript: onGroup(0, loadertest.Fault{Missing: 1})})
	result, _, err := b.run(t.Context())
	require.ErrorContains(t, err, "the server took 39 of 40 rows")
	require.Equal(t, []int64{0, 1, 2, 3}, result.Unknown)
	require.Zero(t, b.memory.Resolved(), "the label would say that the group is in")
	require.Equal(t, 1, b.memory.Commits(0))
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
		b.config.Stored = append(b.config.Stored, engine.Stored{Ref: b.source.ref(number), Payload: piece.Payload, Encoded: int64(len(piece.Encoded))})
		piece.Release()
	}
	require.NoError(t, s.Close())
	b.config.BegunGroup = func(number int64) engine.Begun {
		if number == 0 {
			return engine.Begun{Attempt: 2}
		}
		return engine.Begun{}
	}
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
			Script:      func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} },
			GroupScript: func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: 10 * time.Second} },
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

func TestStagedRunByDurationEndsWithAShortGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 4000, &loadertest.Memory{Script: func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }})
		b.config.Workers = 3
		until := make(chan struct{})
		b.config.Until = until
		time.AfterFunc(2500*time.Millisecond, func() { close(until) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 9, result.Handed)
		require.EqualValues(t, 9, s.Batches)
		require.Equal(t, []event.Outcome{event.Started, event.Applied}, b.journal.groups(8))
		require.Zero(t, b.memory.Objects())
	})
}

func TestCancelWhileAGroupIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 400, &loadertest.Memory{GroupScript: func(int64, int) loadertest.Fault { return loadertest.Fault{Stall: true} }})
		why := errors.New("a second signal")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		start := time.Now()
		_, s, err := b.run(ctx)
		require.Equal(t, time.Second, time.Since(start))
		require.Error(t, err)
		require.Zero(t, s.Batches)
		require.EqualValues(t, 8, s.FailedBatches+s.UnknownBatches)
	})
}

// A commit may take as long as its bytes need, and twenty times as long as the slowest so far.
func TestCommitHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := staged(t, 4, &loadertest.Memory{GroupScript: onGroup(0, loadertest.Fault{Stall: true})})
		b.config.Deadline = time.Minute
		start := time.Now()
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), 4*time.Minute, "a minute for each of its batches")
		require.Contains(t, b.log.String(), "no answer within 4m0s")
	})
}

func TestBackEndThatContradictsItsContract(t *testing.T) {
	b := staged(t, 4, &loadertest.Memory{})
	b.loader.load = func(_ context.Context, batch *batch.Batch, _ loader.Session) (loader.Ack, error) {
		return loader.Ack{Rows: batch.Rows}, nil
	}
	_, _, err := b.run(t.Context())
	require.ErrorContains(t, err, "the back-end returned stored=false for batch")

	b = newBench(t, 4, &loadertest.Memory{})
	b.loader.load = func(_ context.Context, batch *batch.Batch, _ loader.Session) (loader.Ack, error) {
		return loader.Ack{Rows: batch.Rows, Stored: true}, nil
	}
	_, _, err = b.run(t.Context())
	require.ErrorContains(t, err, "the back-end returned stored=true for batch")
}
