package loadertest

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// testCase is one promise. dedup, faults, commit and answers say what a harness must have for it to be checked, overlap
// and keys what its table must refuse; staged that it is one of staged contracts, any that it is one of all.
type testCase struct {
	name            string
	dedup, faults   bool
	commit, answers bool
	overlap, keys   bool
	staged, any     bool
	run             func(f *fixture)
}

func cases() []testCase {
	return append([]testCase{
		{name: "rows arrive", run: rowsArrive},
		{name: "same batch again", dedup: true, run: sameBatchAgain},
		{name: "same batch at the same time", dedup: true, overlap: true, run: sameBatchAtOnce},
		{name: "conflicting rows", dedup: true, keys: true, run: conflictingRows},
		{name: "cancelled in the body", dedup: true, faults: true, run: cancelledInBody},
		{name: "cut in the body", dedup: true, faults: true, run: cutInBody},
		{name: "cut before the answer", dedup: true, faults: true, commit: true, run: cutBeforeAnswer},
		{name: "cut before an earlier answer", dedup: true, faults: true, answers: true, run: cutBeforeEarlierAnswers},
		{name: "client vanished", dedup: true, faults: true, run: clientVanished},
		{name: "client vanished, another process resumes", dedup: true, faults: true, run: anotherProcess},
		{name: "probe", any: true, run: probe},
		{name: "forget", dedup: true, run: forget},
		{name: "takeover", dedup: true, run: takeover},
		{name: "closed", dedup: true, run: closed},
		{name: "reserve", any: true, run: reserve},
		{name: "stored", any: true, run: stored},
	}, stagedCases()...)
}

func rowsArrive(f *fixture) {
	a, b := f.batch(0), f.batch(1)
	s := f.session()
	f.loads(s, a)
	f.loads(s, b)
	f.holds(a, b)

	f.fetches(a, b)
}

// fetches reads the ends of both batches back, and no row after them.
func (f *fixture) fetches(a, b *batch.Batch) {
	f.Helper()
	fetcher := f.can.Fetcher
	if fetcher == nil {
		return
	}
	wanted := []int64{a.First, a.Last(), b.First, b.Last(), b.Last() + 1} // there is no such last one
	found := make(map[int64]bool)
	f.must(fetcher.Fetch(f.ctx, wanted, func(number int64, values []any) error {
		found[number] = true
		checkRow(f.T, number, values, f.Row(number))
		return nil
	}), "fetch")
	if len(found) != len(wanted)-1 {
		f.Errorf("fetched rows %v of %v", found, wanted[:4])
	}
}

func sameBatchAgain(f *fixture) {
	a := f.batch(0)
	f.resolved(f.loader, a, loader.No)
	f.loads(f.session(), a)
	f.reloads(f.session(), a)
	f.resolved(f.loader, a, loader.Yes)
	f.holds(a)
	f.claims(0)
}

// Two sessions that hold the same batch happen when an attempt outlives its deadline. One of them may fail, but rows
// go in once.
func sameBatchAtOnce(f *fixture) {
	const sessions = 2
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		fresh int
	)
	for range sessions {
		s, b := f.session(), f.batch(0)
		wg.Go(func() {
			ack, err := f.load(f.ctx, s, b)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !ack.AlreadyApplied {
				fresh++
			}
		})
	}
	wg.Wait()
	if fresh != 1 {
		f.Errorf("%d sessions say that they put the batch in, want 1", fresh)
	}
	f.holds(f.batch(0))
	f.claims(0)
}

// The batch overlaps rows that are there: nothing of it may stay, not even its claim.
func conflictingRows(f *fixture) {
	a, s := f.batch(0), f.session()
	f.loads(s, a)
	b := f.Batch(f.T, batch.ID{Run: f.run, Number: 1}, a.Last(), f.Contract.BatchRows)
	v := f.fails(f.ctx, s, b)
	if v.Applied != loader.No || v.Retry || v.Class != loader.ClassConstraint && v.Class != loader.ClassRows {
		f.Errorf("verdict %+v for rows whose keys are there already, want not applied and no retry", v)
	}
	f.holds(a)
	f.claims(0)
	if v.SessionDead {
		s = f.session()
	}
	next := f.batch(1)
	f.loads(s, next) // the number is free again
	f.holds(a, next)
}

func cancelledInBody(f *fixture) {
	b, s := f.batch(0), f.session()
	v := f.cancelled(f.faults.StallAfter(half(b)), s, b)
	if v.Applied == loader.Yes {
		f.Errorf("verdict %+v for a cancelled load", v)
	}
	f.recovers(s, v, b)
}

// cancelled sends a batch and cancels when the fault has hit.
func (f *fixture) cancelled(hit <-chan struct{}, s loader.Session, b *batch.Batch) loader.Verdict {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go func() {
		<-hit
		cancel()
	}()
	return f.fails(ctx, s, b)
}

// half is the middle of the batch's body.
func half(b *batch.Batch) int64 { return int64(len(b.Encoded)) / 2 }

func cutInBody(f *fixture) {
	b, s := f.batch(0), f.session()
	f.faults.CutAfter(half(b))
	v := f.fails(f.ctx, s, b)
	if v.Applied == loader.Yes || !v.Retry || !f.hangsUp(v) {
		f.Errorf("verdict %+v for a connection cut in the body, want retry on another session", v)
	}
	f.recovers(s, v, b)
}

// The one case that the client cannot know: the server has committed, and its answer is lost.
func cutBeforeAnswer(f *fixture) {
	b, s := f.batch(0), f.session()
	f.faults.CutAnswer(f.Commit)
	v := f.fails(f.ctx, s, b)
	if v.Applied != loader.Unknown || !f.hangsUp(v) {
		f.Errorf("verdict %+v for a lost answer to the commit, want unknown", v)
	}
	f.resolved(f.loader, b, loader.Yes)
	f.reloads(f.session(), b)
	f.holds(b)
	f.claims(0)
}

// Before the commit there is nothing to be in doubt about, whichever answer is lost.
func cutBeforeEarlierAnswers(f *fixture) {
	var in []*batch.Batch
	var numbers []int64
	for n, text := range f.Answers {
		b := f.batch(int64(n))
		f.losesAnswer(text, b)
		f.resolved(f.loader, b, loader.No)
		f.holds(in...)
		f.claims(numbers...)
		f.loads(f.session(), b)
		in, numbers = append(in, b), append(numbers, b.ID.Number)
		f.holds(in...)
	}
	f.losesAnswer(f.Answers[0], in[0]) // which was that the batch is in
	f.resolved(f.loader, in[0], loader.Yes)
	f.reloads(f.session(), in[0])
	f.holds(in...)
	f.claims(numbers...)
}

// losesAnswer sends the batch, and cuts the connection before the server's answer to the message with the text.
func (f *fixture) losesAnswer(text string, b *batch.Batch) {
	f.Helper()
	hit := f.faults.CutAnswer(text)
	v := f.fails(f.ctx, f.session(), b)
	select {
	case <-hit:
	default:
		f.Fatalf("no message has %q", text)
	}
	if v.Applied != loader.No || !v.Retry || !f.hangsUp(v) {
		f.Errorf("verdict %+v for a lost answer to %q, want not applied, and retry on another session", v, text)
	}
}

// hangsUp reports whether the verdict ends the session that lost its connection. One that is not bound to a
// connection, as those over HTTP, lives on.
func (f *fixture) hangsUp(v loader.Verdict) bool {
	return v.SessionDead || f.Contract.Dedup == loader.DedupKey
}

// The server still has the transaction open, and with it the claim: Resolve has to end it, or a retry would wait for
// as long as the server waits for its client.
func clientVanished(f *fixture) {
	b, s := f.batch(0), f.session()
	v := f.vanish(s, b)
	f.recovers(s, v, b)
}

func anotherProcess(f *fixture) {
	b, s := f.batch(0), f.session()
	f.vanish(s, b)
	other := f.takes(f.run)
	f.resolved(other, b, loader.No)
	session, err := other.Session(f.ctx, f.Contract)
	f.must(err, "session of the other process")
	defer func() { _ = session.Close() }()
	f.loads(session, b)
	f.holds(b)
	f.claims(0)
}

func (f *fixture) vanish(s loader.Session, b *batch.Batch) loader.Verdict {
	f.Helper()
	hit, later := f.faults.VanishAfter(half(b)), make(chan struct{})
	go func() {
		<-hit
		time.Sleep(100 * time.Millisecond) // what was let through reaches the server
		close(later)
	}()
	return f.cancelled(later, s, b)
}

// recovers goes on after a failed attempt as the engine does: ask, find nothing, and send again.
func (f *fixture) recovers(s loader.Session, v loader.Verdict, b *batch.Batch) {
	f.Helper()
	f.resolved(f.loader, b, loader.No)
	f.holds()
	f.claims()
	if v.SessionDead {
		if again := f.fails(f.ctx, s, b); again.Applied == loader.Yes || !again.SessionDead {
			f.Errorf("verdict %+v of a session that was dead before", again)
		}
		s = f.session()
	}
	f.loads(s, b)
	f.holds(b)
	f.claims(0)
}

func probe(f *fixture) {
	p := f.can.Prober
	switch {
	case f.Contract.Dedup != loader.DedupTx: // the preflight asks for nothing else
		f.Skip("the contract knows no claims")
	case p == nil:
		f.Fatal("the loader claims batches but is no Prober")
	}
	proof, err := p.Probe(f.ctx, f.Contract, f.Batch(f.T, batch.ID{Run: f.run, Number: 0}, 7, 1))
	f.must(err, "probe")
	if !proof.Transactional {
		f.Errorf("not transactional: %s", proof.Reason)
	}
	f.holds()
	f.claims()
}

func forget(f *fixture) {
	c := f.can.Claims
	if c == nil {
		f.Skip("the loader keeps no claims")
	}
	s, mine := f.session(), f.batch(0)
	other := f.Batch(f.T, batch.ID{Run: f.anotherRun("b"), Number: 1}, f.Contract.BatchRows, f.Contract.BatchRows)
	theirs := f.open(other.ID.Run)
	session, err := theirs.Session(f.ctx, f.Contract)
	f.must(err, "session of the other run")
	defer func() { _ = session.Close() }()
	f.loads(s, mine)
	f.loads(session, other)
	f.forgets(c, f.run)
	f.claims()
	f.resolved(theirs, other, loader.Yes) // other runs keep theirs
	f.holds(mine, other)
	f.isTakenOver(s, f.batch(2), loader.RunForgotten)
	f.forgets(c, other.ID.Run)
}

// isTakenOver checks that a session may not write any more, and says in which state the run is.
func (f *fixture) isTakenOver(s loader.Session, b *batch.Batch, state loader.RunState) {
	f.Helper()
	if f.Contract.Dedup != loader.DedupTx {
		return // nothing but labels recognises its batches
	}
	_, err := f.load(f.ctx, s, b)
	if v := f.Driver.Classify(err); v.SessionDead && v.Applied == loader.No { // where a fence ends the sessions
		again, problem := f.loader.Session(f.ctx, f.Contract)
		f.must(problem, "another session")
		defer func() { _ = again.Close() }()
		_, err = f.load(f.ctx, again, b)
	}
	taken := (*loader.TakenOverError)(nil)
	if !errors.As(err, &taken) || taken.Row == nil || taken.Row.State != state {
		f.Fatalf("load returned %v, want that the run is %s", err, state)
	}
	if v := f.Driver.Classify(err); v.Retry || v.Applied != loader.No || v.Class != loader.ClassTakenOver {
		f.Errorf("verdict %+v of a run that is %s", v, state)
	}
}

// A process that comes back after another one has taken its run over puts nothing in: neither a batch that is in, nor
// one that is not.
func takeover(f *fixture) {
	if f.can.Claims == nil || f.Contract.Dedup != loader.DedupTx {
		f.Skip("the loader keeps no claims")
	}
	s, in := f.session(), f.batch(0)
	f.loads(s, in)
	other := f.takes(f.run)
	f.isTakenOver(s, f.batch(1), loader.RunOpen)
	f.isTakenOver(s, in, loader.RunOpen)
	f.isTakenOver(f.session(), f.batch(2), loader.RunOpen)
	if err := f.can.Claims.Settle(f.ctx, loader.RunProven, loader.KeyRange{}); !errors.As(err, new(*loader.TakenOverError)) {
		f.Errorf("a run that was taken over is proven: %v", err)
	}
	session, err := other.Session(f.ctx, f.Contract)
	f.must(err, "session of the other process")
	defer func() { _ = session.Close() }()
	f.reloads(session, in)
	next := f.batch(1)
	f.loads(session, next)
	f.holds(in, next)
	f.claims(0, 1)
}

// What is counted does not change: a run that is closed takes no batch, not even of its own process, until it is taken
// again.
func closed(f *fixture) {
	claims := f.can.Claims
	if claims == nil || f.Contract.Dedup != loader.DedupTx {
		f.Skip("the loader keeps no claims")
	}
	s, in := f.session(), f.batch(0)
	f.loads(s, in)
	f.must(claims.Settle(f.ctx, loader.RunClosed, loader.KeyRange{Last: 2*f.Contract.BatchRows - 1}), "close")
	f.isTakenOver(s, f.batch(1), loader.RunClosed)
	f.must(claims.Settle(f.ctx, loader.RunProven, loader.KeyRange{Last: 2*f.Contract.BatchRows - 1}), "prove")
	f.isTakenOver(s, f.batch(1), loader.RunProven)
	f.holds(in)

	again := f.takes(f.run)
	session, err := again.Session(f.ctx, f.Contract)
	f.must(err, "session of the resumed run")
	defer func() { _ = session.Close() }()
	next := f.batch(1)
	f.loads(session, next)
	f.holds(in, next)
}

func reserve(f *fixture) {
	if f.can.Claims == nil {
		f.Skip("the loader keeps no rows of runs")
	}
	there := f.batch(0)
	f.puts(there)
	reserve := func(first, rows, last int64) (loader.Claims, int64, error) {
		claims := loader.FeaturesOf(f.open(f.anotherRun("r"))).Claims
		first, err := claims.Reserve(f.ctx, first, rows, last)
		return claims, first, err
	}
	_, first, err := reserve(-1, 1000, math.MaxInt64)
	f.must(err, "reserve")
	if first <= there.Last() {
		f.Errorf("reserved from %d on, but rows up to %d are there", first, there.Last())
	}
	_, second, err := reserve(-1, 1000, math.MaxInt64)
	f.must(err, "reserve")
	if second < first+1000 && first < second+1000 {
		f.Errorf("two runs got the overlapping ranges from %d and %d on", first, second)
	}
	if _, _, err := reserve(first+999, 2, math.MaxInt64); !errors.As(err, new(*loader.BusyError)) {
		f.Errorf("a run got keys that another one has: %v", err)
	}

	// Two processes begin a run at once: the second one takes the place of the first, which is told so.
	twice := f.anotherRun("twice")
	one, two := loader.FeaturesOf(f.openShard(twice)).Claims, loader.FeaturesOf(f.openShard(twice)).Claims
	from, err := two.Reserve(f.ctx, -1, 1000, math.MaxInt64)
	f.must(err, "reserve")
	if _, err := one.Reserve(f.ctx, from, 1000, math.MaxInt64); !errors.As(err, new(*loader.TakenOverError)) {
		f.Errorf("a process that another one of its run has replaced got keys: %v", err)
	}

	// What does not fit is refused, and leaves nothing behind; what just fits is not.
	next := from + 1000
	full := (*loader.RangeError)(nil)
	if _, _, err := reserve(-1, 1000, next+998); !errors.As(err, &full) || *full != (loader.RangeError{First: next, Rows: 1000, Last: next + 998}) {
		f.Errorf("reserved 1000 rows up to %d, of which only 999 are free: %v", next+998, err)
	}
	last, got, err := reserve(-1, 1000, next+999)
	if err != nil || got != next {
		f.Errorf("reserved from %d on and not from %d: %v", got, next, err)
	}
	f.must(last.GiveBack(f.ctx), "give back")
	if _, got, err := reserve(-1, 1000, next+999); err != nil || got != next {
		f.Errorf("reserved from %d on and not from %d, behind a range that was given back: %v", got, next, err)
	}
}

func stored(f *fixture) {
	s := f.can.Sizer
	if s == nil {
		f.Skip("the loader is no Sizer")
	}
	b := f.batch(0)
	f.puts(b)
	n, err := s.Stored(f.ctx)
	f.must(err, "stored")
	if n <= 0 {
		f.Errorf("a table of %d rows takes %d bytes", b.Rows, n)
	}
}
