package stats

import (
	"runtime"
	"runtime/debug"
)

// Usage is the resource usage of this process.
type Usage struct {
	Cores         int // the cgroup's limit if that is lower than the machine's
	UserSeconds   float64
	SystemSeconds float64
	// QueuedSeconds is how long its threads were ready to run and had no core, on Linux. Ended threads are not counted, so
	// it may fall a little.
	QueuedSeconds float64
	PeakRSSBytes  int64 // with the mapped buffers
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

// Meter measures the usage of this process from its start on. Of overlapping meters the peak memory is shared.
type Meter struct{ began Usage }

// StartMeter starts a meter. It returns unused memory to the system and, on Linux, resets the peak, also for other
// programs that watch this process: a push must not be charged with earlier ones. Elsewhere the peak is that of the
// whole process.
func StartMeter() Meter {
	debug.FreeOSMemory()
	_ = resetPeak()
	return Meter{ProcessUsage()}
}

// Usage returns the usage since the start.
func (m Meter) Usage() Usage {
	u := ProcessUsage()
	u.UserSeconds -= m.began.UserSeconds
	u.SystemSeconds -= m.began.SystemSeconds
	u.QueuedSeconds -= m.began.QueuedSeconds
	return u
}
