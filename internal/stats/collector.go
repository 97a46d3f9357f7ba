// Package stats counts what a run does. The engine reports attempts, phases and the states of its workers to a Collector;
// observers take Snapshots. Nothing here knows a database, a terminal or Prometheus.
package stats

import (
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Options are what is counted and where the rest is read.
type Options struct {
	Workers int // ≥ 0
	// Planned for the whole run, earlier processes included; 0 when the run's end is a time.
	PlannedRows, PlannedBytes int64

	// Values counted elsewhere, read for every snapshot from any goroutine; nil reads as 0.
	WireBytes func() int64             // bytes the sockets took
	Refills   func() int64             // buffers encoded afresh after the start
	Buffers   func() (free, total int) // of the ring
	Lost      func() Lost

	Now   func() time.Time // nil: time.Now, whose readings are monotonic
	Start time.Time        // of the phase prepare; zero: when the collector is made
}

// Lost is what the workers' time was lost to, and what the sockets did, up to the newest window of an account kept
// elsewhere. Snapshots copy Seconds.
type Lost struct {
	Seconds map[event.Limit]float64
	BoundBy event.Limit
	Sockets event.Sockets
}

// Collector holds the counters of one process of a run. It is safe for concurrent use.
//
// One mutex guards everything. Workers take it a few times a batch for less than a microsecond, a snapshot a few times a
// second for some ten microseconds at 1,024 workers; atomics would only let a snapshot see half an event.
type Collector struct {
	options Options

	mu       sync.Mutex
	sent     int64          // column data of attempts that have ended, but for those at commit groups
	counts   event.Snapshot // the plain numbers of a snapshot; its maps are filled from below
	outcomes map[event.Outcome]int64
	errors   map[loader.Class]int64
	latency  latency
	clock    phaseClock
	workers  []Worker
	end      *reading         // at the start of event.Done, and the last from then on
	ended    []event.Snapshot // of the ends of phases, until Progress returns them
	ends     int              // of phases so far
}

// maxEnds bounds Collector.ended. A run has fewer than ten phases, and three more for every time that it has to send
// again what a server has lost.
const maxEnds = 100

// reading is what a snapshot takes from elsewhere.
type reading struct {
	at                 time.Time
	wire, refills      int64
	freeBuffers, total int
	lost               Lost
}

// New makes a collector in the phase prepare, with all workers idle.
func New(o Options) *Collector {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Collector{
		options:  o,
		outcomes: make(map[event.Outcome]int64),
		errors:   make(map[loader.Class]int64),
		latency:  newLatency(),
		workers:  make([]Worker, o.Workers),
	}
	now := o.Now()
	if o.Start.IsZero() {
		o.Start = now
	}
	c.clock.enter(event.Prepare, o.Start)
	for i := range c.workers {
		c.workers[i] = Worker{collector: c, since: now, spent: make([]time.Duration, len(event.States()))}
	}
	c.counts.PlannedRows, c.counts.PlannedBytes = o.PlannedRows, o.PlannedBytes
	c.counts.Workers = o.Workers
	return c
}

// Earlier is what earlier processes of a resumed run had acknowledged.
type Earlier struct {
	Rows, Batches, PayloadBytes int64
	EncodedBytes                int64 // 0 where it is not known
	MissingRows                 int64
}

// Resume adds what earlier processes did.
func (c *Collector) Resume(e Earlier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Rows += e.Rows
	c.counts.Batches += e.Batches
	c.counts.PayloadBytes += e.PayloadBytes
	c.counts.EncodedBytes += e.EncodedBytes
	c.counts.MissingRows += e.MissingRows
	c.counts.ResumedRows += e.Rows
	c.counts.ResumedBatches += e.Batches
	c.counts.ResumedBytes += e.PayloadBytes
}

// TakeBack subtracts what a server acknowledged and then lost in a crash. It is the one case in which a counter falls; to
// a reader of the metrics it looks like a counter that was reset.
func (c *Collector) TakeBack(e Earlier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Rows -= e.Rows
	c.counts.Batches -= e.Batches
	c.counts.PayloadBytes -= e.PayloadBytes
	c.counts.EncodedBytes -= e.EncodedBytes
}

// Add counts one attempt.
func (c *Collector) Add(e event.Event) {
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Attempts++
	if e.Attempt > 1 {
		c.counts.Retries++
	}
	if e.Members == 0 { // a group's batches were sent before
		c.sent += e.Payload
	}
	c.outcomes[e.Outcome]++
	if e.Class != "" {
		c.errors[e.Class]++
	}
	c.counts.MissingRows += max(e.Missing, -e.Missing) // too many are as wrong as too few, and must not cancel out
	batches := max(e.Members, 1)
	switch e.Outcome {
	case event.Stored:
		c.counts.StoredRows += e.Rows
		c.counts.StoredBatches++
		c.counts.StoredBytes += e.Encoded
	case event.Applied, event.Already:
		c.counts.Rows += e.Rows
		c.counts.Batches += batches
		c.counts.PayloadBytes += e.Payload
		c.counts.EncodedBytes += e.Encoded
	default:
		return
	}
	switch e.Outcome {
	case event.Applied:
		c.counts.AppliedBatches += batches
	case event.Already:
		c.counts.AlreadyBatches += batches
	}
	c.counts.LastProgress = now
	if e.Members == 0 { // a group takes as long as all its batches
		c.latency.record(e.Latency())
	}
}

// GiveUp counts a batch that gets no further attempt in this process. It is certainly not in (event.NotApplied) or
// perhaps (event.Unknown).
func (c *Collector) GiveUp(o event.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o == event.Unknown {
		c.counts.UnknownBatches++
	} else {
		c.counts.FailedBatches++
	}
}

// Verified sets what the proof of arrival found.
func (c *Collector) Verified(v event.Verification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Verification = v
}

// Phase ends the current phase and starts another. A phase entered twice adds up.
//
// event.Done stops the clocks and keeps the last reading from elsewhere, and the engine adds nothing any more: all
// snapshots from then on are equal, so that the last scrape agrees with the report.
func (c *Collector) Phase(p event.Phase) {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != c.clock.phase && c.end == nil && c.ends < maxEnds {
		c.ended = append(c.ended, c.snapshot(r))
		c.ends++
	}
	c.clock.enter(p, r.at)
	if (p == event.Load || p == event.Stage) && c.counts.LastProgress.IsZero() {
		c.counts.LastProgress = r.at
	}
	if p == event.Done && c.end == nil {
		c.end = &r
	}
}

// Phases returns the seconds spent in each phase so far; every phase that takes time is there.
func (c *Collector) Phases() map[event.Phase]float64 {
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.seconds(now)
}

// Latency returns the quantiles of event.Event.Latency of the acknowledged attempts of this process.
func (c *Collector) Latency() Quantiles {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latency.quantiles()
}

// Snapshot returns all numbers of one instant.
func (c *Collector) Snapshot() event.Snapshot {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot(r)
}

// Progress returns a snapshot of the end of every phase that has ended since the last call, and one of now.
func (c *Collector) Progress() (ended []event.Snapshot, now event.Snapshot) {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	ended, c.ended = c.ended, nil
	return ended, c.snapshot(r)
}

// snapshot returns all numbers with what was read from elsewhere. The caller holds the mutex.
func (c *Collector) snapshot(r reading) event.Snapshot {
	if c.end != nil {
		r = *c.end
	}
	s := c.counts
	s.At, s.Phase, s.PhaseSeconds = r.at, c.clock.phase, c.clock.seconds(r.at)
	s.WireBytes, s.Refills = r.wire, r.refills
	s.BuffersFree, s.Buffers = r.freeBuffers, r.total
	s.BatchSeconds = c.latency.histogram()

	s.Outcomes = make(map[event.Outcome]int64)
	for _, o := range event.Outcomes() {
		s.Outcomes[o] = c.outcomes[o]
	}
	s.Errors = make(map[loader.Class]int64)
	for _, class := range loader.Classes() {
		s.Errors[class] = c.errors[class]
	}
	s.WorkerSeconds = c.workerSeconds(r.at)
	s.LimitSeconds = make(map[event.Limit]float64)
	for _, limit := range event.Limits() {
		s.LimitSeconds[limit] = r.lost.Seconds[limit]
	}
	s.BoundBy, s.Sockets = r.lost.BoundBy, r.lost.Sockets
	for i := range c.workers {
		s.BytesInFlight += c.workers[i].encoded
	}
	return s
}

// workerSeconds returns the time of all workers by state until now. The caller holds the mutex.
func (c *Collector) workerSeconds(now time.Time) map[event.State]float64 {
	all := make(map[event.State]float64)
	work := c.clock.work(now)
	for _, state := range event.States() {
		var d time.Duration
		for i := range c.workers {
			d += c.workers[i].total(state, work)
		}
		all[state] = d.Seconds()
	}
	return all
}

// Work is the state of all workers' accounts at one instant, for the account of what their time was lost to.
type Work struct {
	At      time.Time
	Seconds map[event.State]float64 // as event.Snapshot.WorkerSeconds
	// Payload is the column data sent in this process, whatever became of it, including the part already sent of batches
	// that are under way.
	Payload int64
}

// Work returns what the workers have done so far. It calls none of Options' functions but Now.
func (c *Collector) Work() Work {
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := Work{At: now, Seconds: c.workerSeconds(now), Payload: c.sent}
	for i := range c.workers {
		w.Payload += c.workers[i].underWay()
	}
	return w
}

// read calls Options' functions. It is called before the mutex is taken: none of them can then wait for a snapshot that
// waits for it.
func (c *Collector) read() reading {
	r := reading{at: c.options.Now()}
	if f := c.options.WireBytes; f != nil {
		r.wire = f()
	}
	if f := c.options.Refills; f != nil {
		r.refills = f()
	}
	if f := c.options.Buffers; f != nil {
		r.freeBuffers, r.total = f()
	}
	if f := c.options.Lost; f != nil {
		r.lost = f()
	}
	return r
}
