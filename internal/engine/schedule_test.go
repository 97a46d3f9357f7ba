package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
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

// A client with a schedule of its own has to wait with every batch that the freeze delays, and so says the latency.
func TestLatencyOfAllBatchesDelayedByAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 10
		began := time.Now()
		b := newBench(t, sent, &loadertest.Memory{Script: func(int64, int) loadertest.Fault {
			if at := time.Since(began); at >= freezesAt && at < thawsAt {
				return loadertest.Fault{Delay: thawsAt - at + service}
			}
			return loadertest.Fault{Delay: service}
		}})
		b.config.Rate = engine.Rate{PerSecond: perSecond * batchRows * encodedRow, BatchBytes: batchRows * encodedRow}
		_, s, err := b.run(t.Context())
		require.NoError(t, err)
		b.exact()
		events := b.journal.events
		slices.SortFunc(events, func(x, y event.Event) int { return x.Intended.Compare(y.Intended) })
		delayed := 0
		for i, e := range events {
			at := time.Duration(i) * time.Second / perSecond
			require.Equal(t, at, e.Intended.Sub(began), "the schedule does not wait")
			require.False(t, e.Start.Before(e.Intended), "the average since the start is never above the rate")
			if at >= freezesAt && at < thawsAt {
				delayed++
				require.GreaterOrEqual(t, e.Latency(), (thawsAt - at).Seconds())
			}
		}
		require.Equal(t, 100, delayed)
		require.Equal(t, (thawsAt - freezesAt + service).Seconds(), events[50].Latency())
		require.EqualValues(t, sent, s.BatchSeconds.Count(), "one latency a batch")
		last := events[sent-1]
		require.Equal(t, last.Intended, last.Start, "the backlog was made up for")
		require.Equal(t, 60*time.Second, last.Start.Sub(began))
		require.Equal(t, 60*time.Second+service, time.Since(began), "nothing waits once all numbers are handed out")
		require.Greater(t, s.WorkerSeconds[event.WaitRate], 60.0)
		require.Equal(t, service.Seconds(), last.Latency())
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
		b.config.Rate = engine.Rate{PerSecond: batchRows * encodedRow, BatchBytes: batchRows * encodedRow}
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

// The length of a batch is not known before it is made. A wrong estimate is corrected later.
func TestRateOfBatchesThatAreNotAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 401, &loadertest.Memory{})
		b.config.Source = uneven{b.source}
		b.config.Rate = engine.Rate{PerSecond: 1000, BatchBytes: 7 * batchRows * encodedRow}
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
type uneven struct{ *batches }

func (u uneven) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	b, err := u.batches.Batch(ctx, number)
	if err == nil {
		b.Encoded = slices.Repeat(b.Encoded, int(number*number%5)+1)
	}
	return b, err
}
