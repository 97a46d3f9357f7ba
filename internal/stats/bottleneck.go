package stats

import (
	"maps"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// This file finds the limit of a run: the source of rows, the client's cores, the network, the protocol, the target,
// --max-rate, or the run's own end.
//
// It accounts for the workers' time, so shares add up. A window is what happened between two readings of the counters;
// each worker second in it has one limit:
//
//   - Waiting for --max-rate, for a buffer, and for work are states of their own: rate, source, tail.
//   - Backoff, waits for commits of stored batches, and resolving attempts are the target's.
//   - The rest is time with a session. Sockets measure how much of it was blocked in writes or awaiting answers; the
//     remainder is the client's own work.
//   - Of the wait, round trips (turns × the shortest round trip of the address) are the protocol's. Beyond them, time
//     after the last byte of a question had left is the target's. Of the remainder, time in which the kernel had data
//     to send and the receiver's window was open is the network's, unless both ends are on this machine; the rest, in
//     which the server did not read, is the target's.
//   - Of the network's time, the share of bytes beyond the payload is the protocol's if they exceed a tenth of it.
//   - A process that uses all its cores, or would without other processes, is limited by them, whatever its sessions
//     waited for: every wait is also one for a core. Only a receiver's full window proves a slower target.
//
// Without measured sockets (a client library opens its own, or there are none), time with a session in which the
// process ran or queued for a core is the client's, and the rest the target's. Where the system does not report the
// network's part, the target gets it.

// Reading is the counters of a run at one instant.
type Reading struct {
	At      time.Time
	Workers map[event.State]float64 // seconds of all workers, while rows move
	Sockets event.Sockets
	CPU     float64 // seconds of this process, user and system
	Queued  float64 // seconds in which its threads were ready to run and had no core
	Cores   int     // that it may use
	Payload int64   // column data sent, whatever the outcome
	Wire    int64   // bytes the sockets took
}

// nearlyAll is the share of its cores above which a process is limited by them.
const nearlyAll = 0.9

// overhead is how many bytes on the wire a byte of payload may cost before the protocol counts as a limit.
const overhead = 1.1

// Seconds is the workers' time by limit.
type Seconds map[event.Limit]float64

// Bottleneck keeps the account of a run. A window ends whenever Sample is called: once a second, and at the start and
// the end of a load, so that no window is partly outside of it. It is safe for concurrent use.
type Bottleneck struct {
	read func() Reading

	mu       sync.Mutex
	begun    bool
	last     Reading
	account  Account // of counters that only grow
	measured Account // since the end of the warm-up
}

// Account is the account of a run up to the newest window with worker time. Its maps belong to the caller.
type Account struct {
	Seconds Seconds     // of all windows
	BoundBy event.Limit // of the newest window; "" before the first
	Sockets event.Sockets
	Total   Window // all windows
	// Fastest is the delivery rate of the fastest connection in bytes a second: the mean of the windows in which it was
	// known, since a single sample may be of a burst.
	Fastest float64

	samples int64 // of Fastest
}

// NewBottleneck returns an empty account. read is called by one goroutine at a time and must not call the Bottleneck.
func NewBottleneck(read func() Reading) *Bottleneck {
	return &Bottleneck{read: read, account: newAccount(), measured: newAccount()}
}

func newAccount() Account { return Account{Seconds: Window{}.seconds()} }

// Sample ends a window; the first call only begins one. Windows without worker time are ignored.
func (m *Bottleneck) Sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample()
}

// WarmedUp ends a window, too: Measured has those that follow.
func (m *Bottleneck) WarmedUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample()
	m.measured = newAccount()
	m.measured.Sockets = m.account.Sockets
}

func (m *Bottleneck) sample() {
	now := m.read()
	m.account.Sockets, m.measured.Sockets = now.Sockets, now.Sockets
	w := between(m.last, now)
	m.last = now
	if !m.begun {
		m.begun = true
		return
	}
	if w.WorkerSeconds() > 0 {
		m.account.add(w)
		m.measured.add(w)
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

// Account returns the account so far.
func (m *Bottleneck) Account() Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.account.clone()
}

// Measured returns the account since WarmedUp, or the whole if that was not called.
func (m *Bottleneck) Measured() Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.measured.clone()
}

func (a Account) clone() Account {
	a.Seconds, a.Total.Workers = maps.Clone(a.Seconds), maps.Clone(a.Total.Workers)
	return a
}

// Window is what happened between two readings, or in several windows together. Its fields are differences of
// Reading's.
type Window struct {
	Seconds       float64 // its length
	Workers       map[event.State]float64
	Sockets       event.Sockets // values of an instant, such as Open and RTT, are of the window's end
	CPU           float64
	Queued        float64
	Cores         int
	Payload, Wire int64

	dialled bool // sockets measure what workers wait for
	// overhead is the bytes on the wire for one of payload since the run's start; 0 is unknown. In a single window all
	// bytes may be on the wire before or after their batch counts as sent.
	overhead float64
}

// between returns the window between two readings. The counters of sockets are sums over connections that open and
// close meanwhile and may fall by a moment's worth, so differences are not negative.
func between(a, b Reading) Window {
	w := Window{
		Seconds: b.At.Sub(a.At).Seconds(), Workers: make(map[event.State]float64),
		Sockets: combine(a.Sockets, b.Sockets, func(a, b float64) float64 { return max(b-a, 0) }),
		CPU:     max(b.CPU-a.CPU, 0), Queued: max(b.Queued-a.Queued, 0), Cores: b.Cores,
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

// saturated reports whether the process used all its cores or queued for them.
func (w Window) saturated() bool {
	return w.Cores > 0 && w.Seconds > 0 && w.CPU+w.Queued >= nearlyAll*w.Seconds*float64(w.Cores)
}

// WorkerSeconds returns the time of all workers.
func (w Window) WorkerSeconds() float64 {
	var sum float64
	for _, seconds := range w.Workers {
		sum += seconds
	}
	return sum
}

// add appends a later window.
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
	w.Sockets = combine(w.Sockets, next.Sockets, func(a, b float64) float64 { return a + b })
}

// combine applies f to the counters of two readings of sockets. Values of an instant, such as Open and RTT, are b's.
func combine(a, b event.Sockets, f func(a, b float64) float64) event.Sockets {
	count := func(a, b int64) int64 { return int64(f(float64(a), float64(b))) }
	c := b
	c.Dialled, c.Turns = count(a.Dialled, b.Dialled), count(a.Turns, b.Turns)
	c.Blocked, c.Awaited = f(a.Blocked, b.Blocked), f(a.Awaited, b.Awaited)
	c.RoundTrips, c.Out = f(a.RoundTrips, b.RoundTrips), f(a.Out, b.Out)
	c.Busy, c.Local = f(a.Busy, b.Busy), f(a.Local, b.Local)
	c.RwndLimited, c.SndbufLimited = f(a.RwndLimited, b.RwndLimited), f(a.SndbufLimited, b.SndbufLimited)
	c.Retransmits, c.Segments = count(a.Retransmits, b.Retransmits), count(a.Segments, b.Segments)
	return c
}

// seconds divides the workers' time by limit. The map has every limit.
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
		// Workers also make rows, which is not time with a session.
		waiting = max(session-max(w.CPU+w.Queued-s[event.LimitSource], 0), 0)
	}
	protocol := min(w.Sockets.RoundTrips, waiting)
	answering := min(max(w.Sockets.Out-w.Sockets.RoundTrips, 0), waiting-protocol)
	// The round trip of an answer includes the way of its question's data.
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
