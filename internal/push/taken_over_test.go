package push_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// copied is the state folder on another disk.
func (p *fixture) copied() string {
	p.Helper()
	dir := filepath.Join(p.TempDir(), "state")
	require.NoError(p, os.CopyFS(dir, os.DirFS(p.state)))
	return dir
}

// forgets is the forget command with another state folder, which does not know the run.
func (p *fixture) forgets(run string) error {
	j := p.job("--state-dir " + p.TempDir())
	j.Config.Resume = run
	return push.Forget(p.Context(), j)
}

// A process that was frozen while another one finished its run, on a copy of its folder, stores nothing when it awakes, says
// by whom it was replaced, and leaves alone what may be the other's.
func TestStaleProcess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		new    func(*testing.T) *fixture
		args   string
		op     string
		number int64
	}{
		"in a batch":            {newFixture, small, "load", 7},
		"in the last batch":     {newFixture, small, "load", 19},
		"behind a batch":        {newFixture, small, "after load", 7},
		"before it closes":      {newFixture, small, "settle closed", 0},
		"while it counts":       {newFixture, small, "after count", 0},
		"when it has counted":   {newFixture, small, "settle proven", 0},
		"before a commit":       {newStagedTx, grouped, "commit", 2},
		"behind a commit":       {newStagedTx, grouped, "after commit", 2},
		"in a named run":        {newFixture, nightly, "load", 7},
		"in a shard":            {newFixture, nightly + " --shard 0/2", "load", 7},
		"behind a shard":        {newFixture, nightly + " --shard 0/2", "settle closed", 0},
		"before an upload":      {newStagedTx, grouped, "load", 7},
		"an append, in a batch": {newFixture, small + " --append", "load", 7},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.new(t)
			var applied []loader.Ref
			var other atomic.Bool // is at work, or was
			var ended atomic.Bool
			var tidied atomic.Int64
			replace := func() {
				again := "--resume " + p.run()
				if p.record().Run == "nightly" {
					again = c.args
				}
				p.succeeds(again + " --state-dir " + p.copied())
				applied = p.memory.Applied()
				ended.Store(true)
			}
			p.hook = func(_ context.Context, op string, number int64) error {
				switch {
				case op == c.op && number == c.number && other.CompareAndSwap(false, true):
					replace()
				case ended.Load() && (op == "discard" || op == "objects"):
					tidied.Add(1)
				}
				return nil
			}
			r := p.fails(c.args+" --workers 1", report.TakenOver, " was closed ")
			require.False(t, r.Run.Resumable)
			require.Equal(t, applied, p.memory.Applied())
			committed := int64(0) // by itself, whose objects it may remove
			if c.op == "after commit" {
				committed = 1
			}
			require.Equal(t, committed, tidied.Load())
			require.NotEqual(t, runlog.Verified, p.record().Stage)
		})
	}
}

func newStagedTx(t *testing.T) *fixture { return newStaged(t, loader.DedupTx) }

// The folder of a run that was killed is resumed twice, at the same time.
func TestTwoResumes(t *testing.T) {
	p := newFixture(t)
	run := p.kill(small, 5)
	other := p.copied()
	p.at("load", 9, func() error {
		p.hook = nil
		p.succeeds("--resume " + run + " --state-dir " + other)
		return nil
	})
	p.fails("--resume "+run+" --workers 1", report.TakenOver, "was closed and proven")
	p.exact(0, 195)
}

// Neither a proof nor a resume looks at a database that does not know the run, whatever rows are in it.
func TestRunOfAnotherDatabase(t *testing.T) {
	p := newFixture(t)
	proven := p.succeeds(small).Run.ID
	open := newFixture(t)
	killed := open.kill(small, 5)
	other := &loadertest.Memory{Identity: "table-1"}
	p.memory, open.memory = other, other
	p.succeeds(small + " --state-dir " + t.TempDir())
	_, err := push.Verify(t.Context(), p.job("--resume "+proven))
	require.ErrorIs(t, err, loader.ErrUnknownRun)
	require.NotEqual(t, report.VerificationFailed, push.OutcomeOf(err))
	p.fails("--resume "+proven, report.PreflightFailed, loader.ErrUnknownRun.Error())
	open.fails("--resume "+killed, report.PreflightFailed, loader.ErrUnknownRun.Error())
	require.Len(t, other.Applied(), 20)

	require.ErrorIs(t, push.Forget(t.Context(), p.job("--resume "+proven)), loader.ErrUnknownRun)
	require.DirExists(t, filepath.Join(p.state, proven))
	require.ErrorIs(t, p.forgets(killed), loader.ErrUnknownRun)
}

// An open run is not proven, since its process may still write; one that was forgotten is neither proven nor resumed.
func TestVerifyOfAnOpenRun(t *testing.T) {
	p := newFixture(t)
	p.failOn("settle closed", errors.New("killed"))
	p.fails(small, report.Failed, "killed")
	p.hook = nil
	run := p.run()
	require.Equal(t, runlog.Loaded, p.record().Stage)
	_, err := push.Verify(t.Context(), p.job("--resume "+run))
	require.ErrorContains(t, err, "run "+run+" is open: ")
	require.ErrorContains(t, err, "finish it with push --resume "+run)

	// Opened by another process while it is counted, and closed again.
	p.succeeds("--resume " + run + " --state-dir " + p.copied())
	p.on("after count", func(context.Context) error {
		p.hook = nil
		p.succeeds("--resume " + run + " --state-dir " + p.copied())
		return nil
	})
	_, err = push.Verify(t.Context(), p.job("--resume "+run))
	require.ErrorContains(t, err, "was opened while it was counted: verify it again")
	p.verifies(run)

	require.NoError(t, p.forgets(run))
	_, err = push.Verify(t.Context(), p.job("--resume "+run))
	require.ErrorContains(t, err, "run "+run+" was forgotten by ")
	require.Equal(t, report.TakenOver, push.OutcomeOf(err))
	p.fails("--resume "+run, report.TakenOver, "was forgotten by")
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)), "its folder goes all the same")
	require.NoDirExists(t, filepath.Join(p.state, run))
}

// A run that lives on another machine is forgotten: it stores nothing more, and another may have the table.
func TestForgetOfALiveRun(t *testing.T) {
	p := newFixture(t)
	p.at("load", 7, func() error {
		p.hook = nil
		require.NoError(t, p.forgets(p.run()))
		require.Zero(t, p.claims(p.run()))
		return nil
	})
	r := p.fails(small+" --workers 1", report.TakenOver, "was forgotten by ")
	require.False(t, r.Run.Resumable)
	p.exact(0, 70)
	p.succeeds(small + " --create recreate --state-dir " + t.TempDir())
	p.fails("--resume "+r.Run.ID, report.TakenOver, " was ")
	p.exact(0, 195)
}

// A name is free when its run is forgotten: for prepare, and for a push of the whole. Shards that are late do not begin it
// anew, and a process that is still at work belongs to the run that was forgotten.
func TestNameIsFreeAgain(t *testing.T) {
	for name, again := range map[string]func(p *fixture){
		"prepare": func(p *fixture) {
			require.NoError(p, push.Prepare(p.Context(), p.job(nightly+" --create truncate")))
			p.succeeds(nightly + " --shard 1/2 --state-dir " + p.TempDir())
			p.succeeds(nightly + " --shard 0/2 --state-dir " + p.TempDir())
		},
		"the whole": func(p *fixture) {
			p.memory.Truncate()
			p.succeeds(nightly + " --state-dir " + p.TempDir())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			p.succeeds(nightly + " --shard 0/2")
			p.at("load", 70, func() error {
				p.hook = nil
				require.ErrorIs(t, push.Forget(t.Context(), p.job("--resume nightly")), runlog.ErrBusy, "it is on this machine")
				require.NoError(t, p.forgets("nightly"))
				for _, shard := range []string{" --shard 0/2", " --shard 1/2"} {
					p.fails(atOnce+shard+" --state-dir "+t.TempDir(), report.TakenOver, "terapush prepare begins it anew")
				}
				again(p)
				p.exact(0, 1000)
				return nil
			})
			p.fails(nightly+" --shard 1/2 --workers 1", report.TakenOver, "run nightly")
			p.exact(0, 1000)
			_, err := push.Verify(t.Context(), p.job(nightly))
			require.NoError(t, err)
		})
	}
}

// The proof of a named run closes it: a process that is still at work, on batches that are in, adds nothing.
func TestProofClosesANamedRun(t *testing.T) {
	p := newFixture(t)
	p.succeeds(nightly + " --shard 0/2")
	require.Equal(t, []loader.RunState{loader.RunClosed, loader.RunOpen}, p.states("nightly"))
	_, err := push.Verify(t.Context(), p.job(nightly))
	require.Equal(t, report.VerificationFailed, push.OutcomeOf(err), err)
	require.Equal(t, []loader.RunState{loader.RunClosed, loader.RunOpen}, p.states("nightly"), "its shards go on")
	p.at("settle closed", 0, func() error {
		p.hook = nil
		_, err := push.Verify(t.Context(), p.job(nightly))
		return err
	})
	p.fails(nightly+" --shard 1/2", report.TakenOver, "was closed and proven")
	require.Equal(t, []loader.RunState{loader.RunProven, loader.RunProven}, p.states("nightly"))
}

// Another number of shards takes over what the first ones have begun, and stops those.
func TestOtherShards(t *testing.T) {
	p := newFixture(t)
	p.succeeds(nightly + " --shard 0/2")
	p.at("load", 70, func() error {
		p.hook = nil
		for _, shard := range []string{"2/3", "0/3", "1/3"} {
			p.succeeds(nightly + " --shard " + shard + " --state-dir " + t.TempDir())
		}
		return nil
	})
	p.fails(nightly+" --shard 1/2 --workers 1", report.TakenOver, "run nightly")
	require.Len(t, p.states("nightly"), 3)
	p.exact(0, 1000)
	p.succeeds(nightly)
	require.Equal(t, []loader.RunState{loader.RunProven}, p.states("nightly"))
}

// Of a run without a row its record alone says where it was: another database is refused, another host is not, if the table is
// the same one.
func TestRunWithoutARowElsewhere(t *testing.T) {
	t.Parallel()
	const refused = "was pushed into memory://u@h/d, and nothing says that "
	for _, c := range []struct{ target, identity, says string }{
		{"memory://other:pw@h:5432/d?x=y", "table-1", ""},
		{"memory://u@h2/d", "table-1", ""},
		{"memory://u@h2/d", "table-2", refused + "memory://u@h2/d is the same database: give that target"},
		{"memory://u@h/prod", "table-1", refused},
	} {
		p := newLabelled(t)
		p.wrap = func(h hooked) loader.Loader { return bare{h, h, h} }
		run := p.killOnTheWay(small, 7)
		p.memory.Script = nil
		p.target, p.memory.Identity = c.target, c.identity
		if c.says != "" {
			p.fails("--resume "+run, push.Usage, c.says)
			p.target, p.memory.Identity = "memory://u@h/d", "table-1"
		}
		p.succeeds("--resume " + run)
		p.exact(0, 195)
		p.target, p.memory.Identity = c.target, c.identity
		_, err := push.Verify(t.Context(), p.job("--resume "+run))
		if c.says == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, refused)
		require.Equal(t, push.Usage, push.OutcomeOf(err))
		p.fails("--resume "+run, push.Usage, refused)
	}

	p, _ := newStore(t)
	p.memory.Identity = "" // it says nothing of itself
	run := p.succeeds(small).Run.ID
	p.target = "memory://u@h2/d"
	r := p.verifies(run)
	require.Equal(t, []string{"run " + run + " was pushed into memory://u@h/d: nothing shows whether memory://u@h2/d is the same database"},
		r.Warnings)
}

// What was proven long ago is forgotten, and nothing else: neither the claims of open runs nor of closed ones.
func TestForgetOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		elsewhere := func() string { return " --state-dir " + t.TempDir() }
		old := p.succeeds(small + " --append").Run.ID
		shard := nightly + " --append --shard 0/2" + elsewhere()
		p.succeeds(shard)
		closed := p.succeeds(small + " --append --verify none" + elsewhere()).Run.ID
		time.Sleep(8 * 24 * time.Hour)
		late := p.succeeds(small + " --append" + elsewhere()).Run.ID
		older := func(age time.Duration) {
			require.NoError(t, push.ForgetOlder(t.Context(), p.job(""), age))
		}
		older(9 * 24 * time.Hour)
		require.Equal(t, 20, p.claims(old))
		older(7 * 24 * time.Hour)
		require.Contains(t, p.log.String(), "20 claims of 1 runs removed")
		require.Zero(t, p.claims(old))
		require.Equal(t, []int{50, 20, 20}, []int{p.claims("nightly"), p.claims(closed), p.claims(late)})
		require.Equal(t, []loader.RunState{loader.RunForgotten}, p.states(old))
		require.Equal(t, []loader.RunState{loader.RunClosed}, p.states(closed))
		time.Sleep(time.Second)
		older(time.Second)
		require.Zero(t, p.claims(late))
		require.Equal(t, []int{50, 20}, []int{p.claims("nightly"), p.claims(closed)})
	})
}
