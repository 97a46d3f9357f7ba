package push_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func formats() []batch.Format { return []batch.Format{batch.PGBinary} }

func TestPush(t *testing.T) {
	p := newFixture(t)
	p.memory.Caps = &loader.Caps{Formats: formats(), Dedup: loader.DedupTx, DefaultBatchBytes: 1 << 20, MaxInFlight: 3}
	watched, ended := push.Watched{}, false
	p.watch = func(w push.Watched) (func(), error) {
		watched = w
		require.Equal(t, event.Prepare, w.Snapshot().Phase)
		return func() { ended = true }, nil
	}
	r := p.succeeds(small + " --unlogged")
	p.exact(0, 195)
	require.True(t, ended)
	require.Equal(t, event.Done, watched.Snapshot().Phase)
	require.Equal(t, p.run(), watched.Run)

	require.Equal(t, p.run(), r.Run.ID)
	require.False(t, r.Run.Resumed)
	require.EqualValues(t, 195, r.Result.Rows)
	require.EqualValues(t, 20, r.Result.Batches)
	require.EqualValues(t, 195*24, r.Result.PayloadBytes)
	require.EqualValues(t, 20, r.Result.Attempts)
	require.Equal(t, "memory://u@h/d", r.Target.URL)
	require.Equal(t, "memory", r.Target.Table)
	require.Equal(t, "keep", r.Plan.Method)
	require.Equal(t, map[string]string{"unlogged": "true"}, r.Plan.Options)
	require.Equal(t, "exactly-once", r.Plan.Delivery)
	require.EqualValues(t, 200, r.Plan.DistinctRows)
	require.Equal(t, 3, r.Plan.Workers)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "4 workers are lowered to 3")
	require.True(t, r.Verify.OK)
	require.Equal(t, "count", r.Verify.Mode)
	require.EqualValues(t, 195, r.Verify.FoundRows)
	require.NotZero(t, r.Stored.Bytes)

	require.Equal(t, runlog.Verified, p.record().Stage)
	require.Equal(t, 20, p.claims(p.run()), "they stop whoever comes late")
	require.Equal(t, []loader.RunState{loader.RunProven}, p.states(p.run()))
}

func TestPreflightThatFailsTouchesNothing(t *testing.T) {
	down := errors.New("it is down")
	for _, c := range []struct {
		name, args, failing, text string
		outcome                   report.Outcome
		caps                      *loader.Caps
		table                     bool // it was made
	}{
		{name: "usage", args: " --set unfit=1", failing: "open", outcome: push.Usage, text: "memory has no such variable"},
		{name: "state", args: " --state-dir /dev/null/x", outcome: report.PreflightFailed, text: "without which a run cannot be resumed"},
		{name: "connection", failing: "open", outcome: report.PreflightFailed, text: "opening memory://u@h/d: it is down"},
		{name: "memory", args: " --memory 1KiB", outcome: push.Usage, text: "more than --memory 1.0 KiB"},
		{
			name: "delivery", args: " --delivery exactly-once", outcome: report.PreflightFailed,
			text: "cannot deliver exactly once here: it is a sieve",
			caps: &loader.Caps{Formats: formats(), Reason: "it is a sieve", DefaultBatchBytes: 1000},
		},
		{name: "privilege", failing: "prepare", outcome: report.PreflightFailed, text: "it is down"},
		{name: "probe", failing: "probe", outcome: report.PreflightFailed, text: "probing for transactions: it is down", table: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newFixture(t)
			p.memory.Caps = c.caps
			p.failOn(c.failing, down)
			r := p.fails(small+c.args, c.outcome, c.text)
			require.Empty(t, r.Run.ID)
			require.Empty(t, r.BoundBy.Verdict)
			require.Equal(t, c.table, len(p.prepared) > 0)
			require.Empty(t, p.memory.Applied())
			entries, _ := os.ReadDir(p.state)
			require.Empty(t, entries)
		})
	}
}

// A question that hangs is named. To look at a table has a bound; to empty or drop a large one takes as long as it
// takes.
func TestPreflightThatHangs(t *testing.T) {
	for _, c := range []struct{ op, create, want string }{
		{"open", "if-missing", "opening memory://u@h/d: no answer within 30s"},
		{"prepare", "if-missing", "preparing table documents: no answer within 1m40s"}, // of which other runs' batches may take a minute
		{"prepare", "never", "preparing table documents: no answer within 1m40s"},
		{"prepare", "recreate", ""},
		{"prepare", "truncate", ""},
		{"probe", "if-missing", "probing for transactions: no answer within 30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newFixture(t)
			p.on(c.op, func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(2 * time.Minute):
					return nil
				}
			})
			if args := small + " --create " + c.create; c.want == "" {
				require.InDelta(t, 120, p.succeeds(args).Phases.Prepare, 1e-6)
			} else {
				p.fails(args, report.PreflightFailed, c.want)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	p := newFixture(t)
	p.memory.Unprovable = "MyISAM keeps what was rolled back"
	p.fails(small+" --delivery exactly-once", report.PreflightFailed, "cannot deliver exactly once here: MyISAM keeps what was rolled back")
	require.Empty(t, p.memory.Applied())

	r := p.succeeds(small)
	require.Equal(t, "at-least-once", r.Plan.Delivery)
	require.Equal(t, []string{"delivery is at least once: MyISAM keeps what was rolled back"}, r.Warnings)
	require.Zero(t, p.memory.Resolved())

	p = newFixture(t)
	p.failOn("probe", errors.New("there is no probe at least once"))
	require.Empty(t, p.succeeds(small+" --delivery at-least-once").Warnings)

	// The table sees no key from the probe that it would not see from the run.
	p = newFixture(t)
	var keys []int64
	p.hook = func(_ context.Context, op string, key int64) error {
		if op == "probe" {
			keys = append(keys, key)
		}
		return nil
	}
	p.succeeds(small + " --first-key 7")
	p.succeeds(small + " --append")
	p.succeeds(small + " --append --first-key 1000")
	require.Equal(t, []int64{7, 202, 1000}, keys)
}

// oddMissing is a server that takes one row too few of every other batch: 10 of all.
func oddMissing(number int64, _ int) loadertest.Fault { return loadertest.Fault{Missing: number % 2} }

func TestAtLeastOnceWithMissingRows(t *testing.T) {
	const none = small + " --delivery at-least-once --verify none --workers 1"
	const less = "the server acknowledged 10 rows too few or too many"
	p := newFixture(t)
	p.memory.Script = oddMissing
	r := p.fails(small+" --delivery at-least-once --verify ack", report.VerificationFailed, "185 of 195")
	require.EqualValues(t, 10, r.Result.Missing)

	p = newFixture(t)
	p.version = "8.4.0-terapush-sink-no-count"
	p.memory.Script = oddMissing
	require.Zero(t, p.succeeds(none).Result.Missing, "a sink that counts nothing")

	// They are an error also when nothing is verified, and those of an earlier process are the run's.
	p = newFixture(t)
	p.memory.Script = oddMissing
	p.at("load", 12, func() error { return errors.New("not now") })
	require.EqualValues(t, 6, p.fails(none, report.Failed, "not now").Result.Missing)
	p.hook = nil
	r = p.fails("--resume "+p.run(), report.Rejected, less)
	require.EqualValues(t, 10, r.Result.Missing)
	require.False(t, r.Verify.OK)
	require.EqualValues(t, 185, p.fails("--resume "+p.run(), report.Rejected, less).Result.Rows)
}

func TestAtLeastOnceWithALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Script = first(3, loadertest.Fault{After: loadertest.ErrConnection})
		r := p.fails(small+" --delivery at-least-once", report.VerificationFailed, "")
		require.Contains(t, r.Warnings,
			"the answers to 1 attempts were lost, and delivery is at least once: their rows may be duplicated")
		require.EqualValues(t, 205, r.Verify.FoundRows)
	})
}

// Batches that the server acknowledged and lost are sent again, whenever it lost them.
func TestServerLosesWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	lost := func(n string) string {
		return "the server lost " + n + " batches that it had acknowledged; the lost rows are sent again"
	}
	for name, c := range map[string]struct {
		staged bool
		op     string // at which the server crashes
		number int64
		lost   string
	}{
		"when all is in":        {op: "claimed", lost: "20"},
		"while it loads":        {op: "load", number: 11, lost: "11"},
		"groups when all is in": {staged: true, op: "claimed", lost: "20"},
	} {
		t.Run(name, func(t *testing.T) {
			p, args := newFixture(t), small
			if c.staged {
				p, args = newStaged(t, loader.DedupTx), grouped
			}
			var crash sync.Once
			p.at(c.op, c.number, func() error { crash.Do(p.memory.Crash); return nil })
			r := p.succeeds(args + " --workers 1")
			p.exact(0, 195)
			require.Equal(t, []string{lost(c.lost)}, r.Warnings)
			require.EqualValues(t, 195, r.Result.Rows)
			require.EqualValues(t, 20, r.Result.Batches)
			require.EqualValues(t, 195*24, r.Result.PayloadBytes)
			require.False(t, r.Run.Resumed)
		})
	}

	// Verification finds what was lost later. The claims are gone with the rows, so a resume knows what to do.
	p := newFixture(t)
	p.then("count", p.memory.Crash)
	r := p.fails(small, report.VerificationFailed, "")
	require.True(t, r.Verify.Ran)
	require.False(t, r.Verify.OK)
	require.EqualValues(t, 20, r.Verify.BadCount)
	require.Equal(t, runlog.Loaded, p.record().Stage)
	p.hook = nil
	r = p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Equal(t, []string{lost("20")}, r.Warnings)
	require.Zero(t, r.Run.ResumedRows)
}

func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Script = oneSecond
		asked := false
		p.then("claimed", func() { asked = true })
		r := p.succeeds(timed + "9500ms --workers 4")
		require.True(t, asked, "lost batches are looked for: the clock is no interruption")
		require.EqualValues(t, 400, r.Result.Rows, "four workers, ten batches each: what was begun is finished")
		require.Zero(t, r.Plan.Rows, "the run's end was a time: two runs of as long have the same plan")
		p.exact(0, 400)
		require.EqualValues(t, 400, p.record().Plan.Rows)
		require.False(t, p.record().Plan.ByDuration())
		require.Zero(t, p.succeeds("--resume "+p.run()).Plan.Rows)
		p.exact(0, 400)
	})
}

// finishing is a back-end that shows rows later than it acknowledges them.
type finishing struct {
	hooked
	finish func(all loader.KeyRange, rows int64) ([]string, error)
}

func (l finishing) Finish(_ context.Context, all loader.KeyRange, rows int64) ([]string, error) {
	return l.finish(all, rows)
}

func (p *fixture) finishes(finish func(all loader.KeyRange, rows int64) ([]string, error)) {
	p.wrap = func(h hooked) loader.Loader { return finishing{h, finish} }
}

func TestFinisher(t *testing.T) {
	p := newFixture(t)
	calls := 0
	p.finishes(func(all loader.KeyRange, rows int64) ([]string, error) {
		calls++
		require.Equal(t, loader.KeyRange{First: 5, Last: 199}, all)
		require.EqualValues(t, 195, rows)
		return []string{"7 rows are still in the log"}, nil
	})
	require.Equal(t, []string{"7 rows are still in the log"}, p.succeeds(small+" --first-key 5").Warnings)
	require.Equal(t, 1, calls)

	p = newFixture(t)
	p.finishes(func(loader.KeyRange, int64) ([]string, error) { return nil, errors.New("no backend is alive") })
	p.succeeds(small + " --create recreate --verify none")
	p.forgetFolder()
	r := p.fails(small+" --create recreate", report.Failed, "waiting until the rows are visible: no backend is alive")
	require.Equal(t, runlog.Loaded, p.record().Stage)
	p.finishes(func(loader.KeyRange, int64) ([]string, error) { calls++; return nil, nil })
	p.succeeds("--resume " + r.Run.ID)
	require.Equal(t, 2, calls, "a resume waits again")
}

// The buffers are full when the time comes, and nothing is sent before it.
func TestStartAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		at := time.Now().Add(time.Hour).UTC()
		p.then("load", func() { require.False(t, time.Now().Before(at)) })
		r := p.succeeds(small + " --start-at " + at.Format(time.RFC3339))
		require.Less(t, r.Phases.Load, time.Minute.Seconds())
	})
}
