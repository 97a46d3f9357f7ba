package push_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

func TestVerifyCommand(t *testing.T) {
	p := newPlace(t)
	run := p.succeeds(small + " --verify none").Run.ID
	require.Equal(t, 20, p.claims(run), "nothing is proven, so the claims stay")
	record, err := os.ReadFile(filepath.Join(p.state, run, "run.json"))
	require.NoError(t, err)

	p.failOn("forget", errors.New("verify must change nothing"))
	r, err := push.Verify(t.Context(), p.job("--resume "+run))
	require.NoError(t, err)
	require.True(t, r.Verify.OK)
	require.Equal(t, "count", r.Verify.Mode, "what the run was content with is no proof")
	require.Equal(t, report.OK, r.Result.Outcome)
	require.Equal(t, 20, p.claims(run))
	after, err := os.ReadFile(filepath.Join(p.state, run, "run.json"))
	require.NoError(t, err)
	require.Equal(t, string(record), string(after))

	p.memory.Crash()
	r, err = push.Verify(t.Context(), p.job("--resume "+run))
	require.Equal(t, report.VerificationFailed, push.OutcomeOf(err))
	require.EqualValues(t, 20, r.Verify.BadCount)
}

func TestVerifyCommandOfARunThatIsNotLoaded(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small, 5)
	_, err := push.Verify(t.Context(), p.job("--resume "+run))
	require.ErrorContains(t, err, "is not loaded to its end: go on with push --resume first")
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(err))
}

func TestForget(t *testing.T) {
	p := newPlace(t)
	run := p.succeeds(small + " --verify ack --append").Run.ID
	require.Equal(t, 20, p.claims(run))

	p.failOn("forget", errors.New("the server is down"))
	require.ErrorContains(t, push.Forget(t.Context(), p.job("--resume "+run)), "removing the claims of run "+run+": the server is down")
	require.DirExists(t, filepath.Join(p.state, run), "who forgets the folder could not ask again")

	p.failOn("", nil)
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
	require.Zero(t, p.claims(run))
	require.NoDirExists(t, filepath.Join(p.state, run))
}

// Who has lost the state folder can remove the claims all the same, and the keys that were set aside.
func TestForgetWithoutTheFolder(t *testing.T) {
	p := newPlace(t)
	mine, other := p.succeeds(small+" --verify ack --append").Run.ID, ""
	require.NoError(t, os.RemoveAll(p.state))
	other = p.succeeds(small + " --verify ack --append").Run.ID
	forget := func(run string) error {
		j := p.job(small) // there is no record to restore flags from
		j.Config.Resume = run
		return push.Forget(t.Context(), j)
	}
	for _, run := range []string{"2026", "20261122-105429", mine + "a"} {
		err := forget(run)
		require.ErrorContains(t, err, "no run \""+run+"\"")
		require.ErrorContains(t, err, "ids look like 20")
		require.Equal(t, push.Usage, push.OutcomeOf(err))
	}
	p.failOn("forget", errors.New("the server is down"))
	require.ErrorContains(t, forget(mine), "removing the claims of run "+mine+": the server is down")

	p.failOn("", nil)
	require.NoError(t, forget(mine))
	require.Contains(t, p.log.String(), "21 rows of run "+mine+" removed from the claim table")
	require.Zero(t, p.claims(mine))
	require.Equal(t, 20, p.claims(other))
	require.NoError(t, forget(mine), "once more")
	require.Contains(t, p.log.String(), "0 rows of run "+mine)

	l, err := runlog.Open(p.state, other, func(event.Event) {})
	require.NoError(t, err)
	require.ErrorContains(t, forget(other), "another process is working on run "+other)
	record := filepath.Join(p.state, other, "run.json")
	require.NoError(t, os.Rename(record, record+".mine"))
	require.ErrorContains(t, forget(other), "another process is working on run "+other)
	require.Equal(t, 20, p.claims(other))
	require.NoError(t, l.Close())
	require.NoError(t, forget(other), "a folder without a record is no run")
	require.Zero(t, p.claims(other))
	require.NoDirExists(t, filepath.Dir(record))
}

// A staged method may leave more than claims behind, whatever its guarantee.
func TestForgetAsksAboutStagedRuns(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	run := p.succeeds(grouped).Run.ID
	p.failOn("forget", errors.New("the server is down"))
	require.ErrorContains(t, push.Forget(t.Context(), p.job("--resume "+run)), "the server is down")
	require.DirExists(t, filepath.Join(p.state, run))
}

// A back-end that stores objects for one method is not asked about them by another, and says of the store what all runs
// have in common, so that one who forgets many can say it once.
func TestForgetAsksTheStoreOfStagedRunsOnly(t *testing.T) {
	warned := func(p *place, args string) string {
		run := p.succeeds(args).Run.ID
		p.failOn("objects", errors.New("the store is down"))
		job := p.job("--resume " + run)
		var log strings.Builder
		job.Log = slog.New(slog.NewTextHandler(&log, nil))
		require.NoError(t, push.Forget(t.Context(), job))
		require.NotContains(t, log.String(), run)
		return log.String()
	}
	require.Empty(t, warned(newPlace(t), small))
	require.Contains(t, warned(newStaged(t, loader.DedupKey), grouped), "whether objects of the run are left in the object store is not known: the store is down")
}

// A run at least once has no claims, but one that appends has set its keys aside.
func TestReservationsAreForgotten(t *testing.T) {
	for _, forget := range []bool{false, true} {
		p := newPlace(t)
		args := small + " --delivery at-least-once --append"
		if forget {
			run := p.succeeds(args + " --verify ack").Run.ID
			require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
		} else {
			p.succeeds(args)
		}
		p.memory.Crash()
		require.Zero(t, p.succeeds(args).Plan.FirstKey, "no row and no reservation is left")
	}
}
