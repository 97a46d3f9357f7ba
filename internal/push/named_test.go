package push_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

const (
	nightly = "--run-id nightly --rows 1000 --payload-bytes 16 --batch-rows 10 --workers 2 --verify count"
	atOnce  = nightly + " --retry-for 0s" // waits for nobody
)

// Shards send what one process would have sent, and whoever comes again, with an empty disk too, finds its part done. The
// claims stay for that until the run is forgotten.
func TestShards(t *testing.T) {
	p := newFixture(t)
	for i := range 3 {
		r := p.succeeds(fmt.Sprintf("%s --shard %d/3", nightly, i))
		require.Equal(t, "nightly", r.Run.ID)
		require.Equal(t, &report.Shard{Index: int64(i), Count: 3, FirstKey: int64([]int{0, 340, 670}[i]), Rows: int64([]int{340, 330, 330}[i])}, r.Run.Shard)
		require.Equal(t, []any{"ack", true, r.Run.Shard.Rows}, []any{r.Verify.Mode, r.Verify.OK, r.Verify.FoundRows})
	}
	p.exact(0, 1000)
	require.Equal(t, 100, p.claims("nightly"))
	r, err := push.Verify(t.Context(), p.job(nightly+" --verify none"))
	require.NoError(t, err)
	require.Equal(t, []any{"count", true, int64(1000)}, []any{r.Verify.Mode, r.Verify.OK, r.Verify.FoundRows})
	require.Zero(t, p.succeeds(nightly+" --shard 1/3").Result.Attempts)
	p.exact(0, 1000)
	require.NoError(t, push.Forget(t.Context(), p.job("--resume nightly")))
	require.Zero(t, p.claims("nightly"))
	left, err := os.ReadDir(p.state)
	require.NoError(t, err)
	require.Empty(t, left, "folders of shards, too")
}

// A process that is killed goes on with its folder or without; what it has sent is not sent again.
func TestShardKilled(t *testing.T) {
	for _, disk := range []bool{true, false} {
		p := newFixture(t)
		p.succeeds(nightly + " --shard 0/2")
		p.forgetFolder()
		p.kill(nightly+" --shard 1/2", 70)
		if !disk {
			p.forgetFolder()
		}
		r := p.succeeds(nightly + " --shard 1/2")
		require.True(t, r.Run.Resumed)
		require.Less(t, r.Result.Attempts, int64(35))
		p.exact(0, 1000)
	}
}

// The first shard begins the run, and others wait for it; a second process of the same shard waits for the first.
func TestShardsWait(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	p.fails(atOnce+" --shard 1/2", report.Failed, "neither its first shard nor terapush prepare has begun it")
	began := false
	p.then("prepare", func() {
		if !began {
			began = true
			p.succeeds(nightly + " --shard 0/2 --state-dir " + t.TempDir())
		}
	})
	p.succeeds(nightly + " --shard 1/2")
	p.exact(0, 1000)

	p = newFixture(t)
	busy := loader.Busy(&loader.BusyError{Table: "memory", Row: loader.RunRow{Name: "other", Owner: "somebody"}})
	p.failFirst("prepare", busy, busy)
	p.succeeds(nightly)
	require.Contains(t, p.log.String(), "waiting for run nightly")
	p.failOn("prepare", busy)
	p.fails(atOnce, report.Failed, "waiting for run nightly, 0s: prepare: table memory belongs to run other of somebody")
}

// A server that is away when a process starts is waited for: a platform takes a refused process for one with wrong flags.
func TestNamedRunWaitsForTheServer(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	p.failFirst("open", loadertest.ErrConnection, loadertest.ErrConnection)
	p.fails(small, report.PreflightFailed, "connection reset")
	p.succeeds(nightly)
}

// What would make other rows or batches is refused, and so is what could not be told apart.
func TestShardsAgree(t *testing.T) {
	p := newFixture(t)
	p.succeeds(nightly + " --shard 0/2")
	p.forgetFolder()
	for _, other := range []string{"--batch-rows 20", "--rows 1010", "--seed 2", "--first-key 5", "--payload-kind text"} {
		p.fails(atOnce+" --shard 1/2 "+other, push.Usage, "run nightly was begun with other rows or another table")
		p.forgetFolder()
	}
	for args, says := range map[string]string{
		"--shard 0/2 --rows 10":                 "find each other by --run-id",
		nightly + " --create recreate":          "terapush prepare does it once",
		"--run-id nightly --duration 1s":        "has no number of rows",
		"--run-id 20260101-000000-abcdef":       "begins with a letter",
		"--run-id other --rows 10 --shard 0/20": "fewer shards, or smaller batches",
	} {
		p.fails(args, push.Usage, says)
	}
}

// Claims without rows are of a table that was emptied or made again: nothing is sent, and nothing said to be there.
func TestNamedRunWhoseTableIsEmpty(t *testing.T) {
	p := newFixture(t)
	p.succeeds(nightly + " --shard 0/2")
	p.memory.Truncate()
	r := p.fails(nightly+" --shard 0/2", report.PreflightFailed, "run nightly has claims and table memory has no rows")
	require.False(t, r.Run.Resumable)
	_, err := push.Verify(t.Context(), p.job(nightly))
	require.Equal(t, report.VerificationFailed, push.OutcomeOf(err))
}

// A name is forgotten wherever its processes are, and also where the table is gone or another one.
func TestForgetNamed(t *testing.T) {
	p := newFixture(t)
	p.succeeds(nightly)
	p.fails("--resume nightly", push.Usage, "run nightly is continued with --run-id nightly")
	p.failFirst("prepare", errors.New("the table is of another dataset"))
	require.ErrorContains(t, push.Forget(t.Context(), p.job("--resume nightly")), "another dataset")
	require.NoError(t, push.Forget(t.Context(), p.job("--resume nightly")))
	require.Zero(t, p.claims("nightly"))
	require.ErrorIs(t, push.Forget(t.Context(), p.job("--resume other")), loader.ErrUnknownRun)
}

// Rows of others are refused by the process that begins the run, and by no other.
func TestNamedRunIntoATableWithRows(t *testing.T) {
	p := newFixture(t)
	p.succeeds("--rows 10 --first-key 5000")
	p.fails(atOnce, report.PreflightFailed, "holds rows")
	require.EqualValues(t, 5010, p.succeeds(nightly+" --append --shard 0/2").Plan.FirstKey)
	require.EqualValues(t, 5010, p.succeeds(nightly+" --append --shard 1/2").Plan.FirstKey)
}

// The table is made, emptied or dropped once, however often prepare is called.
func TestPrepareNamed(t *testing.T) {
	p := newFixture(t)
	p.succeeds("--rows 10")
	p.forgetFolder()
	require.NoError(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")))
	require.Empty(t, p.memory.Applied())
	p.succeeds(nightly + " --shard 1/2")
	require.NoError(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")))
	require.Len(t, p.memory.Applied(), 50)
	require.Contains(t, p.log.String(), "run nightly is announced already: 1000 rows in 100 batches")
	p = newFixture(t)
	p.on("prepare", func(context.Context) error { // the first shard comes between the look and the hold
		if len(p.prepared) == 1 {
			p.hook = nil
			p.succeeds(nightly + " --shard 0/2")
			return loader.ErrBegun
		}
		return nil
	})
	require.NoError(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")))
	require.Len(t, p.memory.Applied(), 50)
	p.failOn("prepare", errors.New("it is down"))
	require.ErrorContains(t, push.Prepare(t.Context(), p.job(nightly)), "it is down")
}

// The first shard and prepare may come at the same time. Whoever comes later takes the place of one that has not announced the run,
// and that one goes on with it.
func TestBegunMeanwhile(t *testing.T) {
	prepare := func(p *fixture) { require.NoError(t, push.Prepare(t.Context(), p.job(nightly))) }
	shard := func(p *fixture) { p.succeeds(nightly + " --shard 0/2") }
	for name, both := range map[string][2]func(p *fixture){"shard first": {shard, prepare}, "prepare first": {prepare, shard}} {
		for _, op := range []string{"after prepare", "reserve", "probe", "announce"} {
			t.Run(name+", "+op, func(t *testing.T) {
				t.Parallel()
				p := newFixture(t)
				p.on(op, func(context.Context) error {
					if len(p.memory.Runs()) == 0 { // it has looked whether the run is announced
						return nil
					}
					p.hook = nil
					both[1](p)
					return nil
				})
				both[0](p)
				require.Nil(t, p.hook)
				p.succeeds(nightly + " --shard 0/2")
				p.succeeds(nightly + " --shard 1/2")
				p.exact(0, 1000)
			})
		}
	}
}
