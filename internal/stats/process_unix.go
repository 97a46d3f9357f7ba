//go:build unix

package stats

import (
	"bufio"
	"bytes"
	"errors"
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

// highWaterMark returns Linux's own account of the peak, 0 elsewhere. It is preferred to ru_maxrss, which survives
// exec: a process started by one of 600 MiB reports 600 MiB for ever.
func highWaterMark() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if value, found := bytes.CutPrefix(lines.Bytes(), []byte("VmHWM:")); found {
			kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(value, []byte(" kB")))), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// queued adds up the second field of every thread's schedstat, in nanoseconds (Linux's
// Documentation/scheduler/sched-stats). It is read every second: filepath.Glob would list the fifty files of each
// thread to find the one.
func queued() float64 {
	const tasks = "/proc/self/task"
	threads, err := os.Open(tasks)
	if err != nil {
		return 0
	}
	defer threads.Close()
	ids, _ := threads.Readdirnames(-1) // on an error some threads are missing, which have ended
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

// resetPeak makes the peak what is resident now. The kernel does that in constant time, and lets every process do it to
// itself; it is an error where there is no such file.
func resetPeak() error {
	f, err := os.OpenFile("/proc/self/clear_refs", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("5")
	return errors.Join(err, f.Close())
}
