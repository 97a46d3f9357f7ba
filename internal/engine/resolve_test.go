package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestEveryAttemptUnderALabelIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := labelled(t, 5, &loadertest.Memory{Script: atEveryThird(loadertest.Fault{Before: loadertest.ErrConnection})})
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Unknown, event.Started, event.Applied}, b.journal.outcomes(1))
		for i, e := range b.journal.about(1, false) {
			require.Equal(t, 1+i/2, e.Attempt)
			require.False(t, e.Start.IsZero())
		}
		require.EqualValues(t, 7, s.Attempts, "announcements are no attempts")
	})
}

// What cannot be announced is not sent: a resume would not know of it.
func TestNothingIsSentUnannounced(t *testing.T) {
	for name, open := range map[string]func(*testing.T, int64, *loadertest.Memory) *bench{
		"label": labelled, "commit group": staged,
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, 2, &loadertest.Memory{})
			full := errors.New("the disk is full")
			b.note = func(e event.Event) error {
				if e.Outcome == event.Started {
					return full
				}
				return nil
			}
			_, s, err := b.run(t.Context())
			require.ErrorIs(t, err, full)
			require.Empty(t, b.memory.Applied())
			require.Zero(t, b.memory.Commits(0))
			require.NotZero(t, s.FailedBatches)
		})
	}
}

func TestResumeResolvesBegunBatches(t *testing.T) {
	for answer, want := range map[loader.Applied][]event.Outcome{
		loader.Yes: {event.Already},
		loader.No:  {event.Started, event.Applied},
	} {
		b := labelled(t, 3, &loadertest.Memory{})
		b.begun = map[int64]engine.Attempts{1: {Attempt: 3}}
		asked := 0
		b.loader.resolve = func(_ context.Context, ref loader.Ref, _ loader.Resolver) (loader.Resolution, error) {
			asked++
			require.EqualValues(t, 1, ref.ID.Number)
			require.Equal(t, 3, ref.Attempt)
			require.Empty(t, b.journal.outcomes(1), "before anything is sent")
			return loader.Resolution{Applied: answer}, nil
		}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, asked)
		require.Equal(t, want, b.journal.outcomes(1))
		require.EqualValues(t, 3, s.Batches)
		for _, e := range b.journal.about(1, false) {
			require.Equal(t, e.Outcome == event.Already, e.Attempt == 3, "attempts count over all processes")
		}
	}
}

// The server may end an attempt only when its session ends, and Resolve would wait for that.
func TestResolveComesAfterTheSession(t *testing.T) {
	lost := loadertest.Fault{After: &loader.Error{Op: "load", Applied: loader.Unknown, Err: loadertest.ErrThrottled}} // the session lives
	b := newBench(t, 3, &loadertest.Memory{Script: at(1, lost)})
	b.config.Workers = 1
	b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
		require.Zero(t, b.loader.open.Load(), "sessions while the database is asked")
		return next.Resolve(ctx, ref)
	}
	_, _, err := b.run(t.Context())
	require.NoError(t, err)
	b.exact()
	require.Equal(t, 1, b.memory.Resolved())
}

// An answer that tells nothing is about all attempts, also where the newest certainly failed. Nothing more of the batch
// is sent, and the others continue.
func TestUndecidedBatchStopsNoOther(t *testing.T) {
	for name, begun := range map[string]bool{"of an earlier process": true, "of this process": false} {
		subtest(t, name, func(t *testing.T) {
			b := labelled(t, 40, &loadertest.Memory{})
			undecided := map[int64]engine.Attempts{3: {Attempt: 1}, 7: {Attempt: 2}}
			if begun {
				b.begun = undecided
			}
			b.loader.load = func(ctx context.Context, batch *batch.Batch, next loader.Session) (loader.Ack, error) {
				if undecided[batch.ID.Number].Attempt > 0 {
					require.False(t, begun, "not sent")
					return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: loadertest.ErrConnection}
				}
				return next.Load(ctx, batch)
			}
			var asked atomic.Int64
			b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
				asked.Add(1)
				return loader.Resolution{Reason: "3 of its 10 rows are there"}, nil
			}
			result, s, err := b.run(t.Context())
			require.Regexp(t, `resolving batch [37]: the database cannot tell the outcome: 3 of its 10 rows are there`, err)
			require.Equal(t, engine.Result{Unknown: []int64{3, 7}, Handed: 40}, result)
			require.EqualValues(t, 38, s.Batches)
			require.EqualValues(t, 2, asked.Load(), "asking again would not help")
		})
	}
}

func TestLabelThatLocksIsItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := locking(t, 4, &loadertest.Memory{Script: atEveryThird(loadertest.Fault{After: loadertest.ErrConnection})})
		_, _, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Unknown, event.Started, event.Already}, b.journal.outcomes(1))
		require.Zero(t, b.memory.Resolved())

		b.journal.events = nil // another process: the journal knows that batch 2 was begun and not how it ended
		b.begun = map[int64]engine.Attempts{2: {Attempt: 1}}
		b.done = func(number int64) bool { return number != 2 }
		_, _, err = b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.Equal(t, []event.Outcome{event.Started, event.Already}, b.journal.outcomes(2))
	})
}

// However certain the end of a later attempt is: the first one may be in, and the database was not asked.
func TestUnknownStaysUnknownUntilResolved(t *testing.T) {
	rows := &loader.Error{Op: "load", Applied: loader.No, Err: &loader.RowsError{Sent: 3, Acknowledged: 1}}
	for _, later := range []error{loadertest.ErrThrottled, loadertest.ErrRejected, rows} {
		script := func(_ int64, attempt int) loadertest.Fault {
			if attempt == 1 {
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{Before: later}
		}
		for name, open := range map[string]func(*testing.T) *bench{
			"at least once":    func(t *testing.T) *bench { return atLeastOnce(t, 1, &loadertest.Memory{Script: script}) },
			"labels that lock": func(t *testing.T) *bench { return locking(t, 1, &loadertest.Memory{Script: script}) },
			"a group at least once": func(t *testing.T) *bench {
				b := staged(t, 1, &loadertest.Memory{GroupScript: script})
				b.config.Contract.Dedup = loader.DedupNone
				return b
			},
		} {
			subtest(t, name+", "+later.Error(), func(t *testing.T) {
				b := open(t)
				result, s, err := b.run(t.Context())
				require.ErrorContains(t, err, "is unknown after")
				require.Equal(t, []int64{0}, result.Unknown)
				require.Len(t, b.memory.Applied(), 1)
				require.Zero(t, s.FailedBatches)
			})
		}
	}
}

// An earlier process lost the answer, and there is no Resolver.
func TestUnknownOfAnEarlierProcess(t *testing.T) {
	rejected := always(loadertest.Fault{Before: loadertest.ErrRejected})
	for _, c := range []struct {
		b     *bench
		begun engine.Attempts
		want  []int64
	}{
		{atLeastOnce(t, 1, &loadertest.Memory{Script: rejected}), engine.Attempts{Attempt: 2}, nil},
		{atLeastOnce(t, 1, &loadertest.Memory{Script: rejected}), engine.Attempts{Attempt: 2, Unknown: true}, []int64{0}},
		{locking(t, 1, &loadertest.Memory{Script: rejected}), engine.Attempts{Attempt: 2}, []int64{0}},
	} {
		c.b.begun = map[int64]engine.Attempts{0: c.begun}
		result, _, err := c.b.run(t.Context())
		require.ErrorIs(t, err, loadertest.ErrRejected)
		require.Equal(t, c.want, result.Unknown)
	}
}

func TestBackEndThatContradictsItsContract(t *testing.T) {
	for _, isStaged := range []bool{true, false} {
		b := newBench(t, 4, &loadertest.Memory{})
		if isStaged {
			b = staged(t, 4, &loadertest.Memory{})
		}
		b.loader.load = func(_ context.Context, batch *batch.Batch, _ loader.Session) (loader.Ack, error) {
			return loader.Ack{Rows: batch.Rows, Stored: !isStaged}, nil
		}
		_, _, err := b.run(t.Context())
		require.ErrorContains(t, err, fmt.Sprintf("the back-end returned stored=%t for batch", !isStaged))
	}
	b := staged(t, 4, &loadertest.Memory{})
	b.config.Loader, b.config.Contract.Method = struct{ loader.Loader }{b.loader}, "detour"
	_, _, err := b.run(t.Context())
	require.EqualError(t, err, "method detour stores batches, and the back-end cannot commit them")
	require.Zero(t, b.memory.Objects(), "found out before the first upload")
}
