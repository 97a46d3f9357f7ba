package engine

import "sync"

// numbers hands out the batch numbers in order, without those that are done.
type numbers struct {
	end   int64
	done  func(int64) bool
	ended func() // called as soon as nothing will be handed out any more, perhaps several times

	mu      sync.Mutex
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

// skip passes over what is done, so that the last number is known as such when it is handed out.
func (n *numbers) skip() {
	for n.next < n.end && n.done(n.next) {
		n.next++
	}
	if n.next >= n.end {
		n.ended()
	}
}

// stop ends the handing out. Where nothing was left to hand out it cuts nothing off.
func (n *numbers) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skip()
	n.stopped = n.stopped || n.next < n.end
	n.ended()
}

// state returns how many numbers were passed, and whether the end was cut off.
func (n *numbers) state() (handed int64, stopped bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next, n.stopped
}
