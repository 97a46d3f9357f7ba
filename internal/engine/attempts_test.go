package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// labelled returns a bench on a database that knows batches by their labels, which are checks and no locks.
func labelled(t *testing.T, batches int64, script func(int64, int) loadertest.Fault) *bench {
	return newBench(t, batches, &loadertest.Memory{Caps: &loader.Caps{Dedup: loader.DedupKey}, Script: script})
}

// lockOnly hides that the database can be asked: its label is all there is.
type lockOnly struct{ loader.Loader }

func TestEveryAttemptUnderALabelIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 5, onAttempt(1, loadertest.Fault{Before: loadertest.ErrConnection}))
		b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
			b.journal.mu.Lock()
			defer b.journal.mu.Unlock()
			last := event.Event{}
			for _, e := range b.journal.events {
				if e.Batch == batch.ID.Number {
					last = e
				}
			}
			require.Equal(t, event.Started, last.Outcome)
			require.Equal(t, batch.Attempt, last.Attempt)
			require.False(t, last.Start.IsZero())
			return next.Load(ctx, batch)
		}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Unknown, event.Started, event.Applied}, b.journal.outcomes(1))
		require.EqualValues(t, 7, s.Attempts, "announcements are no attempts")
	})
}

// Attempts that live on after their connection is gone would double their rows, were they not ended before a resend.
func TestLabelsThatAreNoLocksEndExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := []loadertest.Fault{
			{Linger: loadertest.ErrConnection}, {After: loadertest.ErrConnection}, {Before: loadertest.ErrConnection}, {Stall: true},
		}
		b := labelled(t, 1000, func(number int64, attempt int) loadertest.Fault {
			dice := rand.New(rand.NewPCG(uint64(number), uint64(attempt)))
			if dice.IntN(5) > 0 {
				return loadertest.Fault{}
			}
			return faults[dice.IntN(len(faults))]
		})
		b.config.Workers = 16
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.EqualValues(t, 999*batchRows+lastRows, s.Rows)
	})
}

func TestResumeAsksForWhatWasBegun(t *testing.T) {
	for answer, want := range map[loader.Applied][]event.Outcome{
		loader.Yes: {event.Already},
		loader.No:  {event.Started, event.Applied},
	} {
		b := labelled(t, 3, nil)
		b.config.Resumed = true
		b.config.Begun = func(number int64) engine.Begun {
			if number == 1 {
				return engine.Begun{Attempt: 3}
			}
			return engine.Begun{}
		}
		asked := 0
		b.loader.resolve = func(_ context.Context, ref loader.Ref, _ loader.Resolver) (loader.Resolution, error) {
			asked++
			require.Equal(t, b.source.ref(1).ID, ref.ID)
			require.Equal(t, 3, ref.Attempt)
			require.Empty(t, b.journal.outcomes(1), "before anything is sent")
			return loader.Resolution{Applied: answer}, nil
		}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, asked)
		require.Equal(t, want, b.journal.outcomes(1))
		require.EqualValues(t, 3, s.Batches)
		for _, e := range b.journal.events {
			if e.Batch == 1 && e.Outcome == event.Applied {
				require.Equal(t, 4, e.Attempt, "attempts count over all processes")
			}
		}
	}
}

func TestBatchThatTheDatabaseCannotTellOfStopsNoOther(t *testing.T) {
	b := labelled(t, 40, nil)
	b.config.Begun = func(number int64) engine.Begun { return engine.Begun{Attempt: map[int64]int{3: 1, 7: 2}[number]} }
	b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
		return loader.Resolution{Applied: loader.Unknown, Reason: "3 of its 10 rows are there"}, nil
	}
	result, s, err := b.run(t.Context())
	require.ErrorContains(t, err, ": the database cannot tell the outcome: 3 of its 10 rows are there")
	require.Regexp(t, `resolving batch [37]:`, err.Error(), "whichever worker was the first")
	require.Equal(t, []int64{3, 7}, result.Unknown)
	require.False(t, result.Drained)
	require.EqualValues(t, 38, s.Batches)
	require.Zero(t, b.memory.Attempts(3), "nothing of it is sent")
}

// A back-end that is no Resolver has labels that lock: a second attempt finds the first.
func TestLabelThatLocksIsItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 4, onAttempt(1, loadertest.Fault{After: loadertest.ErrConnection}))
		b.config.Loader = lockOnly{b.loader.Loader}
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Unknown, event.Started, event.Already}, b.journal.outcomes(1))
		require.Zero(t, b.memory.Resolved())

		b.journal.events = nil // another process: the journal knows that batch 2 was begun and not how it ended
		b.config.Begun = func(number int64) engine.Begun { return engine.Begun{Attempt: map[int64]int{2: 1}[number]} }
		b.config.Done = func(number int64) bool { return number != 2 }
		_, _, err = b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Already}, b.journal.outcomes(2))
	})
}

func TestLabelThatLocksAndNeverAnswersIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 1, func(int64, int) loadertest.Fault { return loadertest.Fault{Before: loadertest.ErrConnection} })
		b.config.Loader = lockOnly{b.loader.Loader}
		result, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "is unknown after 9 attempts")
		require.Equal(t, []int64{0}, result.Unknown)
		require.EqualValues(t, 8, s.Retries)
	})
}

// Every attempt under a label was announced, so the first one can meet only another run's.
func TestLabelOfAnotherRun(t *testing.T) {
	b := labelled(t, 1, nil)
	b.config.Resumed = true
	b.loader.load = func(_ context.Context, batch *batch.Batch, _ loader.Session) (loader.Ack, error) {
		return loader.Ack{AlreadyApplied: true, Rows: batch.Rows}, nil
	}
	_, s, err := b.run(t.Context())
	require.ErrorContains(t, err, "batch 0 of run r is applied already, although it was never sent")
	require.Zero(t, s.Batches)
}

func TestNothingIsSentThatIsNotAnnounced(t *testing.T) {
	b := labelled(t, 2, nil)
	full := errors.New("the disk is full")
	b.config.Record = func(e event.Event) error {
		if e.Outcome == event.Started {
			return full
		}
		return nil
	}
	_, s, err := b.run(t.Context())
	require.ErrorIs(t, err, full)
	require.Empty(t, b.memory.Applied())
	require.NotZero(t, s.FailedBatches)
}
