package sqlload

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A fence waits for as long as it says that it has waited: a killed process's transaction may take the whole of it to be
// rolled back.
func TestFenceWaitsItsWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), 0
		err := AwaitFence(t.Context(),
			func(wait time.Duration) (bool, error) { time.Sleep(wait); return false, nil },
			func() (string, error) { ended++; return "", nil })
		require.ErrorContains(t, err, "their transactions have held the claim table for 1m0s: by whom the server does not say")
		require.InDelta(t, fenceTime, time.Since(began), float64(time.Second))
		require.Equal(t, 2, ended, "once to end the run's own sessions, once to name those of others")
	})
}
