// Package progress knows what of a run is in, begun or stored, from the journal of earlier processes, the claims in the
// database and the store of a staged method, and keeps what the engine tells.
package progress

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/notes"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Progress is what is known of a run's batches. To the engine it is the run's Progress; the rest belongs to one
// goroutine, and is not used while the engine runs.
type Progress struct {
	name   string // that the user has given the run; "" without
	target *target.Target
	plan   run.Plan // the newest
	notes  *notes.Notes

	id        string
	row       loader.RunRow // the run's in the database, or that of this shard
	log       *runlog.Log   // nil until the run has a record
	continued bool          // an earlier process worked on the run
	workers   int           // of that process

	known
}

// known are the batches of which something is known.
type known struct {
	history history         // of earlier processes
	done    runlog.Done     // batches that are in; it does not change while the engine runs
	stored  []engine.Stored // batches that were in the store, uncommitted, when this process began to load
	inStore runlog.Done     // the same, for the source
	lost    bool            // this process found acknowledged batches gone

	mu       sync.Mutex      // guards what follows
	acked    runlog.Done     // batches acknowledged by this process since done was made
	lengths  lengths         // of objects that are not loaded into a table
	rejected map[int64]int64 // of files: how many records batches went in without
}

// New returns the progress of a run of which nothing is known, with the name that the user has given it, or "".
func New(name string, t *target.Target, n *notes.Notes) *Progress {
	return &Progress{
		name: name, target: t, notes: n, known: known{history: newHistory(), rejected: make(map[int64]int64)},
	}
}

// SetPlan takes the run's plan, whenever it is made anew.
func (p *Progress) SetPlan(plan run.Plan) { p.plan = plan }

// Identify gives the run its id. One in shared files has its name until it is announced.
func (p *Progress) Identify(id string) { p.id = id }

// ID returns the run's id.
func (p *Progress) ID() string { return p.id }

// Own takes the run's row, or that of this shard, as the database has it now; the zero row if it has none any more.
func (p *Progress) Own(row loader.RunRow) { p.row = row }

// Owned reports whether this process owns the run's row.
func (p *Progress) Owned() bool { return p.row.Epoch != "" }

// ReadClaimsOf says whose claims are read of a run that this process does not own.
func (p *Progress) ReadClaimsOf(run string) { p.row.Run = run }

// Keep takes the log of the run, on which an earlier process has worked if it is continued.
func (p *Progress) Keep(log *runlog.Log, continued bool) {
	p.log, p.continued, p.workers = log, continued, log.Record().Plan.Workers
}

// Log returns the run's log; nil until the run has a record.
func (p *Progress) Log() *runlog.Log { return p.log }

// Continued reports whether an earlier process worked on the run.
func (p *Progress) Continued() bool { return p.continued }

// OnTheWay returns how many batches the earlier process had on their way at most, when it ended.
func (p *Progress) OnTheWay() int64 { return int64(p.workers) }

// Remove removes the run's log.
func (p *Progress) Remove() error {
	log := p.log
	p.log = nil
	return log.Remove()
}

// LastKnown returns the last batch in journal and claims, −1 without one.
func (p *Progress) LastKnown() int64 { return max(p.history.last, p.done.Last()) }

// Name is what the database knows the run by.
func (p *Progress) Name() string { return cmp.Or(p.name, p.id) }

// Stage is how far the run is, by its record.
func (p *Progress) Stage() runlog.Stage { return p.log.Record().Stage }

// In returns how many batches are in, of those that this process sends.
func (p *Progress) In() int64 { return p.done.Len() }

// Left returns how many are still to be sent.
func (p *Progress) Left() int64 { return p.plan.ShardBatches() - p.done.Len() }

// ToUpload returns how many of these are not in the store yet.
func (p *Progress) ToUpload() int64 { return p.Left() - int64(len(p.stored)) }

// Missing returns how many rows servers have acknowledged too few or too many to earlier processes.
func (p *Progress) Missing() int64 { return p.history.missing }

// LastGroup returns the first batch of the last commit group that was begun, and the number of its batches; −1 without
// one.
func (p *Progress) LastGroup() (first, batches int64) {
	return p.history.newest, p.history.newestLength
}

// Length returns the acknowledged length of a batch's object.
func (p *Progress) Length(number int64) (bytes int64, known bool) { return p.lengths.of(number) }

// ForgetStored is called when the engine has ended: what was in the store is committed, or the next process looks for
// it.
func (p *Progress) ForgetStored() { p.stored, p.inStore = nil, runlog.Done{} }

// NeedsNoBuffer reports whether a batch is in, or in the store, or another process's.
func (p *Progress) NeedsNoBuffer(number int64) bool {
	return p.done.Has(number) || p.inStore.Has(number) || !p.ours(number)
}

// ours reports whether a batch is one of those that this process sends.
func (p *Progress) ours(number int64) bool {
	first, end := p.plan.ShardRange()
	return first <= number && number < end
}

// Amount is how much some batches are.
type Amount struct {
	Batches, Rows int64
	Bytes         int64 // of files
}

// Before returns what was in when this process began.
func (p *Progress) Before() Amount {
	if p.Stage() == runlog.Loading {
		return p.AmountOf(&p.done)
	}
	if p.plan.Files == nil {
		return Amount{Batches: p.plan.ShardBatches(), Rows: p.plan.ShardRows()}
	}
	a := Amount{Batches: p.plan.Cut.Len(), Rows: p.plan.Rows, Bytes: p.plan.Cut.All()}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, records := range p.rejected {
		a.Rows -= records
	}
	return a
}

// AmountOf returns how much a set of batches is, of files without the records that were left out.
func (p *Progress) AmountOf(d *runlog.Done) Amount {
	if p.plan.Files == nil {
		return Amount{Batches: d.Len(), Rows: p.plan.Spans().RowsOf(d.Len(), d.Has(p.plan.Batches()-1))}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := Amount{Batches: d.Len()}
	for n := range p.plan.Cut.Len() {
		if d.Has(n) {
			a.Rows += p.plan.BatchSize(n) - p.rejected[n]
			a.Bytes += p.plan.Cut.Bytes(n)
		}
	}
	return a
}

func (p *Progress) ref(number int64) loader.Ref {
	first, rows := p.plan.Spans().Span(number)
	return loader.Ref{ID: batch.ID{Run: p.id, Number: number}, First: first, Rows: rows}
}

// group returns a commit group of the run; it has no members if the run has no such group.
func (p *Progress) group(number int64) loader.Group {
	first := number * p.plan.GroupBatches
	g := loader.Group{Ref: p.ref(first)}
	g.ID.Number, g.Rows = number, 0
	for n := first; n >= 0 && n < min(first+p.plan.GroupBatches, p.plan.Batches()); n++ {
		member := p.ref(n)
		g.Members = append(g.Members, member)
		g.Rows += member.Rows
	}
	return g
}

// claimed reads the claims of the batches that this process sends; ok is false if the contract makes none.
func (p *Progress) claimed(ctx context.Context) (claimed runlog.Done, ok bool, err error) {
	claims := p.target.Can.Claims
	if claims == nil || p.plan.Dedup != loader.DedupTx {
		return claimed, false, nil
	}
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) error {
		claimed = runlog.Done{}
		return claims.Claimed(ctx, p.row.Run, func(number, rows int64) error {
			batches, err := p.claimedAs(number, rows)
			for _, b := range batches {
				if p.ours(b.ID.Number) {
					claimed.Add(b.ID.Number)
				}
			}
			return err
		})
	})
	if err != nil {
		return claimed, true, fmt.Errorf("reading the claims of run %s: %w", p.id, err)
	}
	return claimed, true, nil
}

// claimedAs returns the batches of a claim, which is a group's under a staged contract.
func (p *Progress) claimedAs(number, rows int64) ([]loader.Ref, error) {
	what, batches := "batch", []loader.Ref{p.ref(number)}
	known := number >= 0 && number < p.plan.Batches() && rows == p.plan.BatchSize(number)
	if p.plan.Files != nil { // a batch may have gone in without bad records
		known = number >= 0 && number < p.plan.Cut.Len() && rows <= p.plan.BatchSize(number)
	}
	if p.plan.Staged() {
		g := p.group(number)
		what, batches, known = "commit group", g.Members, len(g.Members) > 0 && rows == g.Rows
	}
	if !known {
		return nil, loader.Final(fmt.Errorf("%s %d with %d rows is claimed, and the run has no such %s: another run has "+
			"had its id; start a new run", what, number, rows, what))
	}
	return batches, nil
}

// Range returns the batches that this process sends: from first on, up to and without end.
func (p *Progress) Range() (first, end int64) { return p.plan.ShardRange() }

// Done reports whether a batch is in.
func (p *Progress) Done(number int64) bool { return p.done.Has(number) }

// Attempts returns those of earlier processes at a batch.
func (p *Progress) Attempts(number int64) engine.Attempts { return p.history.batches[number].known() }

// GroupAttempts returns those of earlier processes at a commit group.
func (p *Progress) GroupAttempts(number int64) engine.Attempts {
	return p.history.groups[number].known()
}

// Stored returns the batches that are in the store and not in the table.
func (p *Progress) Stored() []engine.Stored { return p.stored }

// Resumed reports whether another process may have sent batches of this one's range, or this one some that were lost.
func (p *Progress) Resumed() bool { return p.continued || p.lost || p.name != "" }

// Note keeps an event on disk. An announced attempt is there before it is sent, since a resume knows it from nowhere
// else. The end of a commit group is there before it counts as acknowledged, and so before its objects are removed.
func (p *Progress) Note(e event.Event) error {
	if err := p.write(e); err != nil || !e.Done() {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range max(e.Members, 1) {
		p.acked.Add(e.Batch + n)
	}
	if p.target.Can.OnlyObjects() {
		p.keepLength(e, p.plan.Dedup)
	}
	if p.plan.Files != nil {
		p.rejected[e.Batch] = p.plan.BatchSize(e.Batch) - e.Rows
	}
	return nil
}

func (p *Progress) write(e event.Event) (err error) {
	if p.isMark(e) {
		err = p.log.Mark(e.Batch, e.Outcome)
	} else {
		err = p.log.Append(e)
	}
	if err != nil || e.Outcome != event.Started && e.Members == 0 {
		return err
	}
	return p.log.Sync()
}

// isMark reports whether a mark says all that a resume, a proof or a reader of the journal needs to know of an event.
// That is so for nearly all: a first attempt that begins, and an attempt that went well.
func (p *Progress) isMark(e event.Event) bool {
	begins := e.Outcome == event.Started && e.Attempt == 1
	well := e.Done() && e.Missing == 0 && e.Error == "" && len(e.Detail) == 0 && !p.target.Can.OnlyObjects()
	return e.Members == 0 && (begins || well)
}

// Replayer returns what takes the events of earlier processes of a run with a contract.
func (p *Progress) Replayer(c loader.Contract) func(event.Event) {
	p.history, p.done, p.lengths = newHistory(), runlog.Done{}, nil
	return func(e event.Event) {
		p.history.add(e, c.GroupBatches, &p.done)
		p.keepLength(e, c.Dedup)
	}
}

// keepLength notes the length of an acknowledged batch if the objects may be all there is to verify. A mark has none.
func (p *Progress) keepLength(e event.Event, d loader.Dedup) {
	if e.Done() && e.Members == 0 && e.Encoded > 0 && (d == loader.DedupKey || d == loader.DedupNone) {
		p.lengths.add(e.Batch, e.Encoded)
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
