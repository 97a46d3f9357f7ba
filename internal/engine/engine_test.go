package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
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

// onAttempt scripts a fault for one attempt at every third batch.
func onAttempt(which int, f loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(number int64, attempt int) loadertest.Fault {
		if number%3 == 1 && attempt == which {
			return f
		}
		return loadertest.Fault{}
	}
}

func TestEveryBatchExactlyOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault loadertest.Fault
		want  []event.Outcome // of a batch that is hit
	}{
		{"no fault", loadertest.Fault{}, []event.Outcome{event.Applied}},
		{"throttled", loadertest.Fault{Before: loadertest.ErrThrottled}, []event.Outcome{event.NotApplied, event.Applied}},
		{"cut before the commit", loadertest.Fault{Before: loadertest.ErrConnection}, []event.Outcome{event.Unknown, event.Applied}},
		{"answer lost", loadertest.Fault{After: loadertest.ErrConnection}, []event.Outcome{event.Unknown, event.Already}},
		{"stalled", loadertest.Fault{Stall: true}, []event.Outcome{event.NotApplied, event.Applied}},
		{"slow", loadertest.Fault{Delay: time.Minute}, []event.Outcome{event.Applied}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 20, &loadertest.Memory{Script: onAttempt(1, c.fault)})
				result, s, err := b.run(t.Context())
				require.NoError(t, err)
				require.Equal(t, engine.Result{Handed: 20, Complete: true}, result)
				b.exact()
				require.Equal(t, c.want, b.journal.outcomes(1))
				require.EqualValues(t, 19*batchRows+lastRows, s.Rows)
				require.EqualValues(t, 20, s.Batches)
				require.EqualValues(t, len(b.journal.events), s.Attempts)
			})
		})
	}
}

func TestResolveFailsSomeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 20, &loadertest.Memory{Script: onAttempt(1, loadertest.Fault{After: loadertest.ErrConnection})})
		asked := map[int64]int{}
		b.config.Workers = 1
		b.loader.resolve = func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error) {
			if asked[ref.ID.Number]++; asked[ref.ID.Number] < 4 {
				return loader.Resolution{}, loadertest.ErrConnection
			}
			return next.Resolve(ctx, ref)
		}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.EqualValues(t, 20, s.Batches)
	})
}

// A thousand batches, of which one in five meets something at every attempt.
func TestChaosEndsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := []loadertest.Fault{
			{Before: loadertest.ErrConnection}, {After: loadertest.ErrConnection}, {Before: loadertest.ErrThrottled},
			{Stall: true}, {Delay: 3 * time.Second},
		}
		b := newBench(t, 1000, &loadertest.Memory{Script: func(number int64, attempt int) loadertest.Fault {
			dice := rand.New(rand.NewPCG(uint64(number), uint64(attempt)))
			if dice.IntN(5) > 0 {
				return loadertest.Fault{}
			}
			return faults[dice.IntN(len(faults))]
		}})
		b.config.Workers = 16
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		require.EqualValues(t, 999*batchRows+lastRows, s.Rows)
		require.EqualValues(t, s.Rows*encodedRow, s.EncodedBytes)

		retries := int64(0)
		for _, e := range b.journal.events {
			if e.Attempt > 1 {
				retries++
			}
		}
		require.NotZero(t, retries)
		require.Equal(t, retries, s.Retries)
	})
}

func TestUnknownIsNeverSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 8, &loadertest.Memory{Script: func(number int64, _ int) loadertest.Fault {
			if number == 2 || number == 5 {
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{}
		}})
		b.config.Workers = 8
		b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
			return loader.Resolution{}, errors.New("no answer")
		}
		result, s, err := b.run(t.Context())
		require.Equal(t, []int64{2, 5}, result.Unknown)
		require.ErrorContains(t, err, "is unknown after 1 attempts: loadertest: connection reset; resolving batch")
		require.ErrorContains(t, err, "no answer")
		require.NotContains(t, err.Error(), "\n")
		require.EqualValues(t, 6, s.Batches)
		require.EqualValues(t, 5*batchRows+lastRows, s.Rows)
		require.Equal(t, []event.Outcome{event.Unknown}, b.journal.outcomes(2))
	})
}

func TestAnswerThatCannotTellIsUnknown(t *testing.T) {
	for _, answer := range []loader.Resolution{{Applied: loader.Unknown}, {Applied: loader.No, Rows: batchRows}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 2, &loadertest.Memory{Script: func(number int64, _ int) loadertest.Fault {
				return loadertest.Fault{After: map[int64]error{0: loadertest.ErrConnection}[number]}
			}})
			b.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) { return answer, nil }
			result, _, err := b.run(t.Context())
			require.Error(t, err)
			require.Equal(t, []int64{0}, result.Unknown)
		})
	}
}

func TestAlreadyAppliedNeedsAnEarlierAttempt(t *testing.T) {
	claimed := func(t *testing.T) *bench {
		b := newBench(t, 3, &loadertest.Memory{})
		first, _, err := b.run(t.Context())
		require.NoError(t, err)
		require.True(t, first.Complete)
		b.journal.events = nil
		return b
	}

	b := claimed(t)
	_, s, err := b.run(t.Context())
	require.ErrorContains(t, err, "is applied already, although it was never sent")
	require.Zero(t, s.Rows)

	b = claimed(t)
	b.config.Resumed = true
	_, s, err = b.run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Outcomes[event.Already])
	require.EqualValues(t, 2*batchRows+lastRows, s.Rows)
	b.exact()
}

func TestClaimOfOtherRowsIsRefused(t *testing.T) {
	b := newBench(t, 1, &loadertest.Memory{})
	b.config.Resumed = true
	b.loader.load = func(context.Context, *batch.Batch, loader.Session) (loader.Ack, error) {
		return loader.Ack{AlreadyApplied: true, Rows: lastRows + 1}, nil
	}
	_, s, err := b.run(t.Context())
	require.ErrorContains(t, err, "the database reports batch 0 of run r as applied with 4 rows, and it has 3")
	require.Zero(t, s.Batches)
	require.EqualValues(t, 1, s.UnknownBatches, "rows of it are in")
}

// Sending again or asking would both turn missing rows into success: the claim says that the batch is in.
func TestMissingRowsAreNoSuccess(t *testing.T) {
	b := newBench(t, 1, &loadertest.Memory{Script: onAttempt(0, loadertest.Fault{})})
	b.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Missing: 2} }
	result, s, err := b.run(t.Context())
	require.ErrorContains(t, err, "the server took 1 of 3 rows")
	require.Equal(t, []int64{0}, result.Unknown)
	require.Zero(t, s.Batches)
	require.Zero(t, b.memory.Resolved())
	require.Equal(t, 1, b.memory.Attempts(0))
}

func TestAtLeastOnce(t *testing.T) {
	t.Run("missing rows are counted and the run goes on", func(t *testing.T) {
		b := newBench(t, 5, &loadertest.Memory{Caps: &loader.Caps{}, Script: func(number int64, _ int) loadertest.Fault {
			return loadertest.Fault{Missing: number % 2}
		}})
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.MissingRows)
		require.EqualValues(t, 5, s.Batches)
		require.EqualValues(t, 4*batchRows+lastRows-2, s.Rows)
	})
	t.Run("who counts nothing is not compared", func(t *testing.T) {
		b := newBench(t, 5, &loadertest.Memory{Caps: &loader.Caps{}, Script: func(int64, int) loadertest.Fault {
			return loadertest.Fault{Missing: 1}
		}})
		b.config.Uncounted = true
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.Zero(t, s.MissingRows)
	})
	t.Run("a lost answer doubles, and says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 2, &loadertest.Memory{Caps: &loader.Caps{}, Script: func(number int64, attempt int) loadertest.Fault {
				if number == 0 && attempt == 1 {
					return loadertest.Fault{After: loadertest.ErrConnection}
				}
				return loadertest.Fault{}
			}})
			_, s, err := b.run(t.Context())
			require.NoError(t, err)
			require.Len(t, b.memory.Applied(), 3)
			require.Zero(t, b.memory.Resolved())
			require.EqualValues(t, 1, s.Outcomes[event.Unknown])
			require.Contains(t, b.log.String(), "rows may be in the table twice")
		})
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
		require.ErrorContains(t, err, "batch 1 (keys 10 to 19) is not applied after 1 attempts")
		require.True(t, result.Drained)
		require.EqualValues(t, 4, result.Handed)
		require.EqualValues(t, 3, s.Batches, "those on their way are finished")
		require.EqualValues(t, 1, s.FailedBatches)
		require.Empty(t, result.Unknown)
	})
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, &loadertest.Memory{Script: func(int64, int) loadertest.Fault {
			return loadertest.Fault{Before: loadertest.ErrThrottled}
		}})
		_, s, err := b.run(t.Context())
		require.ErrorContains(t, err, "is not applied after 9 attempts")
		require.EqualValues(t, 8, s.Retries)
		require.EqualValues(t, 9, s.Errors[loader.ClassThrottled])
	})
}

func TestDoneBatchesAreNotSent(t *testing.T) {
	b := newBench(t, 10, &loadertest.Memory{})
	b.config.Done = func(number int64) bool { return number != 4 }
	close(b.drain)
	b.drain = nil
	_, s, err := b.run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Batches)
	require.Equal(t, 1, b.memory.Attempts(4))
}
