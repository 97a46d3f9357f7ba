package push

import (
	"context"
	"fmt"
	"sync"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// state is what is known of the run and its batches: by its folder on disk, by the journal of earlier processes, and by
// the claims in the database.
type state struct {
	target *target
	plan   *plan
	notes  *notes
	log    *runlog.Log // nil until the run has a record

	resumed bool            // an earlier process worked on the run
	history history         // of earlier processes
	done    runlog.Done     // batches that are in; the engine reads it while it runs
	stored  []engine.Stored // batches in the store that wait for their commit, when this process began to load
	inStore runlog.Done     // the same, for the feed
	lost    bool            // this process found acknowledged batches gone

	mu      sync.Mutex  // guards acked and lengths
	acked   runlog.Done // batches that this process had acknowledged, in the journal, since done was made
	lengths lengths     // of objects, where they are all there is
}

func (s *state) run() string { return s.log.Record().Run }

func (s *state) stage() runlog.Stage { return s.log.Record().Stage }

// hasClaims reports whether the claim table holds anything of the run: claims, or the range of keys that was set aside
// for it.
func (s *state) hasClaims() bool {
	return s.plan.Dedup == loader.DedupTx || s.plan.config.Append && s.log.Record().Flag("first-key") == ""
}

// left is how many batches are still to be sent, toUpload how many of them have no object in the store yet.
func (s *state) left() int64     { return s.plan.Batches() - s.done.Len() }
func (s *state) toUpload() int64 { return s.left() - int64(len(s.stored)) }

// needsNoBuffer reports whether a batch is in, or in the store.
func (s *state) needsNoBuffer(number int64) bool { return s.done.Has(number) || s.inStore.Has(number) }

// before is how many batches, and rows, were in when this process began.
func (s *state) before() (batches, rows int64) {
	if s.stage() != runlog.Loading {
		return s.plan.Batches(), s.plan.Rows
	}
	return s.done.Len(), s.rowsOf(&s.done)
}

// rowsOf is how many rows the batches of a set hold. Only the last batch may be short.
func (s *state) rowsOf(d *runlog.Done) int64 {
	rows := d.Len() * s.plan.BatchRows
	if last := s.plan.Batches() - 1; d.Has(last) {
		rows -= s.plan.BatchRows - s.plan.BatchSize(last)
	}
	return rows
}

// ref is a batch of the run by its number.
func (s *state) ref(number int64) loader.Ref {
	return loader.Ref{
		ID: batch.ID{Run: s.run(), Number: number}, First: s.plan.FirstKey + number*s.plan.BatchRows, Rows: s.plan.BatchSize(number),
	}
}

// group is a commit group of the run by its number; without members where the run has no such group.
func (s *state) group(number int64) loader.Group {
	first := number * s.plan.GroupBatches
	g := loader.Group{Ref: s.ref(first)}
	g.ID.Number, g.Rows = number, 0
	for n := first; n >= 0 && n < min(first+s.plan.GroupBatches, s.plan.Batches()); n++ {
		g.Members = append(g.Members, s.ref(n))
		g.Rows += s.plan.BatchSize(n)
	}
	return g
}

// claimed reads the claims of the run, where the contract makes any.
func (s *state) claimed(ctx context.Context) (claimed runlog.Done, can bool, err error) {
	claims := s.target.can.Claims
	if claims == nil || s.plan.Dedup != loader.DedupTx {
		return claimed, false, nil
	}
	err = s.target.ask(ctx, "claims", func(ctx context.Context) error {
		claimed = runlog.Done{}
		return claims.Claimed(ctx, s.run(), func(number, rows int64) error {
			batches, err := s.claimedAs(number, rows)
			for _, b := range batches {
				claimed.Add(b.ID.Number)
			}
			return err
		})
	})
	if err != nil {
		return claimed, true, fmt.Errorf("reading the claims of run %s: %w", s.run(), err)
	}
	return claimed, true, nil
}

// claimedAs returns the batches that a claim stands for: under a staged contract it is that of a group.
func (s *state) claimedAs(number, rows int64) ([]loader.Ref, error) {
	what, of := "batch", []loader.Ref{s.ref(number)}
	known := number >= 0 && number < s.plan.Batches() && rows == s.plan.BatchSize(number)
	if s.plan.Staged() {
		g := s.group(number)
		what, of, known = "commit group", g.Members, len(g.Members) > 0 && rows == g.Rows
	}
	if !known {
		return nil, loader.Final(fmt.Errorf("%s %d with %d rows is claimed, and the run has no such %s", what, number, rows, what))
	}
	return of, nil
}

// record keeps an event for a resume. What is announced is on disk before it is sent: nothing else would tell a resume
// to ask for it. The end of a commit group is on disk before it counts as acknowledged, and so before anybody removes its
// objects.
func (s *state) record(e event.Event) error {
	err := s.log.Append(e)
	if err == nil && (e.Outcome == event.Started || e.Members > 0) {
		err = s.log.Sync()
	}
	if err == nil && e.Done() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for n := range max(e.Members, 1) {
			s.acked.Add(e.Batch + n)
		}
		s.keepLength(e)
	}
	return err
}

// replay takes an event of an earlier process.
func (s *state) replay(e event.Event) {
	s.history.add(e, s.plan.GroupBatches, &s.done)
	s.keepLength(e)
}

// keepLength notes how long the body of an acknowledged batch was, in case that objects are all there will be to look
// at. Who has claims or rows to look up has a table.
func (s *state) keepLength(e event.Event) {
	d := s.plan.Dedup
	if e.Done() && e.Members == 0 && (d == loader.DedupKey || d == loader.DedupNone) {
		s.lengths.add(e.Batch, e.Encoded)
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

// history is what the journal tells of a run's earlier processes.
type history struct {
	last   int64                 // the last batch that the journal knows, −1 without one
	begun  map[int64]attempts    // batches with attempts that are not in
	groups map[int64]attempts    // the same of commit groups, by their number
	stored map[int64]event.Event // batches that are in the store and not in the table
	// newest is the group that begins at the highest batch of those that were begun, and its length.
	newest, newestLength int64
	missing              int64 // rows that answers of earlier processes left out, or counted too many
}

func newHistory() history {
	return history{
		last: -1, newest: -1,
		begun: make(map[int64]attempts), groups: make(map[int64]attempts), stored: make(map[int64]event.Event),
	}
}

// attempts is what is known of the attempts at a batch or group that is not in.
type attempts struct {
	newest    int
	announced bool // and no end of it is known
	unknown   bool // the end of one of them is
}

func (a attempts) begun() engine.Begun {
	return engine.Begun{Attempt: a.newest, Unknown: a.announced || a.unknown}
}

func (a attempts) after(e event.Event) attempts {
	return attempts{
		newest: max(a.newest, e.Attempt), announced: e.Outcome == event.Started, unknown: a.unknown || e.Outcome == event.Unknown,
	}
}

// add takes the next event and keeps done up to date. Only what is open is kept: a run may have millions of batches.
func (h *history) add(e event.Event, groupBatches int64, done *runlog.Done) {
	members := max(e.Members, 1)
	h.last = max(h.last, e.Batch+members-1)
	open, number := h.begun, e.Batch
	if e.Members > 0 {
		open, number = h.groups, e.Batch/max(groupBatches, 1)
		if e.Batch > h.newest {
			h.newest, h.newestLength = e.Batch, e.Members
		}
	}
	if !e.Done() {
		open[number] = open[number].after(e)
		if e.Outcome == event.Stored {
			h.stored[e.Batch] = e
		}
		return
	}
	h.missing += max(e.Missing, -e.Missing)
	delete(open, number)
	for n := e.Batch; n < e.Batch+members; n++ {
		done.Add(n)
		delete(h.begun, n)
		delete(h.stored, n)
	}
}
