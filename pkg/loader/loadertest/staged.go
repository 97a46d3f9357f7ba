package loadertest

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The cases of staged contracts: batches are stored, and a group of them is committed as one.
func stagedCases() []testCase {
	return []testCase{
		{name: "stored, committed, discarded", staged: true, run: storedAndCommitted},
		{name: "same object again", staged: true, run: sameObjectAgain},
		{name: "same group again", staged: true, dedup: true, run: sameGroupAgain},
		{name: "short last group", staged: true, run: shortGroup},
		{name: "an object is gone before the commit", staged: true, run: objectGone},
		{name: "cancelled in the upload", staged: true, faults: true, run: cancelledInUpload},
		{name: "cut in the upload", staged: true, faults: true, run: cutInUpload},
		{name: "cut before the answer to the commit", staged: true, dedup: true, faults: true, commit: true, run: cutBeforeCommitted},
		{name: "another process commits", staged: true, run: anotherProcessCommits},
		{name: "forget the claims of groups", staged: true, dedup: true, run: forgetGroups},
	}
}

func storedAndCommitted(f *fixture) {
	a, b := f.batch(0), f.batch(1)
	s := f.session()
	f.loads(s, a)
	f.loads(s, b)
	f.lies(a, b)
	f.holds()
	f.commits(f.loader, f.group(a, b))
	f.holds(a, b)
	f.fetches(a, b)
	f.discards(f.group(a, b))
	f.lies()
	f.discards(f.group(a, b)) // what is gone already is no error
	f.holds(a, b)
}

// An upload whose answer was lost is sent again, without a question.
func sameObjectAgain(f *fixture) {
	a := f.batch(0)
	f.loads(f.session(), a)
	f.loads(f.session(), f.batch(0))
	f.lies(a)
	f.commits(f.loader, f.group(a))
	f.holds(a)
}

func sameGroupAgain(f *fixture) {
	a, b := f.twoStored()
	g := f.group(a, b)
	f.resolvedRef(f.loader, f.asked(g), loader.No)
	f.commits(f.loader, g)
	f.resolvedRef(f.loader, f.asked(g), loader.Yes)
	f.recommits(f.loader, g)
	f.holds(a, b)
	f.groupClaimed(g)
}

func shortGroup(f *fixture) {
	a := f.batch(0)
	f.loads(f.session(), a)
	f.commits(f.loader, f.group(a))
	f.holds(a)
}

// A group goes in whole or not at all, so that it can be sent again when its object is back.
func objectGone(f *fixture) {
	a, b := f.twoStored()
	f.discards(f.group(b))
	g := f.group(a, b)
	if v := f.failsToCommit(g); v.Applied == loader.Yes || v.Class == "" {
		f.Errorf("verdict %+v for a group that lacks an object", v)
	}
	f.holds()
	if f.Contract.Dedup == loader.DedupKey {
		return // a label that has failed may be spent
	}
	f.loads(f.session(), f.batch(1))
	f.commits(f.loader, g)
	f.holds(a, b)
}

func cancelledInUpload(f *fixture) {
	b, s := f.batch(0), f.session()
	f.cancelled(f.faults.StallAfter(half(b)), s, b)
	f.uploadsAgain(b)
}

func cutInUpload(f *fixture) {
	b, s := f.batch(0), f.session()
	f.faults.CutAfter(half(b))
	if v := f.fails(f.ctx, s, b); !v.Retry {
		f.Errorf("verdict %+v for a connection cut in the upload, want retry", v)
	}
	f.uploadsAgain(b)
}

func (f *fixture) uploadsAgain(b *batch.Batch) {
	f.Helper()
	f.loads(f.session(), b)
	f.lies(b)
	f.commits(f.loader, f.group(b))
	f.holds(b)
}

func cutBeforeCommitted(f *fixture) {
	a, b := f.twoStored()
	g := f.group(a, b)
	f.faults.CutAnswer(f.Commit)
	if v := f.failsToCommit(g); v.Applied != loader.Unknown || v.Class == "" {
		f.Errorf("verdict %+v for a lost answer to the commit, want unknown", v)
	}
	f.resolvedRef(f.loader, f.asked(g), loader.Yes)
	f.recommits(f.loader, g)
	f.holds(a, b)
	f.groupClaimed(g)
}

// The process that stored the objects is gone, and another one goes on.
func anotherProcessCommits(f *fixture) {
	a, b := f.twoStored()
	other := f.takes(f.run)
	f.commits(other, f.group(a, b))
	f.holds(a, b)
	f.must(f.committer(other).Discard(f.ctx, f.group(a, b)), "discard")
	f.lies()
}

func forgetGroups(f *fixture) {
	c := f.can.Claims
	if c == nil {
		f.Skip("the loader keeps no claims")
	}
	a, b := f.twoStored()
	g := f.group(a, b)
	f.commits(f.loader, g)
	f.forgets(c, f.run)
	f.claims()
	f.holds(a, b)
}

// twoStored puts two batches into the store.
func (f *fixture) twoStored() (a, b *batch.Batch) {
	f.Helper()
	a, b = f.batch(0), f.batch(1)
	s := f.session()
	f.loads(s, a)
	f.loads(s, b)
	return a, b
}

// group returns the commit group of the batches.
func (f *fixture) group(members ...*batch.Batch) loader.Group {
	first := members[0]
	g := loader.Group{Ref: loader.Ref{
		ID: batch.ID{Run: first.ID.Run, Number: first.ID.Number / f.Contract.GroupBatches}, First: first.First,
	}}
	for _, b := range members {
		g.Rows += b.Rows
		g.Members = append(g.Members, loader.RefOf(b))
	}
	return g
}

// asked returns the group as the engine would name it to Resolve.
func (f *fixture) asked(g loader.Group) loader.Ref {
	return f.ref(&batch.Batch{ID: g.ID, First: g.First, Rows: g.Rows})
}

func (f *fixture) committer(l loader.Loader) loader.Committer {
	f.Helper()
	c := loader.FeaturesOf(l).Committer
	if c == nil {
		f.Fatal("the contract is staged but the loader is no Committer")
	}
	return c
}

func (f *fixture) commit(l loader.Loader, g loader.Group) loader.Ack {
	f.Helper()
	g.Attempt = f.attempt(g.ID)
	ack, err := f.committer(l).Commit(f.ctx, g)
	f.must(err, "commit")
	if ack.Rows != g.Rows || ack.Stored {
		f.Fatalf("ack %+v for a group of %d rows", ack, g.Rows)
	}
	return ack
}

// commits commits the group, which must go in now.
func (f *fixture) commits(l loader.Loader, g loader.Group) {
	f.Helper()
	if ack := f.commit(l, g); ack.AlreadyApplied {
		f.Fatalf("ack %+v for a group that was not in", ack)
	}
}

// recommits commits a group that is in already.
func (f *fixture) recommits(l loader.Loader, g loader.Group) {
	f.Helper()
	if ack := f.commit(l, g); !ack.AlreadyApplied {
		f.Fatalf("ack %+v for a group that is in already", ack)
	}
}

// failsToCommit commits a group, which must not succeed, and returns what is made of its error.
func (f *fixture) failsToCommit(g loader.Group) loader.Verdict {
	f.Helper()
	g.Attempt = f.attempt(g.ID)
	ack, err := f.committer(f.loader).Commit(f.ctx, g)
	if err == nil {
		f.Fatalf("commit acknowledged %+v where it had to fail", ack)
	}
	f.Logf("commit: %v", err)
	return f.Driver.Classify(err)
}

func (f *fixture) discards(g loader.Group) {
	f.Helper()
	f.must(f.committer(f.loader).Discard(f.ctx, g), "discard")
}

// groupClaimed checks that the group, and no other one, is claimed.
func (f *fixture) groupClaimed(g loader.Group) {
	f.Helper()
	if f.Contract.Dedup == loader.DedupTx {
		f.claimed(map[int64]int64{g.ID.Number: g.Rows})
	}
}
