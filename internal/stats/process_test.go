package stats_test

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
)

// burn takes memory and gives it back, and some time.
func burn() {
	memory := make([]byte, 96<<20)
	for i := 0; i < len(memory); i += 1024 {
		memory[i] = byte(i)
	}
	runtime.KeepAlive(memory)
}

func TestMeterCountsFromItsStart(t *testing.T) {
	const freed = 64 << 20
	first := stats.StartMeter()
	burn()
	spent := first.Usage()
	second := stats.StartMeter()
	fresh := second.Usage()
	require.Greater(t, spent.CPU(), fresh.CPU(), "what came before is not charged")
	require.Less(t, fresh.CPU(), stats.ProcessUsage().CPU())
	require.Positive(t, spent.Cores)
	require.Equal(t, spent.Cores, fresh.Cores)
	require.Greater(t, spent.PeakRSSBytes, int64(64<<20), "bytes, not KiB")
	require.Less(t, spent.PeakRSSBytes, int64(1<<40))

	if f, err := os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip("the peak is the process's here:", err)
	} else {
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Less(t, fresh.PeakRSSBytes, spent.PeakRSSBytes-freed)
	burn()
	require.Greater(t, second.Usage().PeakRSSBytes, fresh.PeakRSSBytes+freed)
}
