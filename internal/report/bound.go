package report

import (
	"math"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// Bound is what limited the rate.
type Bound struct {
	// Verdict is the event.Limit that took the largest share of the workers' time; "" if no row moved.
	Verdict string `json:"verdict"`
	// Shares and Seconds are the workers' time by limit, with all limits. Shares add up to 1, seconds to worker_seconds.
	Shares   map[string]float64 `json:"shares"`
	Seconds  map[string]float64 `json:"seconds"`
	Evidence Evidence           `json:"evidence"`
}

// NewBound returns the verdict on the workers' time by limit.
func NewBound(lost map[event.Limit]float64, e Evidence) Bound {
	b := Bound{Verdict: string(event.BoundBy(lost)), Shares: byLimit(nil), Seconds: byLimit(lost), Evidence: e}
	var sum float64
	for _, limit := range event.Limits() { // in one order, since sums of floats depend on it
		sum += b.Seconds[string(limit)]
	}
	for limit, seconds := range b.Seconds {
		b.Shares[limit] = ratio(seconds, sum)
	}
	return b
}

// byLimit returns the seconds by the limits' names, with all limits.
func byLimit(lost map[event.Limit]float64) map[string]float64 {
	named := make(map[string]float64)
	for _, limit := range event.Limits() {
		named[string(limit)] = math.Round(lost[limit]*1e9) / 1e9 // without the rounding errors of differences
	}
	return named
}

// NewEvidence returns the evidence of a run's account. host.Work adds the machine's part.
func NewEvidence(a stats.Account, batches int64) Evidence {
	t := a.Total
	turns := float64(t.Sockets.Turns)
	cores := t.Seconds * float64(t.Cores)

	return Evidence{
		SocketEvidence: SocketEvidence{
			Blocked:       ratio(t.Sockets.Blocked, t.WorkerSeconds()),
			Awaited:       ratio(t.Sockets.Awaited, t.WorkerSeconds()),
			RoundTrips:    ratio(t.Sockets.RoundTrips, t.WorkerSeconds()),
			Kernel:        t.Sockets.Kernel,
			RwndLimited:   ratio(t.Sockets.RwndLimited, t.Sockets.Busy),
			SndbufLimited: ratio(t.Sockets.SndbufLimited, t.Sockets.Busy),
			TurnsPerBatch: ratio(turns, float64(batches)),
			RTTSeconds:    ratio(t.Sockets.RoundTrips, turns),
			Connections:   a.Sockets.Dialled,
			Retransmitted: ratio(float64(t.Sockets.Retransmits), float64(t.Sockets.Segments)),
			FastestBits:   8 * a.Fastest,
		},
		MachineEvidence: MachineEvidence{
			ClientCPU:    ratio(t.CPU, cores),
			ClientQueued: ratio(t.Queued, cores),
		},
		WirePerPayload: ratio(float64(t.Wire), float64(t.Payload)),
	}
}

// SocketEvidence is of the connections.
type SocketEvidence struct {
	// Of the workers' time.
	Blocked    float64 `json:"blocked"`     // in writes, for room in the send buffer
	Awaited    float64 `json:"awaited"`     // for answers, and for connections
	RoundTrips float64 `json:"round_trips"` // the part of Awaited that the network took
	// Kernel reports whether the system measured what delayed the connections' data. If not, the network's part counts
	// as the target's.
	Kernel bool `json:"kernel"`
	// Of the time in which connections had data to send.
	RwndLimited   float64 `json:"rwnd_limited"`   // the receiver's window was full
	SndbufLimited float64 `json:"sndbuf_limited"` // the send buffer was too small

	TurnsPerBatch float64 `json:"turns_per_batch"` // round trips
	// RTTSeconds is that of a turn on the network: the mean of the addresses' shortest.
	RTTSeconds    float64 `json:"rtt_seconds"`
	Connections   int64   `json:"connections"`                        // dialled
	Retransmitted float64 `json:"retransmitted"`                      // share of the segments sent
	FastestBits   float64 `json:"fastest_connection_bits_per_second"` // mean
}

// MachineEvidence is of this process and its machine.
type MachineEvidence struct {
	ClientCPU    float64 `json:"client_cpu"`    // share of this process's cores
	ClientQueued float64 `json:"client_queued"` // likewise, while its threads waited for a core
	HottestCore  float64 `json:"hottest_core"`  // share of the machine's busiest core, other processes included
	MachineCPU   float64 `json:"machine_cpu"`   // share of all of the machine's cores, likewise
	NIC          string  `json:"nic"`           // the interface that leads to the target, or the one that sent most
	NICBits      float64 `json:"nic_bits_per_second"`
	NICShare     float64 `json:"nic_share"` // of its link's speed
	NICSpeed     int64   `json:"nic_speed_bits_per_second"`
}

// Evidence is measured while rows move, and supports the verdict. What is not known is 0 or empty.
type Evidence struct {
	SocketEvidence
	MachineEvidence

	WirePerPayload float64 `json:"wire_per_payload"`
	// Allowance counts packets that Amazon's network driver delayed or dropped, by its counters' names, without zeros.
	Allowance map[string]int64 `json:"allowance_exceeded"`
	// Ceiling is calibrate's best for the same protocol in payload bytes a second, OfCeiling the run's share of it.
	Ceiling   float64 `json:"ceiling_bytes_per_second"`
	OfCeiling float64 `json:"of_ceiling"`
	// Server is read from --server-metrics.
	Server ServerLoad `json:"server"`
}

// ServerLoad is a server's load by its own metrics while rows moved.
type ServerLoad struct {
	URL string  `json:"url"` // without user, password and parameters
	CPU float64 `json:"cpu"` // share of the cores that the metrics are of
	// Cores is their number; 0 if the metrics do not have it: then CPU is in cores.
	Cores int `json:"cores"`
}
