package stats

import (
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
)

// Worker is the account of one worker.
type Worker struct {
	collector *Collector

	state     event.State
	since     time.Time       // start of the state, for Describe
	workSince time.Duration   // the same on the clock of working phases
	spent     []time.Duration // by state, until workSince
	batch     *batch.Batch    // nil: none
	id        int64           // of the batch
	encoded   int64           // the length of batch.Encoded, which belongs to the ring after the batch's release
}

// Worker returns the account of worker i, 0 ≤ i < Options.Workers.
func (c *Collector) Worker(i int) *Worker { return &c.workers[i] }

// Enter sets the worker's state. Only the phases load and stage count, so the seconds of all states add up to workers ×
// seconds of these phases.
func (w *Worker) Enter(s event.State) {
	c := w.collector
	now := c.options.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	work := c.clock.work(now)
	w.spent[w.state] = w.total(w.state, work)
	w.state, w.since, w.workSince = s, now, work
}

// Hold sets the worker's batch, for bytes in flight and the watchdog. Call Hold(nil) before the batch's Release.
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

// underWay returns the column data of the worker's batch that was sent and not yet answered. A batch without encoded
// bytes counts as sent once it is started. The caller holds the mutex.
func (w *Worker) underWay() int64 {
	if w.batch == nil || w.state != event.Sending && w.state != event.WaitAck {
		return 0
	}
	if w.encoded == 0 {
		return w.batch.Payload
	}
	return int64(float64(w.batch.Payload) * min(float64(w.batch.Sent())/float64(w.encoded), 1))
}

// Activity is the state of one worker at one instant.
type Activity struct {
	Worker int
	State  event.State
	For    time.Duration // time in this state
	Batch  int64         // the batch the worker holds, −1 without one
	// Sent is how many of the batch's Encoded bytes the driver has read.
	Sent, Encoded int64
}

// String formats the activity for the log of the stall watchdog.
func (a Activity) String() string {
	text := fmt.Sprintf("worker %d: %s for %s", a.Worker, a.State, a.For.Round(100*time.Millisecond))
	if a.Batch < 0 {
		return text
	}
	return fmt.Sprintf("%s, batch %d, %s of %s sent", text, a.Batch, units.Bytes(a.Sent), units.Bytes(a.Encoded))
}

// Describe returns the activities of all workers in order.
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
