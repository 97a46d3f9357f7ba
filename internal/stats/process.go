package stats

import (
	"runtime"
	"runtime/debug"
)

// Usage is what this process took of the machine.
type Usage struct {
	Cores         int // that it may use at once: the cgroup's limit where that is lower than the machine's
	UserSeconds   float64
	SystemSeconds float64
	// QueuedSeconds is how long its threads, added up, were ready to run and had no core. Threads that have ended are not
	// in it, so that it may fall a little. 0 where the system does not report it; Linux does.
	QueuedSeconds float64
	PeakRSSBytes  int64 // largest resident memory, the mapped buffers included
}

// ProcessUsage returns the usage of this process since it started; what the system does not report is 0.
func ProcessUsage() Usage {
	u := Usage{Cores: runtime.GOMAXPROCS(0)}
	u.UserSeconds, u.SystemSeconds, u.PeakRSSBytes = systemUsage()
	u.QueuedSeconds = queued()
	return u
}

// CPU returns user and system time together, in seconds.
func (u Usage) CPU() float64 { return u.UserSeconds + u.SystemSeconds }

// Meter measures what this process takes from a moment on. One at a time is exact: memory is the process's.
type Meter struct{ began Usage }

// StartMeter begins to measure. It returns unused memory to the system, and on Linux resets the peak so far, so that a
// push is not charged with those before it; elsewhere the peak stays that of the whole process. From then on other
// programs that watch this process see the new peak, too.
func StartMeter() Meter {
	debug.FreeOSMemory()
	_ = resetPeak() // without it the peak is the process's
	return Meter{ProcessUsage()}
}

// Usage returns what was taken since the start. The peak is the process's where it could not be reset.
func (m Meter) Usage() Usage {
	u := ProcessUsage()
	u.UserSeconds -= m.began.UserSeconds
	u.SystemSeconds -= m.began.SystemSeconds
	u.QueuedSeconds -= m.began.QueuedSeconds
	return u
}
