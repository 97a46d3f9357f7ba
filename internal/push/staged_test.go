package push_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// grouped is small in five groups of four batches.
const grouped = small + " --staging s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000 --commit-batches 4"

// newStaged is a fixture whose method stores batches and commits them in groups.
func newStaged(t *testing.T, d loader.Dedup) *fixture {
	p := newFixture(t)
	p.memory.Caps = &loader.Caps{
		Formats: []batch.Format{batch.TSV}, Dedup: d, Staged: true, Commits: 1, DefaultBatchBytes: 1 << 20, DefaultGroupBytes: 1 << 30,
	}
	return p
}

func TestStagedPush(t *testing.T) {
	t.Parallel()
	for _, d := range []loader.Dedup{loader.DedupTx, loader.DedupKey, loader.DedupNone} {
		p := newStaged(t, d)
		p.memory.Caps.Commits = 2
		r := p.succeeds(grouped)
		p.exact(0, 195)
		require.Zero(t, p.memory.Objects())
		require.Empty(t, r.Warnings)
		require.Equal(t, "s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000", r.Target.Via)
		require.Equal(t, r.Target.Via, p.record().Via)
		require.EqualValues(t, 4, r.Plan.GroupBatches)
		require.EqualValues(t, 20, r.Result.Batches)
		require.EqualValues(t, 25, r.Result.Attempts, "uploads and commits")
		require.Equal(t, r.Result.EncodedBytes, r.Result.StoredBytes)
		require.NotZero(t, r.Result.StoredBytes)
		require.NotZero(t, r.Phases.Stage)
		require.NotZero(t, r.Phases.Commit)
		require.Zero(t, r.Phases.Load)
		require.NotZero(t, r.Rates.Stage)
		require.NotZero(t, r.Rates.Commit)
		require.True(t, r.Verify.OK)
		if d == loader.DedupTx {
			require.Equal(t, 5, p.claims(r.Run.ID), "those of groups")
		}
	}
}

// Wherever it dies: nothing that is still in the store is uploaded again, and no group goes in twice.
func TestStagedResume(t *testing.T) {
	t.Parallel()
	for _, d := range []loader.Dedup{loader.DedupTx, loader.DedupKey} {
		const one = grouped + " --commit-batches 1000000000000000 --batch-timeout 1h" // group, larger than any run
		for _, c := range []struct {
			args, op string
			n        int
		}{
			{grouped, "load", 4}, {grouped, "load", 11}, {grouped, "commit", 1}, {grouped, "commit", 3}, {one, "commit", 1},
			{grouped, "after commit", 1}, {grouped, "after commit", 5}, {grouped, "discard", 1}, {grouped, "discard", 5},
		} {
			p := newStaged(t, d)
			run := p.killAt(c.args, c.op, c.n)
			r := p.succeeds("--resume " + run)
			p.exact(0, 195)
			require.EqualValues(t, 20, r.Result.Batches, "%+v", c)
			require.EqualValues(t, 195, r.Result.Rows)
			require.Equal(t, 1, p.memory.Attempts(0), "%+v: in both processes", c)
			require.Zero(t, p.memory.Objects(), "%+v", c)
			require.Empty(t, r.Warnings)
		}
	}
}

// An object that has vanished, or of another length than was acknowledged, is uploaded again; a group that was begun is
// begun again as its next attempt.
func TestStagedResumeUploadsWhatIsNotWhole(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	run := p.killAt(grouped, "commit", 2)
	require.True(t, p.memory.RemoveObject(run, 5))
	p.wrap = func(h hooked) loader.Loader { return shortened{h, 6} }
	p.succeeds("--resume " + run)
	p.exact(0, 195)
	for number, attempts := range map[int64]int{4: 1, 5: 2, 6: 2, 7: 1} {
		require.Equal(t, attempts, p.memory.Attempts(number), "batch %d", number)
	}
	require.Contains(t, p.journal(), `{"batch":4,"attempt":2,"worker":-1,"members":4,`)
	require.NotContains(t, p.journal(), `{"batch":8,"attempt":2,"worker":-1,`)
}

// shortened is a store that lists an object as one byte shorter.
type shortened struct {
	hooked
	batch int64
}

func (l shortened) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return l.hooked.Objects(ctx, run, func(name string, number, bytes int64) error {
		if number == l.batch {
			bytes--
		}
		return f(name, number, bytes)
	})
}

func TestStagedGroupOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.memory.GroupScript = first(1, loadertest.Fault{After: loadertest.ErrConnection})
		p.failOn("resolve", errors.New("the history is gone"))
		r := p.fails(grouped, report.Unknown, "the outcome of 4 batches is unknown, the first are [4 5 6 7]")
		require.EqualValues(t, 4, r.Result.Unknown)
		require.Equal(t, runlog.Loading, p.record().Stage)
		require.Contains(t, r.Warnings[len(r.Warnings)-1], "left in the object store")
		require.Contains(t, r.Warnings[len(r.Warnings)-1], "a resume uses them")

		p.hook = nil
		p.succeeds("--resume " + r.Run.ID)
		p.exact(0, 195)
		require.Zero(t, p.memory.Objects())
	})
}

// Everything lies in the store and nothing in the table: no buffer is filled for that.
func TestStagedResumeWithNothingToUpload(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.failOn("commit", loadertest.ErrRejected)
	p.fails(grouped+" --commit-batches 20", report.Failed, "bad value")
	require.Equal(t, 20, p.memory.Objects())
	p.failOn("session", errors.New("nothing is left to upload"))
	r := p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Zero(t, r.Phases.Fill)
	require.Zero(t, r.Result.StoredBytes)
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestStagedDuration(t *testing.T) {
	const byTime = timed + "2500ms --commit-batches 4 --workers 1"
	// Three batches were begun, and their group ends with them. It was begun as well, so it stays what it was.
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupTx)
		p.memory.Script = oneSecond
		run := p.killAt(byTime, "after commit", 1)
		require.Equal(t, runlog.Loading, p.record().Stage)
		r := p.succeeds("--resume " + run)
		require.EqualValues(t, 30, r.Result.Rows)
		p.exact(0, 30)
	})
	// A whole group was begun: behind it more may have been stored.
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupTx)
		p.memory.Script = oneSecond
		run := p.killAt(timed+"1h --commit-batches 4", "load", 7)
		p.memory.Script = nil
		r := p.succeeds("--resume " + run)
		require.EqualValues(t, 70, r.Result.Rows, "six were stored, and one more might have been")
		p.exact(0, 70)
		require.Zero(t, p.memory.Objects())
	})
}

const (
	leftAlone = `^1 object of 1 B in the run's folder of the object store belong to no batch, and are left alone \(in/notes.txt\)$`
	left20    = `^20 objects of [^n]* left in the object store \(.*, .*, .* …\): nothing needs them any more, remove them$`
)

func TestObjectsLeftBehind(t *testing.T) {
	t.Parallel()
	denied := errors.New("access denied")
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		foreign []string
		store   func(p *fixture) // what it does
		want    []string
	}{
		"a foreign object": {foreign: []string{"in/notes.txt"}, want: []string{leftAlone}},
		"and our own": {foreign: []string{"in/notes.txt"}, store: func(p *fixture) { p.failOn("discard", denied) }, want: []string{
			`^the objects of 5 commit groups that are in the table could not be removed: access denied$`, left20, leftAlone,
		}},
		"not listed": {store: func(p *fixture) { p.failOn("objects", denied) }, want: []string{
			`^what the run left in the object store is not known: access denied$`,
		}},
		"a store that hangs": {store: func(p *fixture) { p.on("objects", wait) }, want: []string{
			`^what the run left in the object store is not known: the object store has not answered for 2m0s$`,
		}},
		// As long as the store answers it is waited for: there may be hundreds of thousands of objects.
		"a slow store": {store: func(p *fixture) {
			p.hook = func(_ context.Context, op string, _ int64) error {
				if op == "object" {
					time.Sleep(time.Minute)
				}
				if op == "discard" {
					return denied
				}
				return nil
			}
		}, want: []string{`could not be removed`, left20}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newStaged(t, loader.DedupKey)
				p.foreign = c.foreign
				if c.store != nil {
					c.store(p)
				}
				r := p.succeeds(grouped)
				require.Len(t, r.Warnings, len(c.want))
				for i, want := range c.want {
					require.Regexp(t, want, r.Warnings[i])
				}
			})
		})
	}
}

// Nothing leads to the objects once the run is forgotten.
func TestForgetNamesWhereObjectsAre(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.failOn("discard", errors.New("access denied"))
	run := p.succeeds(grouped).Run.ID
	p.log.Reset()
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
	require.Regexp(t, `20 objects of [^"]* of run `+run+` stay in the object store under `+run+`/: nothing records them`, p.log.String())
	require.NoDirExists(t, filepath.Join(p.state, run))
	require.Equal(t, 20, p.memory.Objects())

	// A store that does not answer stops nothing. The warning is the same for all runs, so that it can be given once.
	p = newStaged(t, loader.DedupKey)
	run = p.succeeds(grouped).Run.ID
	p.failOn("objects", errors.New("no such bucket"))
	p.log.Reset()
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
	require.Contains(t, p.log.String(), "whether objects of the run are left in the object store is not known: no such bucket")
	require.NotContains(t, p.log.String(), run)

	p = newFixture(t)
	run = p.succeeds(small).Run.ID
	p.failOn("objects", errors.New("methods that store nothing ask no store"))
	p.log.Reset()
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))
	require.Empty(t, p.log.String())
}
