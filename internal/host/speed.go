package host

import (
	"hash/crc32"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MeasureSpeed reads memory on all cores for a time, and returns the bytes a second that they got through. It is a
// reference for what is measured before and after it: the same work in every version of terapush, without a server. It
// falls when others take the cores, the memory or the clock rate.
func MeasureSpeed(during time.Duration) float64 {
	const block = 1 << 20 // more than the caches of a core
	var total atomic.Int64
	var working sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			memory := make([]byte, block)
			for time.Since(start) < during {
				crc32.ChecksumIEEE(memory)
				total.Add(block)
			}
		})
	}
	working.Wait()
	return float64(total.Load()) / time.Since(start).Seconds()
}
