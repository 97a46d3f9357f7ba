// Package bound says what kept a run from going faster: the making of the rows, the client's cores, the network, the
// protocol, the target, a limit that was asked for, or the run's own end.
//
// Everything is an account of the workers' time, so that shares add up. A window is what happened between two readings
// of a run's counters; each worker second in it gets one limit:
//
//   - --max-rate, waiting for a buffer and being out of work are states of their own: limit, source, tail.
//   - Waits between attempts and questions what became of one are the target's.
//   - The rest is time with a session. The sockets tell how much of it was spent blocked in a write or awaiting an answer;
//     what is left is the client's own work.
//   - Of the wait, the round trips (turns × the shortest round trip of the address) are the protocol's. Of what is then
//     left, the time in which the kernel had data to send and the receiver's window was open is the network's, and the
//     rest, in which the server did not read or had everything and did not answer, is the target's.
//   - A network's time is the protocol's as far as bytes went over it that are no payload, where these are more than a
//     tenth.
//   - A process that uses all its cores is bound by them, whatever else it waited for meanwhile: every wait is one for a
//     core, too.
package bound

import (
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// Reading is a run's counters at one instant, from its start on.
type Reading struct {
	At      time.Time
	Workers map[event.State]float64 // seconds of all workers, while rows move
	Sockets event.Sockets
	CPU     float64 // seconds of this process, user and system
	Cores   int     // that it may use at once
	// Column data acknowledged, and bytes the sockets took.
	Payload, Wire int64
}

// Saturated is the share of its cores from which on a process is bound by them.
const Saturated = 0.9

// overhead is how many bytes on the wire a byte of payload may cost before the protocol is to blame.
const overhead = 1.1

// Seconds is the workers' time by limit.
type Seconds map[event.Limit]float64
