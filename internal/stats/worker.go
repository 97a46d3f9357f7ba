package stats

import (
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
)

// Worker is the account of one worker. The worker writes it; snapshots and the watchdog read it.
type Worker struct {
	collector *Collector

	state     event.State
	since     time.Time       // start of the state, for Describe
	workSince time.Duration   // the same on the clock of working phases
	spent     []time.Duration // by state, without the time since workSince
	batch     *batch.Batch    // nil: none
	id        int64           // of the batch
	encoded   int64           // length of the batch: Encoded itself belongs to the feed once the worker lets go
}

// Worker returns the account of worker i, 0 ≤ i < Options.Workers.
func (c *Collector) Worker(i int) *Worker { return &c.workers[i] }

// Enter sets what the worker does from now on. Seconds count while rows move (the phases load and stage), so that those
// of all states add up to workers × seconds of these phases.
func (w *Worker) Enter(s event.State) {
	c := w.collector
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	work := c.clock.work(now)
	w.spent[w.state] = w.total(w.state, work)
	w.state, w.since, w.workSince = s, now, work
}

// Hold names the batch the worker has, for bytes in flight and the watchdog. Hold(nil) comes before the batch's
// Release, after which the batch belongs to another worker.
func (w *Worker) Hold(b *batch.Batch) {
	w.collector.mu.Lock()
	defer w.collector.mu.Unlock()
	w.batch, w.id, w.encoded = b, 0, 0
	if b != nil {
		w.id, w.encoded = b.ID.Number, int64(len(b.Encoded))
	}
}

// total returns the worker's time in a state, on the clock of working phases.
func (w *Worker) total(s event.State, work time.Duration) time.Duration {
	d := w.spent[s]
	if s == w.state {
		d += max(work-w.workSince, 0)
	}
	return d
}

// underWay returns how much column data of the worker's batch was sent and not yet answered. A batch without bytes of its
// own, as of columns, counts as sent as soon as it is begun. The caller holds the mutex.
func (w *Worker) underWay() int64 {
	if w.batch == nil || w.state != event.Sending && w.state != event.WaitAck {
		return 0
	}
	if w.encoded == 0 {
		return w.batch.Payload
	}
	return int64(float64(w.batch.Payload) * min(float64(w.batch.Sent())/float64(w.encoded), 1))
}

// Activity is what one worker does at one instant.
type Activity struct {
	Worker int
	State  event.State
	For    time.Duration // how long already
	// Batch is the batch the worker holds, −1 without one; Sent of its Encoded bytes the driver has read.
	Batch         int64
	Sent, Encoded int64
}

// String returns the activity as the stall watchdog logs it.
func (a Activity) String() string {
	text := fmt.Sprintf("worker %d: %s for %s", a.Worker, a.State, a.For.Round(100*time.Millisecond))
	if a.Batch < 0 {
		return text
	}
	return fmt.Sprintf("%s, batch %d, %s of %s sent", text, a.Batch, units.Bytes(a.Sent), units.Bytes(a.Encoded))
}

// Describe returns what every worker does and for how long, in the order of their numbers.
func (c *Collector) Describe() []Activity {
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Activity, len(c.workers))
	for i := range c.workers {
		w := &c.workers[i]
		all[i] = Activity{Worker: i, State: w.state, For: max(now.Sub(w.since), 0), Batch: -1}
		if w.batch != nil {
			all[i].Batch, all[i].Sent, all[i].Encoded = w.id, w.batch.Sent(), w.encoded
		}
	}
	return all
}
