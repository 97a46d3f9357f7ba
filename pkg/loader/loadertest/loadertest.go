// Package loadertest is one conformance suite for every back-end: what the engine relies on, checked against a live
// server through connections that break on command.
//
// A back-end's test fills in a Harness and calls Run; what the contract does not promise is not checked. Tests of the
// engine use Memory, a database in this process whose faults are scripted.
package loadertest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// patience is how long anything may take that must not hang. It is long because test machines are slow and shared.
const patience = 30 * time.Second

// Harness is what the suite needs to know of a back-end.
type Harness struct {
	Driver loader.Driver
	// Deps are handed to Open, with faults put in front of Dial. Without a Dial the cases that need faults are skipped.
	Deps loader.Deps
	// Target names a table that does not exist yet, another one at every call, and removes it in t.Cleanup. Its
	// connections must not be encrypted, or the faults could not see what they carry. A staged method's Via comes with
	// it, and its connections go through Deps.Dial too.
	Target func(t *testing.T) loader.Target
	Schema rows.Schema
	// Contract is what sessions are opened with. BatchRows rows should take 100 KiB or more, so that a fault can hit
	// the middle of a body. A staged contract's GroupBatches are at least 2.
	Contract loader.Contract
	// Batch makes the batch of rows first … first+n−1 in the contract's format. The suite sets Free.
	Batch func(t *testing.T, id batch.ID, first, n int64) *batch.Batch
	// Row returns the values of a row as Fetch has to give them back: int64, or []byte.
	Row func(number int64) []any
	// Commit is a text that stands in the client's message that commits a batch, or a group of a staged contract, and
	// in no other one. Without it the case of the lost answer is skipped.
	Commit string
	// Answers are texts as Commit is, one for each of the client's messages of an attempt that the server answers
	// before the commit, the claim's first. Without them the case of these answers is skipped.
	Answers []string
	// Overlap reports whether two attempts at one batch may both go in when they overlap, because the label is a check
	// and no lock: the case that sends them is skipped. The engine ends the earlier one first, by way of Resolve.
	Overlap bool
	// Without are the names of cases that the server does not stand, for reasons that the back-end's test gives.
	Without []string
}

// Run checks everything a contract promises.
func Run(t *testing.T, h Harness) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			switch {
			case slices.Contains(h.Without, c.name):
				t.Skip("not on this server")
			case c.staged != h.Contract.Staged() && !c.any:
				t.Skip("a matter of " + map[bool]string{true: "staged", false: "direct"}[c.staged] + " loads")
			case c.dedup && h.Contract.Dedup == loader.DedupNone:
				t.Skip("the contract does not recognise batches")
			case c.overlap && h.Overlap:
				t.Skip("the label is a check and no lock")
			case c.keys && h.Contract.Dedup == loader.DedupKey:
				t.Skip("only labels are compared, not rows")
			case c.faults && h.Deps.Dial == nil:
				t.Skip("no connection to break")
			case c.commit && h.Commit == "":
				t.Skip("no commit message to wait for")
			case c.answers && len(h.Answers) == 0:
				t.Skip("no other message to wait for")
			}
			c.run(newFixture(t, h))
		})
	}
}

// fixture is one fresh table, opened through faults and prepared.
type fixture struct {
	Harness
	*testing.T
	ctx    context.Context
	run    string
	target loader.Target
	faults *Faults
	loader loader.Loader
	can    loader.Features // of loader

	mu       sync.Mutex
	attempts map[batch.ID]int // as many as the engine would have counted
}

func newFixture(t *testing.T, h Harness) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	f := &fixture{Harness: h, T: t, ctx: ctx, target: h.Target(t), attempts: make(map[batch.ID]int)}
	f.run = f.anotherRun("a")
	if h.Deps.Dial != nil {
		f.faults = NewFaults(h.Deps.Dial)
		t.Cleanup(f.faults.Close)
		f.Deps.Dial = f.faults.Dial
	}
	f.loader = f.open(f.run)
	f.can = loader.FeaturesOf(f.loader)
	return f
}

// anotherRun makes a run id that no other test has used on this server: claims of several tables share one table.
func (f *fixture) anotherRun(suffix string) string {
	return fmt.Sprintf("test-%x-%s", time.Now().UnixNano(), suffix)
}

// open returns a process of its own on the same table, which begins a run.
func (f *fixture) open(run string) loader.Loader {
	f.Helper()
	return f.prepared(run, "", &loader.Beginning{Appends: true})
}

// openShard is open of a process that may be started elsewhere again.
func (f *fixture) openShard(run string) loader.Loader {
	f.Helper()
	return f.prepared(run, "0/1", &loader.Beginning{Appends: true, Shards: 1})
}

// takes returns a process of its own that takes over a run.
func (f *fixture) takes(run string) loader.Loader {
	f.Helper()
	l := f.prepared(run, "", nil)
	if claims := loader.FeaturesOf(l).Claims; claims != nil {
		_, err := claims.Take(f.ctx, run)
		f.must(err, "take")
	}
	return l
}

func (f *fixture) prepared(run, shard string, begin *loader.Beginning) loader.Loader {
	f.Helper()
	l, err := f.Driver.Open(f.ctx, f.target, f.Deps)
	f.must(err, "open")
	f.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(f.ctx, loader.Preparation{
		Run: run, Shard: shard, Schema: f.Schema, Contract: f.Contract, Create: loader.CreateIfMissing, PrimaryKey: true,
		Begin: begin, Owner: "the conformance suite",
	})
	f.must(err, "prepare")
	return l
}

func (f *fixture) session() loader.Session {
	f.Helper()
	s, err := f.loader.Session(f.ctx, f.Contract)
	f.must(err, "session")
	f.Cleanup(func() { _ = s.Close() })
	return s
}

// batch returns the contract's n-th batch of the fixture's run.
func (f *fixture) batch(n int64) *batch.Batch {
	f.Helper()
	return f.Batch(f.T, batch.ID{Run: f.run, Number: n}, n*f.Contract.BatchRows, f.Contract.BatchRows)
}

// attempt counts one more attempt at a batch or a group.
func (f *fixture) attempt(id batch.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts[id]++
	return f.attempts[id]
}

// ref returns the batch as the engine would name it to Resolve: it asks only after an attempt was begun.
func (f *fixture) ref(b *batch.Batch) loader.Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref := loader.RefOf(b)
	ref.Attempt = max(f.attempts[b.ID], 1)
	return ref
}

// load sends the batch, and checks that it ends in time and that the buffer comes back: exactly once, and soon.
func (f *fixture) load(ctx context.Context, s loader.Session, b *batch.Batch) (loader.Ack, error) {
	f.Helper()
	freed := make(chan struct{}, 2)
	b.Free = func() { freed <- struct{}{} }
	b.Attempt = f.attempt(b.ID)
	b.Hold()
	began := time.Now()
	ack, err := s.Load(ctx, b)
	if took := time.Since(began); took > patience {
		f.Errorf("load took %v", took)
	}
	b.Release()
	select {
	case <-freed:
	case <-time.After(patience):
		f.Errorf("a body of batch %v is still open after load returned %v", b.ID, err)
	}
	return ack, err
}

// loads sends the batch, which must go in as a whole.
func (f *fixture) loads(s loader.Session, b *batch.Batch) {
	f.Helper()
	ack, err := f.load(f.ctx, s, b)
	f.must(err, "load")
	if ack.AlreadyApplied || ack.Rows != b.Rows || ack.Stored != f.Contract.Staged() {
		f.Fatalf("ack %+v for a new batch of %d rows", ack, b.Rows)
	}
}

// puts brings a batch into the table, by whatever way.
func (f *fixture) puts(b *batch.Batch) {
	f.Helper()
	f.loads(f.session(), b)
	if f.Contract.Staged() {
		f.commits(f.loader, f.group(b))
	}
}

// reloads sends a batch that is there already.
func (f *fixture) reloads(s loader.Session, b *batch.Batch) {
	f.Helper()
	ack, err := f.load(f.ctx, s, b)
	f.must(err, "load again")
	replaced := f.can.OnlyObjects() && !ack.AlreadyApplied // an object of the same name and bytes takes the place of the first
	if !ack.AlreadyApplied && !replaced || ack.Rows != b.Rows {
		f.Fatalf("ack %+v for a batch of %d rows that is there already", ack, b.Rows)
	}
}

// fails sends a batch that must not succeed and returns what is made of its error.
func (f *fixture) fails(ctx context.Context, s loader.Session, b *batch.Batch) loader.Verdict {
	f.Helper()
	ack, err := f.load(ctx, s, b)
	if err == nil {
		f.Fatalf("load acknowledged %+v where it had to fail", ack)
	}
	f.Logf("load: %v", err)
	v := f.Driver.Classify(err)
	if v.Class == "" {
		f.Errorf("no class for %v", err)
	}
	return v
}

// resolved asks the loader what became of the batch.
func (f *fixture) resolved(l loader.Loader, b *batch.Batch, want loader.Applied) {
	f.Helper()
	f.resolvedRef(l, f.ref(b), want)
}

func (f *fixture) resolvedRef(l loader.Loader, ref loader.Ref, want loader.Applied) {
	f.Helper()
	r := loader.FeaturesOf(l).Resolver
	if r == nil && f.Contract.Dedup == loader.DedupKey {
		return // its label is a lock: sending again is asking
	}
	if r == nil {
		f.Fatal("the loader recognises batches but is no Resolver")
	}
	began := time.Now()
	got, err := r.Resolve(f.ctx, ref)
	f.must(err, "resolve")
	if got.Applied != want {
		f.Fatalf("resolve of %v: %v, want %v; %s", ref.ID, got.Applied, want, got.Reason)
	}
	if (got.Applied == loader.Unknown) != (got.Reason != "") {
		f.Errorf("resolve of %v: %v for the reason %q", ref.ID, got.Applied, got.Reason)
	}
	if took := time.Since(began); took > patience {
		f.Errorf("resolve took %v", took)
	}
}

// holds checks that the table has exactly the rows of the batches, and of each batch every row once.
func (f *fixture) holds(batches ...*batch.Batch) {
	f.Helper()
	if f.can.OnlyObjects() {
		f.lies(batches...)
		return
	}
	c := f.can.Counter
	if c == nil {
		f.Skip("the loader is no Counter: nothing to compare with")
	}
	got := make(map[int64]loader.Bucket)
	size := f.Contract.BatchRows
	all := loader.KeyRange{First: 0, Last: 100*size - 1}
	if w := f.can.Finisher; w != nil {
		notes, err := w.Finish(f.ctx, all, int64(len(batches))*size)
		f.must(err, "finish")
		for _, n := range notes {
			f.Logf("finish: %s", n)
		}
	}
	const parts = 3
	split, err := c.Parts(f.ctx, all, parts)
	f.must(err, "split the table")
	if len(split) == 0 || len(split) > parts {
		f.Errorf("the table was split into %d parts, want 1 to %d", len(split), parts)
	}
	mix := loader.NewMix(1)
	for _, part := range split {
		f.must(c.Count(f.ctx, loader.Grouping{KeyRange: all, Size: size, Part: part, Mix: &mix, Measures: true}, func(b loader.Bucket) error {
			if sum, counted := got[b.Number]; counted {
				b.Add(sum)
			}
			got[b.Number] = b
			return nil
		}), "count")
	}
	for _, b := range batches {
		checkBucket(f.T, got[b.First/size], b.Rows, mix, f.Schema)
		delete(got, b.First/size)
	}
	for n, b := range got {
		f.Errorf("bucket %d holds %d rows, want none", n, b.Rows)
	}
}

// lies checks that the batches, and no others of the fixture's run, lie in the store with all their bytes.
func (f *fixture) lies(batches ...*batch.Batch) {
	f.Helper()
	i := f.can.Inventory
	if i == nil {
		return
	}
	got := make(map[int64]int64)
	f.must(i.Objects(f.ctx, f.run, func(name string, number, bytes int64) error {
		if _, twice := got[number]; twice || name == "" {
			f.Errorf("object %q of batch %d is listed beside another", name, number)
		}
		got[number] = bytes
		return nil
	}), "list the objects")
	for _, b := range batches {
		if got[b.ID.Number] != int64(len(b.Encoded)) {
			f.Errorf("the object of batch %v has %d bytes, want %d", b.ID, got[b.ID.Number], len(b.Encoded))
		}
		delete(got, b.ID.Number)
	}
	for n, bytes := range got {
		f.Errorf("an object of batch %d lies in the store with %d bytes, want none", n, bytes)
	}
}

// claims checks which batches of the fixture's run are claimed.
func (f *fixture) claims(want ...int64) {
	f.Helper()
	rows := make(map[int64]int64)
	for _, n := range want {
		rows[n] = f.Contract.BatchRows
	}
	f.claimed(rows)
}

// claimed checks the fixture's claims, and how many rows each has, where the back-end keeps any.
func (f *fixture) claimed(want map[int64]int64) {
	f.Helper()
	c := f.can.Claims
	if c == nil {
		return
	}
	got := make(map[int64]int64)
	f.must(c.Claimed(f.ctx, f.run, func(number, rows int64) error {
		got[number] = rows
		return nil
	}), "claimed")
	if !maps.Equal(got, want) {
		f.Errorf("claimed rows by number: %v, want %v", got, want)
	}
}

// forgets makes the back-end forget a run of which the claim table holds one row, where it holds any.
func (f *fixture) forgets(c loader.Claims, run string) {
	f.Helper()
	rows, known, err := c.Forget(f.ctx, run)
	f.must(err, "forget")
	if !known {
		f.Errorf("the database does not know run %s", run)
	}
	if f.Contract.Dedup == loader.DedupTx && rows != 1 {
		f.Errorf("%d rows of the claim table were removed for run %s, and there was 1", rows, run)
	}
}

func (f *fixture) must(err error, what string) {
	f.Helper()
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// dial is the type of loader.Deps.Dial.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)
