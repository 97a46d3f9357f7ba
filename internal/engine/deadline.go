package engine

import (
	"sync"
	"time"
)

// deadline chooses how long an attempt may take.
type deadline struct {
	fixed   time.Duration // for each batch; 0: chosen
	mu      sync.Mutex
	slowest time.Duration
}

// An attempt may take twenty times as long as the slowest so far, and never less than two minutes and a second for every
// MiB: short enough to notice a server that hangs tonight, long enough for one that is busy or far away. Beyond an hour
// nobody waits twenty times as long.
const (
	deadlineFloor   = 2 * time.Minute
	deadlinePerMiB  = time.Second
	deadlineFactor  = 20
	deadlineCeiling = time.Hour
)

// limit is for so many batches at once, of so many encoded bytes.
func (d *deadline) limit(batches, size int64) time.Duration {
	if d.fixed > 0 {
		return d.fixed * time.Duration(batches)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	floor := deadlineFloor + time.Duration(size>>20)*deadlinePerMiB
	return max(floor, min(deadlineFactor*d.slowest, deadlineCeiling), 2*d.slowest)
}

func (d *deadline) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slowest = max(d.slowest, took)
}
