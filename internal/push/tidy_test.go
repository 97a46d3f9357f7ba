package push_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

func TestForeignObjectsAreNamedApart(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.foreign = []string{"in/notes.txt"}
	r := p.succeeds(grouped)
	require.Equal(t, []string{"1 object of 1 B in the run's folder of the object store belong to no batch, and are left alone (in/notes.txt)"}, r.Warnings)
	p.failOn("discard", errors.New("access denied"))
	p.memory.Crash()
	r = p.succeeds(grouped)
	require.Len(t, r.Warnings, 3)
	require.Regexp(t, `^20 objects of .* left in the object store`, r.Warnings[1])
	require.NotContains(t, r.Warnings[1], "notes.txt")
	require.Contains(t, r.Warnings[2], "in/notes.txt")
}

// As long as the store answers it is waited for: there may be hundreds of thousands of objects.
func TestSlowStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.meddle = func(_ context.Context, op string, _ int64) error {
			switch op {
			case "discard":
				return errors.New("not now")
			case "object":
				time.Sleep(time.Minute)
			}
			return nil
		}
		r := p.succeeds(grouped)
		require.Regexp(t, `^20 objects of .* left in the object store`, r.Warnings[1])
	})
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.meddle = func(ctx context.Context, op string, _ int64) error {
			if op == "objects" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		r := p.succeeds(grouped)
		require.Equal(t, []string{"what the run left in the object store is not known: the object store has not answered for 2m0s"}, r.Warnings)
	})
}

// Nothing leads to them once the run is forgotten.
func TestForgetTellsWhereObjectsAre(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.failOn("discard", errors.New("access denied"))
	run := p.succeeds(grouped).Run.ID
	p.log.Reset()
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
	require.Regexp(t, `20 objects of [^"]* of run `+run+` stay in the object store under `+run+`/: nothing records them`, p.log.String())
	require.NoDirExists(t, filepath.Join(p.state, run))
	require.Equal(t, 20, p.memory.Objects())

	p = newStaged(t, loader.DedupKey)
	run = p.succeeds(grouped).Run.ID
	p.failOn("objects", errors.New("no such bucket"))
	p.log.Reset()
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)), "a bucket that is gone holds nobody up")
	require.Contains(t, p.log.String(), "is not known: no such bucket")
}

func TestGroupLargerThanTheRun(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.succeeds(grouped + " --commit-batches 1000000000000000 --batch-timeout 1h")
	p.exact(0, 195)
	require.Equal(t, 1, p.memory.Commits(0))

	p = newStaged(t, loader.DedupKey)
	run := p.dies(grouped+" --commit-batches 1000000000000000", "commit", 1)
	p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.Equal(t, 1, p.memory.Attempts(0))
}

// A group that was begun is begun again as its next attempt.
func TestAttemptsAtGroupsCountOverAllProcesses(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	run := p.dies(grouped, "commit", 2)
	p.succeeds("--resume " + run)
	p.exact(0, 195)
	text, err := os.ReadFile(filepath.Join(p.state, run, "journal.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(text), `{"batch":4,"attempt":2,"worker":-1,"members":4,`)
	require.NotContains(t, string(text), `{"batch":8,"attempt":2,"worker":-1,`)
}

// Where keys cannot be set aside the user says from where on, and nobody's rows are there.
func TestAppendFromAChosenKey(t *testing.T) {
	p := newPlace(t)
	p.bare = true
	p.succeeds(small)
	p.fails(small, report.PreflightFailed, "table memory holds rows (choose --append")
	p.fails(small+" --append", report.PreflightFailed, "memory cannot find the free keys: give --first-key with --append, behind the table's largest key")
	p.fails(small+" --append --first-key 190", report.PreflightFailed,
		"5 rows of table memory have keys from 190 to 384, which the run needs: choose a larger --first-key")
	p.exact(0, 195)
	first := p.run()
	require.NoError(t, os.RemoveAll(filepath.Join(p.state, first)))
	r := p.succeeds(small + " --append --first-key 195")
	require.EqualValues(t, 195, r.Plan.FirstKey)
	require.True(t, r.Verify.OK)
	require.Empty(t, r.Warnings)
	p.exact(0, 390)
	require.EqualValues(t, 195, p.succeeds("--resume "+r.Run.ID).Plan.FirstKey)

	r = p.succeeds("--append --first-key 1000 --duration 10ms --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16")
	require.EqualValues(t, 1000, r.Plan.FirstKey)

	p = newPlace(t) // one that could set keys aside is not asked to
	p.succeeds(small)
	p.failOn("reserve", errors.New("not asked for"))
	require.EqualValues(t, 200, p.succeeds(small+" --append --first-key 200").Plan.FirstKey)
	p.fails(small+" --append --first-key 0", report.PreflightFailed, "195 rows of table memory have keys from 0 to 194")

	p = newStore(t)
	r = p.succeeds(small + " --append --first-key 200")
	require.Equal(t, []string{"it was not checked that the keys from 200 on are free in table memory"}, r.Warnings)
}
