package stats

import (
	"runtime"
)

// Usage is what this process took of the machine since it started.
type Usage struct {
	Cores         int // that it may use at once: the cgroup's limit where that is lower than the machine's
	UserSeconds   float64
	SystemSeconds float64
	PeakRSSBytes  int64 // largest resident memory, the mapped buffers included
}

// ProcessUsage measures this process; what the system does not tell is 0.
func ProcessUsage() Usage {
	u := Usage{Cores: runtime.GOMAXPROCS(0)}
	u.UserSeconds, u.SystemSeconds, u.PeakRSSBytes = systemUsage()
	return u
}

// CPU is the user's and the system's time together, in seconds.
func (u Usage) CPU() float64 { return u.UserSeconds + u.SystemSeconds }
