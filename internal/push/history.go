package push

import (
	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// history is what the journal tells of a run's earlier processes.
type history struct {
	last   int64                 // the last batch that the journal knows, −1 without one
	begun  map[int64]begun       // batches with attempts that are not in
	groups map[int64]begun       // the same of commit groups, by their number
	stored map[int64]event.Event // batches that are in the store and not in the table
	// newest is the group that begins at the highest batch of those that were begun, and its length.
	newest, newestLength int64
	missing              int64 // rows that answers of earlier processes left out, or counted too many
}

// begun is what is known of the attempts at a batch or group.
type begun struct {
	attempt   int  // the newest one
	announced bool // and no end of it is known
	unknown   bool // the end of one of them is
}

func (b begun) engine() engine.Begun {
	return engine.Begun{Attempt: b.attempt, Unknown: b.announced || b.unknown}
}

func (b begun) after(e event.Event) begun {
	b.attempt, b.announced = max(b.attempt, e.Attempt), e.Outcome == event.Started
	b.unknown = b.unknown || e.Outcome == event.Unknown
	return b
}

func newHistory() history {
	return history{
		last: -1, newest: -1,
		begun: make(map[int64]begun), groups: make(map[int64]begun), stored: make(map[int64]event.Event),
	}
}

// add takes the next event and keeps done up to date. Only what is open is kept: a run may have millions of batches.
func (h *history) add(e event.Event, c loader.Contract, done *runlog.Done) {
	members := max(e.Members, 1)
	h.last = max(h.last, e.Batch+members-1)
	open, number := h.begun, e.Batch
	if e.Members > 0 {
		open, number = h.groups, e.Batch/max(c.GroupBatches, 1)
		if e.Batch > h.newest {
			h.newest, h.newestLength = e.Batch, e.Members
		}
	}
	switch {
	case e.Done():
		h.missing += max(e.Missing, -e.Missing)
		delete(open, number)
		for n := e.Batch; n < e.Batch+members; n++ {
			done.Add(n)
			delete(h.begun, n)
			delete(h.stored, n)
		}
	default:
		open[number] = open[number].after(e)
		if e.Outcome == event.Stored {
			h.stored[e.Batch] = e
		}
	}
}

// keepLength notes how long the body of an acknowledged batch was, in case that objects are all there will be to look
// at. Who has claims or rows to look up has a table.
func (p *push) keepLength(e event.Event) {
	d := p.contract.Dedup
	if e.Done() && e.Members == 0 && (d == loader.DedupKey || d == loader.DedupNone) {
		p.lengths.add(e.Batch, e.Encoded)
	}
}

// lengths are the bytes of a run's objects, as they were acknowledged. In most formats all but the last are alike.
type lengths struct {
	known  runlog.Done
	common int64
	others map[int64]int64
}

func (l *lengths) add(number, bytes int64) {
	switch {
	case l.known.Len() == 0:
		l.common, l.others = bytes, make(map[int64]int64)
	case bytes == l.common:
		delete(l.others, number)
	default:
		l.others[number] = bytes
	}
	l.known.Add(number)
}

func (l *lengths) of(number int64) (bytes int64, known bool) {
	if other, differs := l.others[number]; differs {
		return other, true
	}
	return l.common, l.known.Has(number)
}
