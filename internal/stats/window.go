package stats

import "github.com/terapush/terapush/pkg/event"

// Window is what happened between two readings, or in several windows together.
type Window struct {
	Seconds float64                 // its length
	Workers map[event.State]float64 // seconds of all workers
	// Sockets counts what happened in the window. What it tells of an instant is of the window's end.
	Sockets       event.Sockets
	CPU           float64 // seconds of this process
	Queued        float64 // likewise, see Reading
	Cores         int
	Payload, Wire int64 // as in Reading

	dialled bool // there are sockets that tell what workers wait for
	// overhead is how many bytes went over the wire for one of payload since the run's start: bytes are on the wire some
	// time before or after the batch counts as sent, which in one window may be all of them. 0 is not known.
	overhead float64
}

// between makes a window of what no counter lost: those of sockets are put together from connections that open and close
// meanwhile, so that one may be a moment behind.
func between(a, b Reading) Window {
	w := Window{
		Seconds: b.At.Sub(a.At).Seconds(), Workers: make(map[event.State]float64), Sockets: since(a.Sockets, b.Sockets),
		CPU: max(b.CPU-a.CPU, 0), Queued: max(b.Queued-a.Queued, 0), Cores: b.Cores, Payload: b.Payload - a.Payload, Wire: b.Wire - a.Wire,
		dialled: b.Sockets.Dialled > 0,
	}
	for _, state := range event.States() {
		w.Workers[state] = max(b.Workers[state]-a.Workers[state], 0)
	}
	if b.Payload > 0 {
		w.overhead = float64(b.Wire) / float64(b.Payload)
	}
	return w
}

// saturated tells whether the process used all its cores, or would have.
func (w Window) saturated() bool {
	return w.Cores > 0 && w.Seconds > 0 && w.CPU+w.Queued >= nearlyAll*w.Seconds*float64(w.Cores)
}

// WorkerSeconds is the time of all workers, whatever they did.
func (w Window) WorkerSeconds() float64 {
	var sum float64
	for _, seconds := range w.Workers {
		sum += seconds
	}
	return sum
}

// add puts a later window behind this one.
func (w *Window) add(next Window) {
	if w.Workers == nil {
		w.Workers = make(map[event.State]float64)
	}
	w.Seconds += next.Seconds
	w.CPU += next.CPU
	w.Queued += next.Queued
	w.Cores = next.Cores
	w.Payload += next.Payload
	w.Wire += next.Wire
	for state, seconds := range next.Workers {
		w.Workers[state] += seconds
	}
	sum := next.Sockets // and what it tells of an instant
	sum.Dialled += w.Sockets.Dialled
	sum.Blocked += w.Sockets.Blocked
	sum.Awaited += w.Sockets.Awaited
	sum.Turns += w.Sockets.Turns
	sum.RoundTrips += w.Sockets.RoundTrips
	sum.Out += w.Sockets.Out
	sum.Busy += w.Sockets.Busy
	sum.RwndLimited += w.Sockets.RwndLimited
	sum.SndbufLimited += w.Sockets.SndbufLimited
	sum.Local += w.Sockets.Local
	sum.Retransmits += w.Sockets.Retransmits
	sum.Segments += w.Sockets.Segments
	w.Sockets = sum
}

// since is what sockets did after they had done a.
func since(a, b event.Sockets) event.Sockets {
	d := b
	d.Dialled = max(b.Dialled-a.Dialled, 0)
	d.Blocked = max(b.Blocked-a.Blocked, 0)
	d.Awaited = max(b.Awaited-a.Awaited, 0)
	d.Turns = max(b.Turns-a.Turns, 0)
	d.RoundTrips = max(b.RoundTrips-a.RoundTrips, 0)
	d.Out = max(b.Out-a.Out, 0)
	d.Busy = max(b.Busy-a.Busy, 0)
	d.RwndLimited = max(b.RwndLimited-a.RwndLimited, 0)
	d.SndbufLimited = max(b.SndbufLimited-a.SndbufLimited, 0)
	d.Local = max(b.Local-a.Local, 0)
	d.Retransmits = max(b.Retransmits-a.Retransmits, 0)
	d.Segments = max(b.Segments-a.Segments, 0)
	return d
}
