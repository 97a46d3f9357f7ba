package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// Rows that refer to those of batch 0 are sent once it is in, after however many attempts, or never.
func TestBatchZeroComesFirst(t *testing.T) {
	connection := loadertest.Fault{Before: loadertest.ErrConnection, Delay: time.Second}
	for name, c := range map[string]struct {
		done, failing bool
		alone         time.Duration // until other batches begin
	}{
		"slow": {alone: 4 * time.Second}, "done": {done: true}, "failing": {failing: true},
	} {
		subtest(t, name, func(t *testing.T) {
			b := newBench(t, 40, &loadertest.Memory{})
			b.memory.Script = func(number int64, attempt int) loadertest.Fault {
				if number == 0 && (attempt < 3 || c.failing) {
					return connection
				}
				return loadertest.Fault{Delay: time.Second}
			}
			b.config.FirstAlone = true
			b.done = func(number int64) bool { return c.done && number == 0 }
			began := time.Now()
			result, s, err := b.run(t.Context())

			others := time.Time{}
			for _, e := range b.journal.events {
				if e.Batch > 0 && (others.IsZero() || e.Start.Before(others)) {
					others = e.Start
				}
			}
			if c.failing {
				require.Error(t, err)
				require.True(t, result.Drained)
				require.True(t, others.IsZero(), "another batch was begun")
				return
			}
			require.NoError(t, err)
			require.GreaterOrEqual(t, others.Sub(began), c.alone-time.Second)
			require.EqualValues(t, map[bool]int64{false: 40, true: 39}[c.done], s.Batches)
		})
	}
}

// A run that is stopped while its workers wait for batch 0 has batches left.
func TestDrainBeforeBatchZeroIsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, &loadertest.Memory{Script: always(loadertest.Fault{Delay: time.Minute})})
		b.config.FirstAlone = true
		time.AfterFunc(time.Second, func() { close(b.drain) })
		result, s, err := b.run(t.Context())
		require.NoError(t, err)
		require.True(t, result.Drained)
		require.EqualValues(t, 1, s.Batches)
	})
}
