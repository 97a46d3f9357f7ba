package progress

import (
	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
)

// history is what the journal has of a run's earlier processes. Only what is open is kept: a run may have millions of
// batches.
type history struct {
	last    int64                 // the last batch in the journal, −1 without one
	batches map[int64]attempts    // at batches that are not in
	groups  map[int64]attempts    // at commit groups that are not in
	stored  map[int64]event.Event // batches that are in the store and not in the table
	// newest is the first batch of the last group that was begun, newestLength the number of its batches.
	newest, newestLength int64
	missing              int64 // rows that servers acknowledged too few or too many
}

func newHistory() history {
	return history{
		last: -1, newest: -1,
		batches: make(map[int64]attempts), groups: make(map[int64]attempts), stored: make(map[int64]event.Event),
	}
}

// attempts are those at a batch or group that is not in.
type attempts struct {
	newest    int
	announced bool // the newest has no known end
	unknown   bool // one ended with an unknown outcome
}

func (a attempts) known() engine.Attempts {
	return engine.Attempts{Attempt: a.newest, Unknown: a.announced || a.unknown}
}

// add takes the next event, and adds batches that are in to done.
func (h *history) add(e event.Event, groupBatches int64, done *runlog.Done) {
	members := max(e.Members, 1)
	h.last = max(h.last, e.Batch+members-1)
	open, number := h.batches, e.Batch
	if e.Members > 0 {
		open, number = h.groups, e.Batch/max(groupBatches, 1)
		if e.Batch > h.newest {
			h.newest, h.newestLength = e.Batch, e.Members
		}
	}
	if !e.Done() {
		a := open[number]
		open[number] = attempts{
			newest: max(a.newest, e.Attempt), announced: e.Outcome == event.Started,
			unknown: a.unknown || e.Outcome == event.Unknown,
		}
		if e.Outcome == event.Stored {
			h.stored[e.Batch] = e
		}
		return
	}
	h.missing += max(e.Missing, -e.Missing)
	delete(open, number)
	for n := e.Batch; n < e.Batch+members; n++ {
		done.Add(n)
		delete(h.batches, n)
		delete(h.stored, n)
	}
}
