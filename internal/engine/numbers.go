package engine

import "sync"

// numbers hands out the batch numbers in order, skipping those that are done.
type numbers struct {
	done  func(int64) bool
	ended func() // called as soon as no more numbers will be handed out, perhaps several times

	mu      sync.Mutex
	end     int64 // an upper bound until the source has said where it is
	next    int64
	stopped bool
}

// take returns the next number, or false when there is none or the run stops.
func (n *numbers) take() (number int64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skip()
	if n.stopped || n.next >= n.end {
		return 0, false
	}
	number = n.next
	n.next++
	n.skip()
	return number, true
}

// skip skips numbers that are done, so that take knows whether it hands out the last one.
func (n *numbers) skip() {
	for n.next < n.end && n.done(n.next) {
		n.next++
	}
	if n.next >= n.end {
		n.ended()
	}
}

// stop hands out no more numbers. It has no effect if none was left.
func (n *numbers) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skip()
	n.stopped = n.stopped || n.next < n.end
	n.ended()
}

// endAt ends the numbers where the source has ended: numbers that were handed out past it have no batch.
func (n *numbers) endAt(end int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end = min(n.end, end)
	n.next = min(n.next, n.end)
	n.skip()
	n.stopped = n.stopped && n.next < n.end
}

// state returns the next number, the number behind the last one, and whether stop left any between them.
func (n *numbers) state() (next, end int64, stopped bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next, n.end, n.stopped
}
