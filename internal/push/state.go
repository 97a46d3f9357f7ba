package push

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// state is what is known of the run's batches, from its folder on disk, the journal of earlier processes and the claims
// in the database. To the engine it is the run's Progress.
type state struct {
	target *target
	plan   *run.Plan
	notes  *notes
	log    *runlog.Log // nil until the run has a record

	// row is the run's row in the database, or that of this shard; shards are those of a named run when it was looked
	// for.
	row    loader.RunRow
	shards []loader.RunRow
	id     string // of the run; one in shared files has it once it is announced, and before that its name

	resumed bool            // an earlier process worked on the run
	earlier run.Plan        // of that process
	history history         // of earlier processes
	done    runlog.Done     // batches that are in; it does not change while the engine runs
	stored  []engine.Stored // batches that were in the store, uncommitted, when this process began to load
	inStore runlog.Done     // the same, for the source
	lost    bool            // this process found acknowledged batches gone

	mu      sync.Mutex  // guards acked and lengths
	acked   runlog.Done // batches acknowledged by this process since done was made
	lengths lengths     // of objects that are not loaded into a table
}

func (s *state) run() string { return s.id }

// runName is what the database knows the run by.
func (s *state) runName() string { return cmp.Or(s.target.config.RunID, s.id) }

func (s *state) stage() runlog.Stage { return s.log.Record().Stage }

// left returns how many batches are still to be sent, toUpload how many of them are not in the store yet.
func (s *state) left() int64     { return s.plan.PartBatches() - s.done.Len() }
func (s *state) toUpload() int64 { return s.left() - int64(len(s.stored)) }

// needsNoBuffer reports whether a batch is in, or in the store, or another process's.
func (s *state) needsNoBuffer(number int64) bool {
	return s.done.Has(number) || s.inStore.Has(number) || !s.ours(number)
}

// ours reports whether a batch is one of those that this process sends.
func (s *state) ours(number int64) bool {
	first, end := s.plan.Part()
	return first <= number && number < end
}

// before returns how many batches and rows were in when this process began.
func (s *state) before() (batches, rows int64) {
	if s.stage() != runlog.Loading {
		return s.plan.PartBatches(), s.plan.PartRows()
	}
	return s.done.Len(), s.rowsOf(&s.done)
}

// rowsOf returns the rows of a set of batches.
func (s *state) rowsOf(d *runlog.Done) int64 {
	return s.plan.Spans().RowsOf(d.Len(), d.Has(s.plan.Batches()-1))
}

func (s *state) ref(number int64) loader.Ref {
	first, rows := s.plan.Spans().Span(number)
	return loader.Ref{ID: batch.ID{Run: s.run(), Number: number}, First: first, Rows: rows}
}

// group returns a commit group of the run; it has no members if the run has no such group.
func (s *state) group(number int64) loader.Group {
	first := number * s.plan.GroupBatches
	g := loader.Group{Ref: s.ref(first)}
	g.ID.Number, g.Rows = number, 0
	for n := first; n >= 0 && n < min(first+s.plan.GroupBatches, s.plan.Batches()); n++ {
		member := s.ref(n)
		g.Members = append(g.Members, member)
		g.Rows += member.Rows
	}
	return g
}

// claimed reads the claims of the batches that this process sends; ok is false if the contract makes none.
func (s *state) claimed(ctx context.Context) (claimed runlog.Done, ok bool, err error) {
	claims := s.target.can.Claims
	if claims == nil || s.plan.Dedup != loader.DedupTx {
		return claimed, false, nil
	}
	err = s.target.ask(ctx, "claims", func(ctx context.Context) error {
		claimed = runlog.Done{}
		return claims.Claimed(ctx, s.row.Run, func(number, rows int64) error {
			batches, err := s.claimedAs(number, rows)
			for _, b := range batches {
				if s.ours(b.ID.Number) {
					claimed.Add(b.ID.Number)
				}
			}
			return err
		})
	})
	if err != nil {
		return claimed, true, fmt.Errorf("reading the claims of run %s: %w", s.run(), err)
	}
	return claimed, true, nil
}

// claimedAs returns the batches of a claim, which is a group's under a staged contract.
func (s *state) claimedAs(number, rows int64) ([]loader.Ref, error) {
	what, batches := "batch", []loader.Ref{s.ref(number)}
	known := number >= 0 && number < s.plan.Batches() && rows == s.plan.BatchSize(number)
	if s.plan.Staged() {
		g := s.group(number)
		what, batches, known = "commit group", g.Members, len(g.Members) > 0 && rows == g.Rows
	}
	if !known {
		return nil, loader.Final(fmt.Errorf("%s %d with %d rows is claimed, and the run has no such %s", what, number, rows, what))
	}
	return batches, nil
}

// Part returns the batches that this process sends: from first on, up to and without end.
func (s *state) Part() (first, end int64) { return s.plan.Part() }

// Done reports whether a batch is in.
func (s *state) Done(number int64) bool { return s.done.Has(number) }

// Begun returns the attempts of earlier processes at a batch.
func (s *state) Begun(number int64) engine.Begun { return s.history.begun[number].begun() }

// BegunGroup returns the attempts of earlier processes at a commit group.
func (s *state) BegunGroup(number int64) engine.Begun { return s.history.groups[number].begun() }

// Stored returns the batches that are in the store and not in the table.
func (s *state) Stored() []engine.Stored { return s.stored }

// Resumed reports whether another process may have sent batches of this one's part, or this one some that were lost.
func (s *state) Resumed() bool { return s.resumed || s.lost || s.target.config.RunID != "" }

// Note keeps an event on disk. An announced attempt is there before it is sent, since a resume knows it from nowhere
// else. The end of a commit group is there before it counts as acknowledged, and so before its objects are removed.
func (s *state) Note(e event.Event) error {
	var err error
	if s.isMark(e) {
		err = s.log.Mark(e.Batch, e.Outcome)
	} else {
		err = s.log.Append(e)
	}
	if err == nil && (e.Outcome == event.Started || e.Members > 0) {
		err = s.log.Sync()
	}
	if err == nil && e.Done() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for n := range max(e.Members, 1) {
			s.acked.Add(e.Batch + n)
		}
		if s.target.can.OnlyObjects() {
			s.keepLength(e, s.plan.Dedup)
		}
	}
	return err
}

// isMark reports whether a mark says all that a resume, a proof or a reader of the journal needs to know of an event.
// That is so for nearly all: a first attempt that begins, and an attempt that went well.
func (s *state) isMark(e event.Event) bool {
	begins := e.Outcome == event.Started && e.Attempt == 1
	well := e.Done() && e.Missing == 0 && e.Error == "" && len(e.Detail) == 0 && !s.target.can.OnlyObjects()
	return e.Members == 0 && (begins || well)
}

// replayer returns what takes the events of earlier processes of a run with a contract.
func (s *state) replayer(c loader.Contract) func(event.Event) {
	s.history, s.done, s.lengths = newHistory(), runlog.Done{}, nil
	return func(e event.Event) {
		s.history.add(e, c.GroupBatches, &s.done)
		s.keepLength(e, c.Dedup)
	}
}

// keepLength notes the length of an acknowledged batch if the objects may be all there is to verify. A mark has none.
func (s *state) keepLength(e event.Event, d loader.Dedup) {
	if e.Done() && e.Members == 0 && e.Encoded > 0 && (d == loader.DedupKey || d == loader.DedupNone) {
		s.lengths.add(e.Batch, e.Encoded)
	}
}

// lengths are the bytes of a run's objects by batch, plus one; 0 is not known.
type lengths []int64

func (l *lengths) add(number, bytes int64) {
	if missing := int(number) + 1 - len(*l); missing > 0 {
		*l = append(*l, make(lengths, missing)...)
	}
	(*l)[number] = bytes + 1
}

func (l *lengths) of(number int64) (bytes int64, known bool) {
	if number >= int64(len(*l)) || (*l)[number] == 0 {
		return 0, false
	}
	return (*l)[number] - 1, true
}

// history is what the journal has of a run's earlier processes. Only what is open is kept: a run may have millions of
// batches.
type history struct {
	last   int64                 // the last batch in the journal, −1 without one
	begun  map[int64]attempts    // of batches that are not in
	groups map[int64]attempts    // of commit groups that are not in
	stored map[int64]event.Event // batches that are in the store and not in the table
	// newest is the first batch of the last group that was begun, newestLength the number of its batches.
	newest, newestLength int64
	missing              int64 // rows that servers acknowledged too few or too many
}

func newHistory() history {
	return history{
		last: -1, newest: -1,
		begun: make(map[int64]attempts), groups: make(map[int64]attempts), stored: make(map[int64]event.Event),
	}
}

// attempts are those at a batch or group that is not in.
type attempts struct {
	newest    int
	announced bool // the newest has no known end
	unknown   bool // one ended with an unknown outcome
}

func (a attempts) begun() engine.Begun {
	return engine.Begun{Attempt: a.newest, Unknown: a.announced || a.unknown}
}

// add takes the next event, and adds batches that are in to done.
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
		a := open[number]
		open[number] = attempts{
			newest: max(a.newest, e.Attempt), announced: e.Outcome == event.Started, unknown: a.unknown || e.Outcome == event.Unknown,
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
		delete(h.begun, n)
		delete(h.stored, n)
	}
}
