// Package stats counts what a run does. The engine reports attempts, phases and worker states to a Collector; observers
// take snapshots.
package stats

import (
	"slices"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Options configure a Collector.
type Options struct {
	Workers int // ≥ 0
	// Of the whole run, earlier processes included; 0 if its end is a time.
	PlannedRows, PlannedBytes int64
	// Planned is PlannedBytes where that changes: of files it is known better the more of them are read. nil: it does not.
	Planned func() int64

	// Counters of others, read from any goroutine for every snapshot; nil reads as 0.
	WireBytes func() int64             // bytes the sockets took
	Refills   func() int64             // buffers encoded afresh after the start
	Buffers   func() (free, total int) // of the ring
	Lost      func() Lost

	Now   func() time.Time // nil: time.Now, whose readings are monotonic
	Start time.Time        // of the phase prepare; zero: now
}

// Lost is the part of an Account that snapshots have.
type Lost struct {
	Seconds map[event.Limit]float64
	BoundBy event.Limit
	Sockets event.Sockets
}

// Collector holds the counters of one process of a run. It is safe for concurrent use.
//
// One mutex guards everything. Workers take it a few times a batch for less than a microsecond, snapshots a few times a
// second for some ten microseconds at 1,024 workers. With atomics a snapshot could see half an event.
type Collector struct {
	options Options

	mu       sync.Mutex
	sent     int64          // column data of ended attempts, commit groups not counted
	counts   event.Snapshot // the plain numbers; snapshot fills in the rest
	outcomes map[event.Outcome]int64
	errors   map[loader.Class]int64
	failures []event.Event // the first of the attempts that failed
	latency  latency
	clock    phaseClock
	workers  []Worker
	end      *reading         // the last one, at the start of event.Done
	ended    []event.Snapshot // of the ends of phases, until Progress returns them
	ends     int              // of phases so far
}

// maxEnds bounds Collector.ended, and so the moments of a Timeline. A run has fewer than ten phases, and three more
// each time it has to resend what a server lost.
const maxEnds = 100

// maxFailures bounds Collector.failures: a server that is gone fails thousands alike.
const maxFailures = 100

// reading is the counters of others at one instant.
type reading struct {
	at                 time.Time
	wire, refills      int64
	freeBuffers, total int
	lost               Lost
	planned            int64
}

// New returns a collector in the phase prepare with idle workers.
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

// Earlier is what earlier processes of a resumed run acknowledged.
type Earlier struct {
	Rows, Batches, PayloadBytes int64
	EncodedBytes                int64 // 0 if unknown
	MissingRows                 int64
}

// Resume adds the counts of earlier processes.
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

// TakeBack subtracts what a server acknowledged and then lost in a crash. No counter falls otherwise; to Prometheus it
// looks like a reset.
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
	if e.Members == 0 { // the batches of a group were sent before
		c.sent += e.Payload
	}
	c.outcomes[e.Outcome]++
	if e.Class != "" {
		c.errors[e.Class]++
		if len(c.failures) < maxFailures {
			c.failures = append(c.failures, e)
		}
	}
	c.counts.MissingRows += max(e.Missing, -e.Missing) // too many and too few rows must not cancel out
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
		if e.Outcome == event.Applied {
			c.counts.AppliedBatches += batches
		} else {
			c.counts.AlreadyBatches += batches
		}
	default:
		return
	}
	c.counts.LastProgress = now
	if e.Members == 0 { // a group takes as long as all its batches
		c.latency.record(e.Latency())
	}
}

// GiveUp counts a batch without further attempts: certainly not in the table (event.NotApplied) or perhaps
// (event.Unknown).
func (c *Collector) GiveUp(o event.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o == event.Unknown {
		c.counts.UnknownBatches++
	} else {
		c.counts.FailedBatches++
	}
}

// Verified sets how far the proof of arrival is, or its result.
func (c *Collector) Verified(v event.Verification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.Verification = v
}

// Phase ends the current phase and starts another. A phase entered twice adds up.
//
// event.Done stops the clocks and keeps the last reading: all later snapshots are equal, so the last scrape agrees with
// the report.
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

// Failures returns the first hundred attempts of this process that failed.
func (c *Collector) Failures() []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.failures)
}

// Latency returns the quantiles of event.Event.Latency of this process's acknowledged attempts.
func (c *Collector) Latency() Quantiles {
	c.mu.Lock()
	defer c.mu.Unlock()
	return QuantilesOf(c.latency.values, c.latency.max)
}

// Histogram returns the latencies as Encode writes them, "" without one.
func (c *Collector) Histogram() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latency.values.TotalCount() == 0 {
		return ""
	}
	text, err := Encode(c.latency.values)
	if err != nil {
		return "" // it is written to memory
	}
	return text
}

// WarmedUp forgets the latencies so far, except in the buckets of snapshots, and returns a snapshot: the counters of what
// is measured are differences to it.
func (c *Collector) WarmedUp() event.Snapshot {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency.values.Reset()
	c.latency.max = 0
	return c.snapshot(r)
}

// Snapshot returns all numbers at one instant.
func (c *Collector) Snapshot() event.Snapshot {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot(r)
}

// Progress returns a snapshot of now and of the end of every phase that ended since the last call.
func (c *Collector) Progress() (ended []event.Snapshot, now event.Snapshot) {
	r := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	ended, c.ended = c.ended, nil
	return ended, c.snapshot(r)
}

// snapshot returns all numbers. The caller holds the mutex.
func (c *Collector) snapshot(r reading) event.Snapshot {
	if c.end != nil {
		r = *c.end
	}
	s := c.counts
	s.At, s.Phase, s.PhaseSeconds = r.at, c.clock.phase, c.clock.seconds(r.at)
	s.WireBytes, s.Refills = r.wire, r.refills
	s.BuffersFree, s.Buffers = r.freeBuffers, r.total
	if c.options.Planned != nil {
		s.PlannedBytes = r.planned
	}
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

// workerSeconds returns the time of all workers by state. The caller holds the mutex.
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

// Work is the account of all workers at one instant, for a Reading.
type Work struct {
	At      time.Time
	Seconds map[event.State]float64 // as event.Snapshot.WorkerSeconds
	Payload int64                   // column data sent by this process, with the sent part of unfinished batches
}

// Work returns what the workers have done so far. Of Options' functions it calls Now only.
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

// read calls Options' functions. The caller must not hold the mutex, or one of them could wait for a snapshot that
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
	if f := c.options.Planned; f != nil {
		r.planned = f()
	}
	return r
}

// phaseClock adds up the time of each phase.
type phaseClock struct {
	phase event.Phase
	since time.Time
	spent map[event.Phase]time.Duration // until since
}

func (p *phaseClock) enter(next event.Phase, now time.Time) {
	if p.spent == nil {
		p.spent = make(map[event.Phase]time.Duration)
	}
	if p.phase != "" {
		p.spent[p.phase] = p.total(p.phase, now)
	}
	p.phase, p.since = next, now
}

func (p *phaseClock) total(phase event.Phase, now time.Time) time.Duration {
	d := p.spent[phase]
	// Callers may get the mutex in another order than they read the clock.
	if phase == p.phase && now.After(p.since) {
		d += now.Sub(p.since)
	}
	return d
}

// work returns the time of the phases in which workers work. Their states are timed by this clock: filling buffers and
// verifying are not idle time.
func (p *phaseClock) work(now time.Time) time.Duration {
	return p.total(event.Load, now) + p.total(event.Stage, now)
}

func (p *phaseClock) seconds(now time.Time) map[event.Phase]float64 {
	all := make(map[event.Phase]float64)
	for _, phase := range event.Phases() {
		all[phase] = p.total(phase, now).Seconds()
	}
	return all
}
