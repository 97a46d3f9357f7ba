package event

// Limit is what kept a run from going faster.
type Limit string

// The limits. Every second of every worker belongs to one.
const (
	LimitSource   Limit = "source"     // waiting for a buffer, or for its rows to be made
	LimitClient   Limit = "client-cpu" // encoding, encrypting, copying into sockets, or waiting for a core to do that on
	LimitNetwork  Limit = "network"    // the network took no more
	LimitProtocol Limit = "protocol"   // round trips inside a batch, and bytes that are no payload
	LimitTarget   Limit = "target"     // the server did not read, or had not answered yet
	LimitRate     Limit = "limit"      // --max-rate
	LimitTail     Limit = "tail"       // no more batches to take: others were still sending the last ones
)

// Limits lists all limits in order.
func Limits() []Limit {
	return []Limit{LimitSource, LimitClient, LimitNetwork, LimitProtocol, LimitTarget, LimitRate, LimitTail}
}

// BoundBy returns the limit that most seconds were lost to: the first in order where several are as many, "" where
// none has any.
func BoundBy(seconds map[Limit]float64) Limit {
	var most Limit
	for _, l := range Limits() {
		if seconds[l] > 0 && (most == "" || seconds[l] > seconds[most]) {
			most = l
		}
	}
	return most
}

// Sockets is what all connections of a process have been doing since its start. Times are in seconds and add up over
// connections, those that are closed included. What the system does not report is 0.
type Sockets struct {
	Open, Dialled int64

	// Blocked is time in which a write waited for room in the send buffer.
	Blocked float64
	// Awaited is time from the last byte of a question to the first byte of its answer, and of dialling; Turns is how
	// often that happened.
	Awaited float64
	Turns   int64
	// RoundTrips is the part of Awaited that the way took and no server could have saved: for every turn the shortest
	// round trip that its address has shown.
	RoundTrips float64
	// Out is the part of Awaited in which the last of the question had left the send buffer, and the round trip began.
	// What of it is longer than that is not the network's, though the kernel may count as busy: the receiver holds
	// back acknowledgements for tens of milliseconds if it can send them with an answer. 0 where the system does not
	// report it.
	Out float64

	// Kernel reports whether the rest is known: Linux reports it of TCP connections.
	Kernel bool
	// Busy is time with data sent or to be sent. In the parts RwndLimited and SndbufLimited the receiver's window or the
	// sender's buffer was too small; in what is left the way, or its congestion window, took no more.
	Busy, RwndLimited, SndbufLimited float64
	// Local is what is left of that where both ends are on this machine: no network lies in between, so that only the
	// server can have taken no more.
	Local                 float64
	Retransmits, Segments int64
	// Of the newest look at the open connections: mean smoothed round trip, the shortest ever, and bytes a second
	// delivered by the fastest connection.
	RTT, MinRTT  float64
	DeliveryRate int64
}
