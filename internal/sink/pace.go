package sink

import "time"

// pace spreads the reading of a connection over time.
type pace struct {
	rate int64     // bytes a second, 0 for no limit
	free time.Time // when the bytes read so far have had their time
}

// readsPerSecond is how many pieces a second's bytes are read in at least: a sink that is slow reads little and often,
// as a slow disk lets a server do, and the client's window closes and opens instead of standing still for seconds.
const readsPerSecond = 50

// atOnce returns how much may be read at once.
func (p *pace) atOnce(n int) int {
	if p.rate == 0 {
		return n
	}
	return min(n, int(max(1, p.rate/readsPerSecond)))
}

// wait returns when more may be read.
func (s *Stream) wait() {
	if s.pace.rate == 0 || s.hurried {
		return
	}
	if d := time.Until(s.pace.free); d > 0 {
		s.sleep(d)
	}
}

// arrears is how much time is made up for: a sleep ends a little late each time, and of TLS, whose reads are small, that
// would be half of the rate. Time in which nothing came is not saved up beyond that.
const arrears = 2 * time.Second / readsPerSecond

// took notes that n bytes were read by now.
func (p *pace) took(n int, now time.Time) {
	if p.rate == 0 {
		return
	}
	if earliest := now.Add(-arrears); p.free.Before(earliest) {
		p.free = earliest
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
}
