package sqlload_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/sqlload"
)

func TestPoll(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		for range sqlload.Poll(t.Context(), 5*ms, 20*ms) {
			at = append(at, time.Since(began))
			if len(at) == 6 {
				break
			}
		}
		require.Equal(t, []time.Duration{0, 5 * ms, 15 * ms, 35 * ms, 55 * ms, 75 * ms}, at)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*ms)
		defer cancel()
		looks := 0
		for range sqlload.Poll(ctx, 5*ms, 5*ms) {
			looks++
		}
		require.Equal(t, 2, looks)
		require.Error(t, ctx.Err(), "it ended in the second pause")
		for range sqlload.Poll(ctx, 5*ms, 5*ms) {
			looks++
		}
		require.Equal(t, 3, looks, "one look in any case")
	})
}
