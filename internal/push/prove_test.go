package push_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

func TestVerifyCommand(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	run := p.succeeds(small + " --verify none").Run.ID
	require.Equal(t, 20, p.claims(run), "nothing is proven, so the claims stay")
	before := p.record()
	p.failOn("forget", errors.New("verify must change nothing"))
	r := p.verifies(run)
	require.Equal(t, "count", r.Verify.Mode, "what the run was content with is no proof")
	require.Equal(t, report.OK, r.Result.Outcome)
	require.Equal(t, 20, p.claims(run))
	require.Equal(t, before, p.record())

	p.memory.Crash()
	r, err := push.Verify(t.Context(), p.job("--resume "+run))
	require.Equal(t, report.VerificationFailed, push.OutcomeOf(err))
	require.EqualValues(t, 20, r.Verify.BadCount)

	p = newFixture(t)
	_, err = push.Verify(t.Context(), p.job("--resume "+p.kill(small, 5)))
	require.ErrorContains(t, err, "is not loaded to its end: finish it with push --resume")
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(err))
}

func TestForget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p    *fixture
		args string
	}{
		"claims": {newFixture(t), small + " --verify ack --append"},
		// A staged method may leave more than claims behind, whatever its guarantee.
		"a staged run": {newStaged(t, loader.DedupKey), grouped},
	} {
		p := c.p
		run := p.succeeds(c.args).Run.ID
		p.failOn("forget", errors.New("the server is down"))
		require.ErrorContains(t, push.Forget(t.Context(), p.job("--resume "+run)),
			"removing the claims of run "+run+": the server is down", name)
		require.DirExists(t, filepath.Join(p.state, run), "%s: without the folder it could not be asked again", name)

		p.hook = nil
		require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
		require.Zero(t, p.claims(run))
		require.NoDirExists(t, filepath.Join(p.state, run))
	}
}

// Without the state folder the claims can be removed all the same.
func TestForgetWithoutTheFolder(t *testing.T) {
	p := newFixture(t)
	mine := p.succeeds(small + " --verify ack --append").Run.ID
	p.forgetFolder()
	other := p.succeeds(small + " --verify ack --append").Run.ID
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
	begun := filepath.Join(p.state, ".new-"+mine+"-begun") // of a process that was killed before it made a folder
	require.NoError(t, os.Mkdir(begun, 0o700))
	p.failOn("forget", errors.New("the server is down"))
	require.ErrorContains(t, forget(mine), "removing the claims of run "+mine+": the server is down")
	require.DirExists(t, begun, "the run may still have the table")

	p.hook = nil
	require.NoError(t, forget(mine))
	require.NoDirExists(t, begun)
	require.Contains(t, p.log.String(), "20 claims of run "+mine+" removed; the state folder has no such run")
	require.Zero(t, p.claims(mine))
	require.Equal(t, 20, p.claims(other))
	require.NoError(t, forget(mine), "once more")
	require.Contains(t, p.log.String(), "0 claims of run "+mine)

	l, err := runlog.Open(p.state, other, func(event.Event) {}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, forget(other), "another process is working on run "+other)
	for _, piece := range p.pieces(other) {
		require.NoError(t, os.Remove(piece))
	}
	require.ErrorContains(t, forget(other), "another process is working on run "+other)
	require.Equal(t, 20, p.claims(other))
	require.NoError(t, l.Close())
	require.NoError(t, forget(other), "a folder without a record is no run")
	require.Zero(t, p.claims(other))
	require.NoDirExists(t, filepath.Join(p.state, other))
}

// The plan's keys, seed and distinct rows are those of the ring and of the proof: what goes in is compared with the
// dataset's rows, value by value, also after attempts that failed or whose answer was lost.
func TestRowsAreThePlans(t *testing.T) {
	const firstKey, batchRows, distinct = 1000, 10, 50
	d, err := dataset.New("httplogs", dataset.Options{Seed: 7})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Row = func(number int64) (values []any) {
			b := rows.NewBlock(d.Schema())
			dataset.Row(b, d, firstKey, number-firstKey, distinct)
			for c := range b.Columns {
				if v := &b.Columns[c]; v.Type.Variable() {
					values = append(values, bytes.Clone(v.Value(0)))
				} else {
					values = append(values, v.Ints[0])
				}
			}
			return values
		}
		p.memory.Script = func(number int64, attempt int) loadertest.Fault {
			switch {
			case attempt == 1 && number%4 == 1:
				return loadertest.Fault{After: loadertest.ErrConnection}
			case attempt == 1 && number%4 == 3:
				return loadertest.Fault{Before: loadertest.ErrThrottled}
			}
			return loadertest.Fault{}
		}
		r := p.succeeds(fmt.Sprintf("--dataset httplogs --seed 7 --format columns --rows 195 --first-key %d --batch-rows %d "+
			"--distinct-bytes %d --workers 3 --verify full", firstKey, batchRows, distinct*d.Schema().RowBytes()))
		p.exact(firstKey, 195)
		require.Equal(t, "columns", r.Plan.Format)
		require.EqualValues(t, 195, r.Verify.SampledRows)
	})
}
