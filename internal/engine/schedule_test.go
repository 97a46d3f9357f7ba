package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// A server that takes 50 ms for a batch, and stands still from the fifth second to the fifteenth.
const (
	service   = 50 * time.Millisecond
	freezesAt = 5 * time.Second
	thawsAt   = 15 * time.Second
	sent      = 601 // batches
)

// freezing runs at so many batches a second, or in a closed loop at 0, and gives the attempts in the order of their
// starts.
func freezing(t *testing.T, perSecond int64) (events []event.Event, began time.Time, s event.Snapshot) {
	began = time.Now()
	b := newBench(t, sent, &loadertest.Memory{Script: func(int64, int) loadertest.Fault {
		if at := time.Since(began); at >= freezesAt && at < thawsAt {
			return loadertest.Fault{Delay: thawsAt - at + service}
		}
		return loadertest.Fault{Delay: service}
	}})
	b.config.MaxRate, b.config.BatchBytes = perSecond*batchRows*encodedRow, batchRows*encodedRow
	_, s, err := b.run(t.Context())
	require.NoError(t, err)
	b.exact()
	require.EqualValues(t, sent, s.BatchSeconds.Count(), "one latency a batch")
	slices.SortFunc(b.journal.events, byStart)
	return b.journal.events, began, s
}

func byStart(x, y event.Event) int {
	if c := x.Intended.Compare(y.Intended); c != 0 {
		return c
	}
	return x.Start.Compare(y.Start)
}

func slowerThan(seconds float64, events []event.Event) (n int) {
	for _, e := range events {
		if e.Latency() > seconds {
			n++
		}
	}
	return n
}

// A client with a schedule of its own has to wait with every batch that the freeze holds up, and so says the latency.
func TestOpenLoopShowsAFreezeInAllThatItHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 10
		events, began, s := freezing(t, perSecond)
		held := 0
		for i, e := range events {
			at := time.Duration(i) * time.Second / perSecond
			require.Equal(t, at, e.Intended.Sub(began), "the schedule waits for nobody")
			require.False(t, e.Start.Before(e.Intended), "the average since the start is never above the rate")
			if at >= freezesAt && at < thawsAt {
				held++
				require.GreaterOrEqual(t, e.Latency(), (thawsAt - at).Seconds())
			}
		}
		require.Equal(t, 100, held)
		require.Greater(t, slowerThan(1, events), 90)
		require.Equal(t, (thawsAt - freezesAt + service).Seconds(), events[50].Latency())
		require.EqualValues(t, slowerThan(1, events), above(1, s), "which is what the histogram has")
		last := events[sent-1]
		require.Equal(t, last.Intended, last.Start, "the backlog was made up for")
		require.Equal(t, 60*time.Second, last.Start.Sub(began))
		require.Equal(t, service.Seconds(), last.Latency())
	})
}

// above returns how many latencies the histogram has above one of its bounds.
func above(seconds float64, s event.Snapshot) (n int64) {
	i, _ := slices.BinarySearch(s.BatchSeconds.Bounds, seconds)
	for _, c := range s.BatchSeconds.Counts[i+1:] {
		n += c
	}
	return n
}

func TestClosedLoopShowsAFreezeOnceForEachWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, _, s := freezing(t, 0)
		require.Equal(t, 4, slowerThan(1, events), "as many as there are workers")
		require.EqualValues(t, 4, above(1, s))
		for _, e := range events {
			require.Zero(t, e.Intended)
		}
	})
}

// Retries count from when the batch should have been sent first.
func TestIntendedStartOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10, &loadertest.Memory{Script: func(number int64, attempt int) loadertest.Fault {
			if number == 3 && attempt < 4 {
				return loadertest.Fault{Delay: time.Second, Before: loadertest.ErrThrottled}
			}
			return loadertest.Fault{Delay: time.Second}
		}})
		b.config.MaxRate, b.config.BatchBytes = batchRows*encodedRow, batchRows*encodedRow
		began := time.Now()
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 10, s.BatchSeconds.Count(), "failed attempts have no latency of their own")
		attempts := 0
		for _, e := range b.journal.events {
			require.Equal(t, time.Duration(e.Batch)*time.Second, e.Intended.Sub(began))
			if e.Batch == 3 {
				attempts++
				require.GreaterOrEqual(t, e.Latency(), float64(attempts), "with those before it")
			}
		}
		require.Equal(t, 4, attempts)
		require.Greater(t, s.BatchSeconds.Sum, 9+4.0)
	})
}

// Nobody knows how long a batch is before it is made: of some formats no two are alike. What was guessed wrong is made
// good later.
func TestRateOfBatchesThatAreNotAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 401, &loadertest.Memory{})
		b.config.Source = uneven{b.source}
		b.config.MaxRate, b.config.BatchBytes = 1000, 7*batchRows*encodedRow
		began := time.Now()
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		whole := time.Duration(float64(s.EncodedBytes) / 1000 * float64(time.Second))
		slack := time.Duration(b.config.Workers+1) * 7 * batchRows * encodedRow * time.Millisecond
		require.InDelta(t, whole, time.Since(began), float64(slack))
		require.Greater(t, whole, 10*slack)
	})
}

// uneven makes batches whose bodies have the length that the number tells, one to five times the usual.
type uneven struct{ *source }

func (u uneven) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	b, err := u.source.Batch(ctx, number)
	if err == nil {
		b.Encoded = slices.Repeat(b.Encoded, int(number*number%5)+1)
	}
	return b, err
}
