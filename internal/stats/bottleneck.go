package stats

import (
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// This file says what kept a run from going faster: the making of the rows, the client's cores, the network, the
// protocol, the target, a limit that was asked for, or the run's own end.
//
// Everything is an account of the workers' time, so that shares add up. A window is what happened between two readings
// of a run's counters; each worker second in it gets one limit:
//
//   - --max-rate, waiting for a buffer and being out of work are states of their own: limit, source, tail.
//   - Waits between attempts, for commits of what is stored, and questions what became of an attempt are the target's.
//   - The rest is time with a session. The sockets tell how much of it was spent blocked in a write or awaiting an answer;
//     what is left is the client's own work.
//   - Of the wait, the round trips (turns × the shortest round trip of the address) are the protocol's. Time in which the
//     last of a question had gone out and no answer came is the target's beyond that. Of what is then left, the time in
//     which the kernel had data to send and the receiver's window was open is the network's, unless both ends are on this
//     machine; the rest, in which the server did not read, is the target's.
//   - A network's time is the protocol's as far as bytes went over it that are no payload, where these are more than a
//     tenth.
//   - A process that uses all its cores, or would if other processes left them to it, is bound by them, whatever else its
//     sessions waited for meanwhile, and its buffers: every wait is one for a core, too. Only a receiver's full window says
//     that the target was slower still.
//
// Where no socket tells anything, because a database's own client library opens them or there are none, the time with a
// session in which the process ran, or had no core to run on, is the client's, and the rest the target's. The target's is
// also what a system does not tell of its network's part.

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

// nearlyAll is the share of its cores from which on a process that uses them, or would if others let it, is bound by them.
const nearlyAll = 0.9

// overhead is how many bytes on the wire a byte of payload may cost before the protocol is to blame.
const overhead = 1.1

// Seconds is the workers' time by limit.
type Seconds map[event.Limit]float64

// Between says what the workers' time between two readings was lost to. All limits are there, and they add up to that
// time.
func Between(a, b Reading) Seconds { return between(a, b).seconds() }

// seconds gives every limit its part of the window.
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

// session is the workers' time with a session.
func (w Window) session() float64 {
	return w.Workers[event.Connecting] + w.Workers[event.Sending] + w.Workers[event.WaitAck]
}
