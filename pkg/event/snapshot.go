package event

import (
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// State is what a worker is doing. The seconds of all states add up to the workers' time.
type State uint8

// The states.
const (
	Idle       State = iota // not started, or out of work
	WaitBuffer              // for a free buffer, or for its stamping or encoding
	WaitRate                // for --max-rate
	Connecting              // opening a session
	Sending                 // the body is being read by the driver
	WaitAck                 // the body is out, the answer is not in
	BackingOff              // between two attempts
	Resolving               // finding the outcome of an attempt
	WaitCommit              // for commits, since no more batches may be stored
	stateCount
)

// States lists all states in order.
func States() []State {
	all := make([]State, stateCount)
	for i := range all {
		all[i] = State(i)
	}
	return all
}

// String returns the state's label in metrics and messages.
func (s State) String() string {
	return [...]string{"idle", "wait_buffer", "wait_rate", "connect", "send", "wait_ack", "backoff", "resolve", "wait_commit"}[s]
}

// Phase is a part of a run; every second of a run belongs to one.
type Phase string

// The phases in order. Stage and commit belong to staged loads. In Finish the claims are read again, and acknowledged
// rows become visible.
const (
	Prepare Phase = "prepare"
	Fill    Phase = "fill"
	Load    Phase = "load"
	Stage   Phase = "stage"
	Commit  Phase = "commit"
	Finish  Phase = "finish"
	Verify  Phase = "verify"
	Done    Phase = "done"
)

// Phases lists the phases that take time, in order.
func Phases() []Phase { return []Phase{Prepare, Fill, Load, Stage, Commit, Finish, Verify} }

// Snapshot is a run at one instant. Counters only grow. The maps have all keys from the start and belong to the caller.
type Snapshot struct {
	At    time.Time
	Phase Phase
	// PhaseSeconds is the time of each phase in this process.
	PhaseSeconds map[Phase]float64

	// Planned for the whole run; 0 for a run by duration.
	PlannedRows, PlannedBytes int64
	// Acknowledged, including earlier processes of a resumed run.
	Rows, Batches, PayloadBytes, EncodedBytes int64
	// Resumed is the part of earlier processes.
	ResumedRows, ResumedBatches, ResumedBytes int64
	WireBytes                                 int64 // sent by the sockets of this process, including overhead
	// Put into the store by this process, of staged methods. Rows and the other counts follow when the group is committed.
	StoredRows, StoredBatches, StoredBytes int64 // bytes of the bodies

	// Batches acknowledged in this process: applied by it, or found to be applied before. An attempt at a commit group is
	// one attempt for many batches.
	AppliedBatches, AlreadyBatches int64

	Attempts, Retries, Refills int64
	Outcomes                   map[Outcome]int64      // attempts by outcome
	Errors                     map[loader.Class]int64 // attempts by class of their error
	MissingRows                int64
	// Batches the engine gave up: not in, and perhaps in.
	FailedBatches, UnknownBatches int64
	BatchSeconds                  Histogram // Event.Latency of the acknowledged attempts of this process

	Workers, BuffersFree, Buffers int
	BytesInFlight                 int64 // encoded bytes of the batches that workers hold
	WorkerSeconds                 map[State]float64
	// LimitSeconds is WorkerSeconds by limit, up to the newest window of a second or less. BoundBy is that window's limit;
	// "" before the first.
	LimitSeconds map[Limit]float64
	BoundBy      Limit
	Sockets      Sockets
	LastProgress time.Time // of the newest ack; the start of the load before the first; zero before that

	Verification Verification
}

// Histogram counts values by size.
type Histogram struct {
	Bounds []float64 // upper ends of the buckets, ascending, included; the last bucket has none
	Counts []int64   // one per bucket, so one more than Bounds; not cumulative
	Sum    float64   // of all values
}

// Count returns the number of all values.
func (h Histogram) Count() int64 {
	var n int64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Verification is the result of verification, and before that how far it is; zero before it.
type Verification struct {
	// Share is the counted share of a table that is counted in parts, 0 … 1, and Earlier the share that an earlier process
	// has counted.
	Share, Earlier          float64
	OK                      bool
	ExpectedRows, FoundRows int64
}
