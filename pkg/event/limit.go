package event

// Limit is what limited the rate of a run.
type Limit string

// The limits. Every second of every worker belongs to one.
const (
	LimitSource   Limit = "source"     // waiting for a buffer, or for its rows to be made
	LimitClient   Limit = "client-cpu" // encoding, encrypting, copying into sockets, or waiting for a core to do that on
	LimitNetwork  Limit = "network"    // the network took no more
	LimitProtocol Limit = "protocol"   // round trips inside a batch, and bytes other than payload
	LimitTarget   Limit = "target"     // the server did not read, or had not answered
	LimitRate     Limit = "limit"      // --max-rate
	LimitTail     Limit = "tail"       // no batch left, while others sent the last ones
)

// Limits lists all limits in order.
func Limits() []Limit {
	return []Limit{LimitSource, LimitClient, LimitNetwork, LimitProtocol, LimitTarget, LimitRate, LimitTail}
}

// BoundBy returns the first limit with the most seconds, "" if there are none.
func BoundBy(seconds map[Limit]float64) Limit {
	var most Limit
	for _, l := range Limits() {
		if seconds[l] > 0 && (most == "" || seconds[l] > seconds[most]) {
			most = l
		}
	}
	return most
}

// Sockets is the account of all connections of a process since its start. Times are in seconds, summed over open and
// closed connections. What the system does not report is 0.
type Sockets struct {
	Open, Dialled int64

	// Blocked is the time in which writes waited for room in the send buffer.
	Blocked float64
	// Awaited is the time from the last byte of a request to the first of its answer, and of dialling. Turns counts these.
	Awaited float64
	Turns   int64
	// RoundTrips is the network's part of Awaited: for every turn the shortest round trip to its address.
	RoundTrips float64
	// Out is the part of Awaited after the request had left the send buffer. What exceeds the round trip is not the
	// network's, though the kernel may count it as busy: receivers delay acknowledgements by tens of milliseconds to send
	// them with an answer.
	Out float64

	// Kernel reports whether the rest is known, as on Linux for TCP.
	Kernel bool
	// Busy is the time with data to send or unacknowledged. In RwndLimited of it the receiver's window was full, in
	// SndbufLimited the send buffer was too small; in the rest the network or the congestion window took no more.
	Busy, RwndLimited, SndbufLimited float64
	// Local is that rest for connections within this machine: it is the server's, as there is no network.
	Local                 float64
	Retransmits, Segments int64
	// Of the open connections when last read: mean smoothed round trip, the shortest ever, and bytes a second delivered by
	// the fastest connection.
	RTT, MinRTT  float64
	DeliveryRate int64
}
