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
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// grouped is small in five groups of four batches.
const grouped = small + " --via s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000 --commit-batches 4"

// newStaged is a place whose method stores batches and commits them in groups.
func newStaged(t *testing.T, d loader.Dedup) *place {
	p := newPlace(t)
	p.memory.Caps = &loader.Caps{
		Formats: []batch.Format{batch.TSV}, Dedup: d, Staged: true, Commits: 2, DefaultBatchBytes: 1 << 20, DefaultGroupBytes: 1 << 30,
	}
	return p
}

// dies runs a process that dies when the call comes for the n-th time: its journal remains as it was then.
func (p *place) dies(args, op string, nth int) (run string) {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	var journal []byte
	var calls int
	p.meddle = func(_ context.Context, now string, _ int64) error {
		if now != op {
			return nil
		}
		if calls++; calls == nth {
			var err error
			journal, err = os.ReadFile(filepath.Join(p.state, p.run(), "journal.jsonl"))
			require.NoError(p, err)
			die()
		}
		if calls >= nth {
			return errors.New("the process is gone")
		}
		return nil
	}
	p.memory.Caps.Commits = 1
	_, err := push.Run(ctx, p.job(args+" --workers 1"))
	require.Error(p, err)
	p.meddle = func(context.Context, string, int64) error { return nil }
	run = p.run()
	require.NoError(p, os.WriteFile(filepath.Join(p.state, run, "journal.jsonl"), journal, 0o600))
	return run
}

func TestStagedPush(t *testing.T) {
	for _, d := range []loader.Dedup{loader.DedupTx, loader.DedupKey, loader.DedupNone} {
		p := newStaged(t, d)
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
		require.Zero(t, p.claims(r.Run.ID)*map[bool]int{true: 1}[d == loader.DedupTx], "those of groups are removed as well")
	}
}

// Wherever it dies: nothing that is still in the store is uploaded again, and no group goes in twice.
func TestStagedResume(t *testing.T) {
	for _, d := range []loader.Dedup{loader.DedupTx, loader.DedupKey} {
		for _, c := range []struct {
			op      string
			nth     int
			uploads int // of batch 0, in both processes
		}{
			{"load", 1, 1}, {"load", 4, 1}, {"load", 11, 1}, // the first upload is cut before it reaches the store
			{"commit", 1, 1}, {"commit", 3, 1}, {"committed", 1, 1}, {"committed", 5, 1},
			{"discard", 1, 1}, {"discard", 4, 1},
		} {
			p := newStaged(t, d)
			run := p.dies(grouped, c.op, c.nth)
			r := p.succeeds("--resume " + run)
			p.exact(0, 195)
			require.EqualValues(t, 20, r.Result.Batches, "%+v", c)
			require.EqualValues(t, 195, r.Result.Rows)
			require.Equal(t, c.uploads, p.memory.Attempts(0), "%+v", c)
			require.Zero(t, p.memory.Objects(), "%+v", c)
			require.Empty(t, r.Warnings)
		}
	}
}

func TestStagedResumeUploadsWhatVanished(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	run := p.dies(grouped, "commit", 1)
	require.True(t, p.memory.RemoveObject(run, 2))
	p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.Equal(t, 1, p.memory.Attempts(1))
	require.Equal(t, 2, p.memory.Attempts(2))
}

func TestStagedAnswersLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.memory.GroupScript = func(_ int64, attempt int) loadertest.Fault {
			if attempt == 1 {
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{}
		}
		r := p.succeeds(grouped)
		p.exact(0, 195)
		require.EqualValues(t, 5, r.Result.Duplicates)
		require.EqualValues(t, 195, r.Result.Rows)
	})
}

func TestStagedGroupThatNobodyCanTellOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.memory.GroupScript = func(group int64, attempt int) loadertest.Fault {
			if group == 1 && attempt == 1 {
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{}
		}
		p.meddle = func(_ context.Context, op string, _ int64) error {
			if op == "resolve" {
				return errors.New("the history is gone")
			}
			return nil
		}
		r := p.fails(grouped, report.Unknown, "the outcome of 4 batches is unknown, the first are [4 5 6 7]")
		require.EqualValues(t, 4, r.Result.Unknown)
		require.Contains(t, r.Warnings[len(r.Warnings)-1], "left in the object store")
		require.Contains(t, r.Warnings[len(r.Warnings)-1], "a resume uses them")

		p.meddle = func(context.Context, string, int64) error { return nil }
		p.succeeds("--resume " + r.Run.ID)
		p.exact(0, 195)
		require.Zero(t, p.memory.Objects())
	})
}

func TestStagedMissingRows(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.memory.GroupScript = func(group int64, _ int) loadertest.Fault {
		return loadertest.Fault{Missing: map[int64]int64{0: 3}[group]}
	}
	p.fails(grouped, report.Unknown, "the server took 37 of 40 rows")
}

func TestStagedInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupKey)
		p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }
		p.meddle = func(_ context.Context, op string, number int64) error {
			if op == "load" && number == 9 {
				close(p.drain)
			}
			return nil
		}
		r := p.fails(grouped+" --workers 1", report.Interrupted, "stopped by a signal")
		require.EqualValues(t, 80, r.Result.Rows)
		require.Equal(t, 2, p.memory.Objects())
		require.Len(t, r.Warnings, 1)
		require.Regexp(t, `^2 objects of .* left in the object store \(.*/00000000000[89]\.bin, .*\): a resume uses them$`, r.Warnings[0])
		p.drain = make(chan struct{})
		p.meddle = func(context.Context, string, int64) error { return nil }
		r = p.succeeds("--resume " + r.Run.ID)
		p.exact(0, 195)
		require.Equal(t, 1, p.memory.Attempts(9))
		require.Zero(t, p.memory.Objects())
		require.EqualValues(t, 195, r.Result.Rows)
	})
}

// Everything lies in the store and nothing in the table: no buffer is filled for that.
func TestStagedResumeWithNothingToUpload(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.memory.GroupScript = func(int64, int) loadertest.Fault { return loadertest.Fault{Before: loadertest.ErrRejected} }
	p.fails(grouped+" --commit-batches 20", report.Failed, "bad value")
	require.Equal(t, 20, p.memory.Objects())
	p.memory.GroupScript = nil
	p.failOn("session", errors.New("nothing is left to upload"))
	r := p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Zero(t, r.Phases.Fill)
	require.Zero(t, r.Result.StoredBytes)
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestStagedServerLostSome(t *testing.T) {
	p := newStaged(t, loader.DedupTx)
	asked := 0
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "claimed" {
			if asked++; asked == 1 {
				p.memory.Crash()
			}
		}
		return nil
	}
	r := p.succeeds(grouped)
	p.exact(0, 195)
	require.Equal(t, []string{"the server lost 20 batches that it had acknowledged; the lost rows are sent again"}, r.Warnings)
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestStagedClaimsThatSomebodyRemoved(t *testing.T) {
	p := newStaged(t, loader.DedupTx)
	p.failOn("count", errors.New("not now"))
	p.fails(grouped, report.Failed, "not now")
	p.memory.RemoveClaims()
	p.failOn("", nil)
	p.fails("--resume "+p.run(), report.PreflightFailed, "somebody removed claims")
}

func TestStagedDurationRuns(t *testing.T) {
	const byTime = "--duration 2500ms --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --commit-batches 4 --workers 1"
	slow := func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }

	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupTx)
		p.memory.Script = slow
		r := p.succeeds(byTime)
		require.EqualValues(t, 30, r.Result.Rows, "three batches were begun, and their group ends with them")
		p.exact(0, 30)
	})

	// The short last group was begun, so it stays what it was.
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupTx)
		p.memory.Script = slow
		run := p.dies(byTime, "committed", 1)
		require.Equal(t, runlog.Loading, p.record().Stage)
		r := p.succeeds("--resume " + run)
		require.EqualValues(t, 30, r.Result.Rows)
		p.exact(0, 30)
	})

	// Nothing was committed: what was stored is the run, and perhaps a batch more.
	synctest.Test(t, func(t *testing.T) {
		p := newStaged(t, loader.DedupTx)
		p.memory.Script = slow
		run := p.dies(byTime, "load", 3)
		p.memory.Script = nil
		r := p.succeeds("--resume " + run)
		p.exact(0, r.Result.Rows)
		require.GreaterOrEqual(t, r.Result.Rows, int64(20))
		require.Zero(t, p.memory.Objects())
	})
}

func TestObjectsLeftBehind(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.failOn("discard", errors.New("access denied"))
	r := p.succeeds(grouped)
	require.Len(t, r.Warnings, 2)
	require.Equal(t, "the objects of 5 commit groups that are in the table could not be removed: access denied", r.Warnings[0])
	require.Regexp(t, `^20 objects of .* left in the object store \(.*, .*, .* …\): nothing needs them any more, remove them$`, r.Warnings[1])

	p = newStaged(t, loader.DedupKey)
	p.failOn("objects", errors.New("access denied"))
	r = p.succeeds(grouped)
	require.Equal(t, []string{"what the run left in the object store is not known: access denied"}, r.Warnings)
}

func TestViaAndGroupsAreFrozen(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	run := p.dies(grouped, "commit", 2)
	p.fails("--resume "+run+" --via s3://other/prefix", push.Usage,
		"--via cannot change in a resumed run: it was s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000, now it is s3://other/prefix")
	p.fails("--resume "+run+" --via s3://bucket/elsewhere", push.Usage, "--via cannot change")
	p.fails("--resume "+run+" --commit-batches 5", push.Usage, "--commit-batches cannot change in a resumed run: it was 4, now it is 5")
	p.succeeds("--resume " + run + " --commit-batches 4 --via s3://bucket/prefix?endpoint=http%3A%2F%2Fother%3A9000")
	p.exact(0, 195)
}

func TestViaIsForStagedMethods(t *testing.T) {
	p := newPlace(t)
	p.fails(small+" --via s3://bucket/prefix", push.Usage, "method keep stores no objects: --via is for methods that do")
	p.fails(small+" --commit-batches 4", push.Usage, "method keep loads every batch by itself")
}

func TestNoMoreThanTheServerRuns(t *testing.T) {
	p := newPlace(t)
	p.memory.Caps = &loader.Caps{Formats: []batch.Format{batch.TSV}, Dedup: loader.DedupTx, DefaultBatchBytes: 1 << 20, MaxInFlight: 3}
	r := p.succeeds(small)
	require.Equal(t, 3, r.Plan.Workers)
	require.Equal(t, []string{"4 workers are lowered to 3, the number of loads that the server runs at a time: more would only wait in its queue"}, r.Warnings)
}

func TestFinisher(t *testing.T) {
	p := newPlace(t)
	calls := 0
	p.finish = func(_ context.Context, all loader.KeyRange, rows int64) ([]string, error) {
		calls++
		require.Equal(t, loader.KeyRange{First: 5, Last: 199}, all)
		require.EqualValues(t, 195, rows)
		return []string{"7 rows are still in the log"}, nil
	}
	r := p.succeeds(small + " --first-key 5")
	require.Equal(t, 1, calls)
	require.Equal(t, []string{"7 rows are still in the log"}, r.Warnings)

	// Nobody asks for rows that nobody wants to see.
	p = newPlace(t)
	p.finish = func(context.Context, loader.KeyRange, int64) ([]string, error) { return nil, errors.New("asked") }
	p.succeeds(small + " --verify none")

	// A resume waits again when the process before it was stopped while it waited.
	p = newPlace(t)
	p.finish = func(context.Context, loader.KeyRange, int64) ([]string, error) {
		return nil, errors.New("no backend is alive")
	}
	r = p.fails(small, report.Failed, "waiting until the rows are visible: no backend is alive")
	require.Equal(t, runlog.Loaded, p.record().Stage)
	p.finish = func(context.Context, loader.KeyRange, int64) ([]string, error) { return nil, nil }
	p.succeeds("--resume " + r.Run.ID)
}

// What hangs is named, and nothing waits for ever.
func TestPreflightThatHangs(t *testing.T) {
	for op, want := range map[string]string{
		"open":    "opening memory://u@h/d: no answer within 10s",
		"prepare": "preparing table documents: no answer within 10s",
		"probe":   "probing for transactions: no answer within 10s",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t)
			p.meddle = func(ctx context.Context, now string, _ int64) error {
				if now == op {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
			p.fails(small, report.PreflightFailed, want)
		})
	}
}
