package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine/retry"
)

func TestWaitsGrowAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := retry.Policy{Retries: 10}.Waits()
		middle := 250 * time.Millisecond
		for range 10 {
			start := time.Now()
			require.True(t, waits.Wait(t.Context(), 0))
			require.InDelta(t, middle, time.Since(start), float64(middle/2), "half as much more or less")
			middle = min(2*middle, 30*time.Second)
		}
		require.False(t, waits.Wait(t.Context(), 0))
	})
}

func TestTheServerMayAskForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.True(t, retry.Policy{Retries: 1}.Waits().Wait(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(start))
	})
}

func TestNobodyWaitsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		waits := retry.Policy{Retries: 2}.Waits()
		require.False(t, waits.Wait(ctx, time.Hour))
		require.False(t, waits.Wait(ctx, 0))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestNoRetries(t *testing.T) {
	require.False(t, retry.Policy{}.Waits().Wait(t.Context(), 0))
}
