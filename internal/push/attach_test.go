package push_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// A process of the same shard that has the folder is waited for, also if it makes it at the last moment.
func TestShardWhoseFolderIsTaken(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	p.succeeds(nightly + " --shard 0/2")
	p.forgetFolder()

	taken := false
	p.on("take", func(context.Context) error {
		if taken {
			return nil
		}
		taken = true
		record := runlog.Record{Run: "nightly", Started: time.Now()}
		record.Plan.Shard = p.job(nightly + " --shard 1/2").Config.Shard
		l, err := runlog.Create(p.state, record)
		require.NoError(t, err)
		time.AfterFunc(100*time.Millisecond, func() { _ = l.Close() })
		return nil
	})
	p.succeeds(nightly + " --shard 1/2")
	require.True(t, taken)
	p.exact(0, 1000)
}

// The server is asked once what would stop the push, however often the run is begun.
func TestChecksAreMadeOnce(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	asked := p.checks(checking{})
	busy := loader.Busy(&loader.BusyError{Table: "memory", Row: loader.RunRow{Name: "other", Owner: "somebody"}})
	p.failFirst("prepare", nil, busy)
	p.succeeds(nightly)
	require.Len(t, *asked, 1)
}

// Who sends nothing needs no memory for batches: a run of a large machine is verified and forgotten by a small one.
func TestMemoryOfWhoSendsNothing(t *testing.T) {
	const little = " --memory 1KiB"
	p := newFixture(t)
	p.succeeds(small)
	run := p.run()
	p.succeeds("--resume " + run + little)
	r, err := push.Verify(t.Context(), p.job("--resume "+run+little))
	require.NoError(t, err)
	require.True(t, r.Verify.OK)
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run+little)))
}

// A version that makes other batches of a run than the one that has begun it does not go on with it.
func TestRunOfAnotherVersion(t *testing.T) {
	p := newFixture(t)
	run := p.kill(small, 7)
	l, err := runlog.Open(p.state, run, func(event.Event) {}, nil)
	require.NoError(t, err)
	r := l.Record()
	r.Plan.EncodedRowBytes++
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())
	p.fails("--resume "+run, report.PreflightFailed, "was begun by another version of terapush")
}

// What a probe finds of the table does not change what the database is asked: the run that was begun there ends there, too.
func TestRunOfATableThatKeepsRows(t *testing.T) {
	p := newFixture(t)
	p.memory.Unprovable = "MyISAM keeps what was rolled back"
	p.succeeds(small + " --create never")
	require.Equal(t, []loader.RunState{loader.RunProven}, p.states(p.run()))
}

// The rows that a server has not taken are told by every proof, and not only by that of the push.
func TestVerifyOfARunWithMissingRows(t *testing.T) {
	p := newFixture(t)
	p.memory.Script = oddMissing
	p.fails(small+" --delivery at-least-once --verify none --workers 1", report.Rejected, "10 rows too few or too many")
	p.memory.Script = nil
	r, err := push.Verify(t.Context(), p.job("--resume "+p.run()))
	require.Error(t, err)
	require.False(t, r.Verify.OK)
	require.NotEqual(t, report.OK, push.OutcomeOf(err))
}
