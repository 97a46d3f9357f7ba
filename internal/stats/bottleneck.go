package stats

import (
	"maps"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// This file finds what kept a run from going faster: the making of the rows, the client's cores, the network, the
// protocol, the target, a limit that was asked for, or the run's own end.
//
// Everything is an account of the workers' time, so that shares add up. A window is what happened between two readings
// of a run's counters; each worker second in it gets one limit:
//
//   - --max-rate, waiting for a buffer and being out of work are states of their own: limit, source, tail.
//   - Waits between attempts, for commits of what is stored, and questions what became of an attempt are the target's.
//   - The rest is time with a session. The sockets count how much of it was spent blocked in a write or awaiting an
//     answer; what is left is the client's own work.
//   - Of the wait, the round trips (turns × the shortest round trip of the address) are the protocol's. Time in which the
//     last of a question had gone out and no answer came is the target's beyond that. Of what is then left, the time in
//     which the kernel had data to send and the receiver's window was open is the network's, unless both ends are on this
//     machine; the rest, in which the server did not read, is the target's.
//   - Of the network's time, the share of bytes that are no payload is the protocol's, where these are more than a tenth.
//   - A process that uses all its cores, or would if other processes left them to it, is bound by them, whatever else its
//     sessions and its buffers waited for meanwhile: every wait is also one for a core. Only a receiver's full window
//     shows that the target was slower still.
//
// Where no socket is measured, because a database's own client library opens them or there are none, the time with a
// session in which the process ran, or had no core to run on, is the client's, and the rest the target's. Where the
// system does not report the network's part, it is counted as the target's.

// Reading is a run's counters at one instant, from its start on.
type Reading struct {
	At      time.Time
	Workers map[event.State]float64 // seconds of all workers, while rows move
	Sockets event.Sockets
	CPU     float64 // seconds of this process, user and system
	Queued  float64 // seconds in which its threads, added up, were ready to run and had no core
	Cores   int     // that it may use at once
	// Column data sent, in whatever became of it, and bytes the sockets took.
	Payload, Wire int64
}

// nearlyAll is the share of its cores from which on a process is bound by them, if it uses them or would if others let
// it.
const nearlyAll = 0.9

// overhead is how many bytes on the wire a byte of payload may cost before the protocol is to blame.
const overhead = 1.1

// Seconds is the workers' time by limit.
type Seconds map[event.Limit]float64

// Bottleneck keeps the account of a run, window by window. It has no clock of its own: a window ends when Sample is
// called, once a second, and at the start and the end of a load, so that no window is partly outside of it. It is safe
// for concurrent use.
type Bottleneck struct {
	read func() Reading

	mu      sync.Mutex
	begun   bool
	last    Reading
	account Account
}

// Account is a run so far, up to the newest window in which workers had time. Its maps belong to the caller.
type Account struct {
	Seconds Seconds     // of all windows
	BoundBy event.Limit // of the newest; "" before the first
	Sockets event.Sockets
	// Total is all windows together.
	Total Window
	// Fastest is the delivery rate of the fastest connection in bytes a second, as the mean of the windows in which it
	// was known. A single sample may be of a burst.
	Fastest float64

	samples int64 // that Fastest is the mean of
}

// NewBottleneck begins an account. read is called by one goroutine at a time and must not call the Bottleneck.
func NewBottleneck(read func() Reading) *Bottleneck {
	return &Bottleneck{read: read, account: Account{Seconds: Window{}.seconds()}}
}

// Sample ends a window. The first call only begins one. A window in which no worker had any time is left out.
func (m *Bottleneck) Sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	m.account.Sockets = now.Sockets
	w := between(m.last, now)
	m.last = now
	if !m.begun {
		m.begun = true
		return
	}
	if w.WorkerSeconds() > 0 {
		m.account.add(w)
	}
}

func (a *Account) add(w Window) {
	lost := w.seconds()
	for limit, seconds := range lost {
		a.Seconds[limit] += seconds
	}
	a.BoundBy = event.BoundBy(lost)
	a.Total.add(w)
	if rate := float64(w.Sockets.DeliveryRate); rate > 0 {
		a.samples++
		a.Fastest += (rate - a.Fastest) / float64(a.samples)
	}
}

// Account returns the run as it is now.
func (m *Bottleneck) Account() Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.account
	a.Seconds, a.Total.Workers = maps.Clone(a.Seconds), maps.Clone(a.Total.Workers)
	return a
}

// Window is what happened between two readings, or in several windows together.
type Window struct {
	Seconds float64                 // its length
	Workers map[event.State]float64 // seconds of all workers
	// Sockets counts what happened in the window. Its values of an instant, as Open and RTT, are of the window's end.
	Sockets       event.Sockets
	CPU           float64 // seconds of this process
	Queued        float64 // likewise, see Reading
	Cores         int
	Payload, Wire int64 // as in Reading

	dialled bool // there are sockets that measure what workers wait for
	// overhead is how many bytes went over the wire for one of payload since the run's start; 0 is not known. It is
	// not of the window, since bytes are on the wire some time before or after the batch counts as sent, which in one
	// window may be all of them.
	overhead float64
}

// between returns the window between two readings, without negative differences: the counters of sockets are summed over
// connections that open and close meanwhile, so that one may be a moment behind.
func between(a, b Reading) Window {
	w := Window{
		Seconds: b.At.Sub(a.At).Seconds(), Workers: make(map[event.State]float64), Sockets: since(a.Sockets, b.Sockets),
		CPU: max(b.CPU-a.CPU, 0), Queued: max(b.Queued-a.Queued, 0), Cores: b.Cores,
		Payload: b.Payload - a.Payload, Wire: b.Wire - a.Wire, dialled: b.Sockets.Dialled > 0,
	}
	for _, state := range event.States() {
		w.Workers[state] = max(b.Workers[state]-a.Workers[state], 0)
	}
	if b.Payload > 0 {
		w.overhead = float64(b.Wire) / float64(b.Payload)
	}
	return w
}

// saturated reports whether the process used all its cores, or would have.
func (w Window) saturated() bool {
	return w.Cores > 0 && w.Seconds > 0 && w.CPU+w.Queued >= nearlyAll*w.Seconds*float64(w.Cores)
}

// WorkerSeconds returns the time of all workers, whatever they did.
func (w Window) WorkerSeconds() float64 {
	var sum float64
	for _, seconds := range w.Workers {
		sum += seconds
	}
	return sum
}

// add appends a later window to this one.
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
	sum := next.Sockets // with its values of an instant
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

// since returns what sockets did between a and b.
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

// seconds returns what the workers' time in the window was lost to. All limits are there, and they add up to that time.
func (w Window) seconds() Seconds {
	s := Seconds{
		event.LimitSource: w.Workers[event.WaitBuffer], event.LimitClient: 0, event.LimitNetwork: 0, event.LimitProtocol: 0,
		event.LimitTarget: w.Workers[event.BackingOff] + w.Workers[event.Resolving] + w.Workers[event.WaitCommit],
		event.LimitRate:   w.Workers[event.WaitRate], event.LimitTail: w.Workers[event.Idle],
	}
	session := w.session()
	waiting := min(w.Sockets.Blocked+w.Sockets.Awaited, session)
	if w.saturated() {
		target := min(w.Sockets.RwndLimited, waiting)
		s[event.LimitClient] = session - target + s[event.LimitSource]
		s[event.LimitSource] = 0
		s[event.LimitTarget] += target
		return s
	}
	if !w.dialled {
		// Rows are made in the workers' time as well, which is not time with a session.
		waiting = max(session-max(w.CPU+w.Queued-s[event.LimitSource], 0), 0)
	}
	protocol := min(w.Sockets.RoundTrips, waiting)
	answering := min(max(w.Sockets.Out-w.Sockets.RoundTrips, 0), waiting-protocol)
	// A turn's data is on its way for the same round trip that its answer is waited for.
	unread := w.Sockets.Busy - w.Sockets.RwndLimited - w.Sockets.Local - w.Sockets.RoundTrips
	network := min(max(unread, 0), waiting-protocol-answering)
	s[event.LimitClient] = session - waiting
	s[event.LimitTarget] += waiting - protocol - network
	if w.overhead > overhead {
		moved := network * (1 - 1/w.overhead)
		protocol, network = protocol+moved, network-moved
	}
	s[event.LimitProtocol], s[event.LimitNetwork] = protocol, network
	return s
}

// session returns the workers' time with a session.
func (w Window) session() float64 {
	return w.Workers[event.Connecting] + w.Workers[event.Sending] + w.Workers[event.WaitAck]
}
