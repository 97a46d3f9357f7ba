//go:build unix

package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func systemUsage() (user, system float64, peak int64) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0, 0
	}
	peak = int64(r.Maxrss) << 10 //nolint:unconvert // 32 bits on some systems
	if runtime.GOOS == "darwin" {
		peak = int64(r.Maxrss) //nolint:unconvert // bytes there, KiB everywhere else
	}
	if own := highWaterMark(); own > 0 {
		peak = own
	}
	return float64(r.Utime.Nano()) / 1e9, float64(r.Stime.Nano()) / 1e9, peak
}

// highWaterMark returns Linux's account of the peak, 0 elsewhere. Unlike ru_maxrss it does not survive exec: a process
// started by one of 600 MiB would report 600 MiB for ever.
func highWaterMark() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, value, _ := strings.Cut(string(status), "\nVmHWM:")
	var kib int64
	_, _ = fmt.Sscan(value, &kib)
	return kib << 10
}

// queued sums up the second field of every thread's schedstat, in nanoseconds (Linux's
// Documentation/scheduler/sched-stats). It is read every second; filepath.Glob would list the fifty files of each
// thread.
func queued() float64 {
	const tasks = "/proc/self/task"
	threads, err := os.Open(tasks)
	if err != nil {
		return 0
	}
	defer threads.Close()
	ids, _ := threads.Readdirnames(-1)
	var sum float64
	for _, id := range ids {
		text, err := os.ReadFile(filepath.Join(tasks, id, "schedstat"))
		if err != nil {
			continue // the thread has ended
		}
		if fields := strings.Fields(string(text)); len(fields) >= 2 {
			nanoseconds, _ := strconv.ParseFloat(fields[1], 64) // 0 for what is no number
			sum += nanoseconds / 1e9
		}
	}
	return sum
}

// resetPeak sets the peak to the present resident memory, on Linux.
func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
