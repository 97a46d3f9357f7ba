package faultproxy

import (
	"bytes"
	"sync/atomic"
	"time"
)

// Action is what a fault does to a connection.
type Action int

// The actions. A cut is a TCP reset of both sides.
const (
	// Cut resets before what triggered it reaches the server: the statement did not happen.
	Cut Action = iota
	// CutAfterAnswer lets it through, waits for the server's answer and resets instead of delivering it: the
	// statement happened, and the client cannot know.
	CutAfterAnswer
	// Stall holds the connection's traffic in both directions for a while, then goes on.
	Stall
)

// Fault is one thing that goes wrong, again and again. It keeps its own count over all connections, so it belongs to
// one proxy; its fields are not changed after New.
type Fault struct {
	Action Action
	// Match triggers when a client sends these bytes, however its writes are cut. It is compared byte by byte, and
	// payloads are searched as well: for short words that random data could hold, add the protocol's bytes before it.
	Match []byte
	// Bytes triggers, where Match is empty, each time one connection's client has sent so many more bytes. With Cut
	// the server gets no more than those before.
	Bytes int64
	// Every lets only each n-th trigger through, counted over all connections; 0 is 1.
	Every int64
	// Times bounds how often it goes wrong; 0 is without end.
	Times int64
	// For is how long a Stall lasts.
	For time.Duration

	seen, injected atomic.Int64
}

// Injected returns how often it went wrong. A test that is about a fault asserts that there was one.
func (f *Fault) Injected() int64 { return f.injected.Load() }

// due counts a trigger and reports whether it is one that goes wrong.
func (f *Fault) due() bool {
	n, every := f.seen.Add(1), max(f.Every, 1)
	return n%every == 0 && (f.Times == 0 || n/every <= f.Times)
}

// watch looks for one fault's triggers in one connection's client traffic.
type watch struct {
	*Fault
	passed int64
}

// look searches new client traffic: window[old:], which follows on window[:old]. at is how many of the new bytes come
// before the trigger that goes wrong.
func (w *watch) look(window []byte, old int) (at int, hit bool) {
	if len(w.Match) == 0 {
		return w.count(len(window) - old)
	}
	// What ended among the old bytes was found before.
	for from := max(0, old-(len(w.Match)-1)); ; {
		i := bytes.Index(window[from:], w.Match)
		if i < 0 {
			return 0, false
		}
		if w.due() {
			return max(0, from+i-old), true
		}
		from += i + len(w.Match)
	}
}

func (w *watch) count(n int) (at int, hit bool) {
	if w.Bytes <= 0 {
		return 0, false
	}
	start := w.passed
	w.passed += int64(n)
	for mark := (start/w.Bytes + 1) * w.Bytes; mark <= w.passed; mark += w.Bytes {
		if w.due() {
			return int(mark - start), true
		}
	}
	return 0, false
}
