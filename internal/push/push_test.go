package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	p := newPlace(t)
	j := p.job(small)
	watched, ended := push.Watched{}, false
	j.Watch = func(w push.Watched) (func(), error) {
		watched = w
		require.Equal(t, event.Prepare, w.Snapshot().Phase)
		return func() { ended = true }, nil
	}
	r, err := push.Run(t.Context(), j)
	require.NoError(t, err)
	p.exact(0, 195)
	require.True(t, ended)
	require.Equal(t, event.Done, watched.Snapshot().Phase)
	require.Equal(t, p.run(), watched.Run)

	require.Equal(t, report.OK, r.Result.Outcome)
	require.Equal(t, p.run(), r.Run.ID)
	require.False(t, r.Run.Resumed)
	require.EqualValues(t, 195, r.Result.Rows)
	require.EqualValues(t, 20, r.Result.Batches)
	require.EqualValues(t, 195*24, r.Result.PayloadBytes)
	require.EqualValues(t, 20, r.Result.Attempts)
	require.Equal(t, "memory://u@h/d", r.Target.URL)
	require.Equal(t, "memory", r.Target.Table)
	require.Equal(t, "keep", r.Plan.Method)
	require.Equal(t, "exactly-once", r.Plan.Delivery)
	require.EqualValues(t, 200, r.Plan.DistinctRows)
	require.Equal(t, 4, r.Plan.Workers)
	require.True(t, r.Verify.OK)
	require.Equal(t, "count", r.Verify.Mode)
	require.EqualValues(t, 195, r.Verify.FoundRows)
	require.NotZero(t, r.Stored.Bytes)
	require.Empty(t, r.Warnings)

	require.Equal(t, runlog.Verified, p.record().Stage)
	require.Zero(t, p.claims(p.run()), "claims were the proof until the table was one")
}

func TestNothingIsTouchedBeforeThePreflightIsOver(t *testing.T) {
	for _, c := range []struct {
		name, args, text string
		outcome          report.Outcome
		change           func(*place)
		table            bool // it was made
	}{
		{name: "usage", args: small + " --verify full --set x", outcome: push.Usage, text: "write it as name=value"},
		{name: "driver's usage", args: small + " --set unfit=1", outcome: push.Usage, text: "--set unfit: memory has no such variable"},
		{name: "state", args: small + " --state-dir /dev/null/x", outcome: report.PreflightFailed, text: "without which a run cannot be resumed"},
		{
			name: "connection", args: small, outcome: report.PreflightFailed, text: "opening memory://u@h/d: nobody there",
			change: func(p *place) { p.failOn("open", errors.New("nobody there")) },
		},
		{name: "memory", args: small + " --memory 1KiB", outcome: push.Usage, text: "more than --memory 1.0 KiB"},
		{name: "rows", args: "--rows 9223372036854775807", outcome: push.Usage, text: "9223372036854775807 rows: a run has from 1 to 1"},
		{name: "keys", args: small + " --first-key 4611686018427387904", outcome: push.Usage, text: "keys of documents run from 0 to 4611686018427387903"},
		{name: "format", args: small + " --format values", outcome: push.Usage, text: `method keep does not take format "values"`},
		{
			name: "format, and no server", args: small + " --format values", outcome: push.Usage, text: `method keep does not take format "values"`,
			change: func(p *place) { p.failOn("open", errors.New("nobody there")) },
		},
		{
			name: "delivery", args: small + " --delivery exactly-once", outcome: report.PreflightFailed, text: "cannot deliver exactly once here: it is a sieve",
			change: func(p *place) {
				p.memory.Caps = &loader.Caps{Formats: formats(), Reason: "it is a sieve", DefaultBatchBytes: 1000}
			},
		},
		{
			name: "privilege", args: small, outcome: report.PreflightFailed, text: "you may not",
			change: func(p *place) { p.failOn("prepare", errors.New("you may not")) },
		},
		{
			name: "probe", args: small, outcome: report.PreflightFailed, text: "probing for transactions: it broke", table: true,
			change: func(p *place) { p.failOn("probe", errors.New("it broke")) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			prepared := false
			if c.change != nil {
				c.change(p)
			}
			next := p.meddle
			p.meddle = func(ctx context.Context, op string, number int64) error {
				err := next(ctx, op, number)
				prepared = prepared || op == "prepare" && err == nil
				return err
			}
			r := p.fails(c.args, c.outcome, c.text)
			require.Empty(t, r.Run.ID)
			require.Equal(t, c.table, prepared)
			require.Empty(t, p.memory.Applied())
			entries, _ := os.ReadDir(p.state)
			require.Empty(t, entries)
		})
	}
}

func (p *place) failOn(what string, err error) {
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == what {
			return err
		}
		return nil
	}
}

// then does something when the database is asked for what.
func (p *place) then(what string, do func()) {
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == what {
			do()
		}
		return nil
	}
}

func TestTableWithRowsIsRefused(t *testing.T) {
	p := newPlace(t)
	first := p.succeeds(small)
	p.fails(small, report.PreflightFailed, "table memory holds rows (choose --append")
	p.exact(0, 195)

	r := p.succeeds(small + " --append")
	require.NotEqual(t, first.Run.ID, r.Run.ID)
	require.EqualValues(t, 195, r.Plan.FirstKey)
	p.exact(0, 2*195)
}

func TestProbe(t *testing.T) {
	p := newPlace(t)
	p.memory.Unprovable = "MyISAM keeps what was rolled back"
	p.fails(small+" --delivery exactly-once", report.PreflightFailed, "cannot deliver exactly once here: MyISAM keeps what was rolled back")
	require.Empty(t, p.memory.Applied())

	r := p.succeeds(small)
	require.Equal(t, "at-least-once", r.Plan.Delivery)
	require.Equal(t, []string{"delivery is at least once: MyISAM keeps what was rolled back"}, r.Warnings)
	require.Zero(t, p.memory.Resolved())

	p = newPlace(t)
	p.memory.Unprovable = "never asked"
	p.failOn("probe", errors.New("there is no probe at least once"))
	require.Empty(t, p.succeeds(small+" --delivery at-least-once").Warnings)
}

// The table sees no key from the probe that it would not see from the run.
func TestProbeByTheFirstKey(t *testing.T) {
	p := newPlace(t)
	var keys []int64
	p.meddle = func(_ context.Context, op string, key int64) error {
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

func TestAtLeastOnce(t *testing.T) {
	t.Run("missing rows are rejected rows", func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, _ int) loadertest.Fault { return loadertest.Fault{Missing: number % 2} }
		r := p.fails(small+" --delivery at-least-once --verify ack", report.VerificationFailed, "185 of 195")
		require.EqualValues(t, 10, r.Result.Missing)
	})
	t.Run("and are counted when nothing is to be verified", func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, _ int) loadertest.Fault { return loadertest.Fault{Missing: number % 2} }
		r := p.fails(small+" --delivery at-least-once --verify none", report.Rejected, "the server took 10 rows less than it was sent")
		require.EqualValues(t, 10, r.Result.Missing)
		require.False(t, r.Verify.OK)
	})
	t.Run("but not by a sink that says that it counts nothing", func(t *testing.T) {
		p := newPlace(t)
		p.version = "8.4.0-terapush-sink-no-count"
		p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Missing: 3} }
		r := p.succeeds(small + " --delivery at-least-once --verify none")
		require.Zero(t, r.Result.Missing)
	})
	t.Run("rejected rows of a process that was stopped are the run's", func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, _ int) loadertest.Fault { return loadertest.Fault{Missing: number % 2} }
		p.meddle = func(_ context.Context, op string, number int64) error {
			if op == "load" && number == 12 {
				return errors.New("not now")
			}
			return nil
		}
		r := p.fails(small+" --delivery at-least-once --verify none --workers 1", report.Failed, "not now")
		require.EqualValues(t, 6, r.Result.Missing)
		p.failOn("", nil)
		r = p.fails("--resume "+p.run(), report.Rejected, "the server took 10 rows less than it was sent")
		require.EqualValues(t, 10, r.Result.Missing)
		r = p.fails("--resume "+p.run(), report.Rejected, "the server took 10 rows less than it was sent")
		require.EqualValues(t, 195-10, r.Result.Rows)
	})
	t.Run("a lost answer is sent again, and the report says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t)
			p.memory.Script = func(number int64, attempt int) loadertest.Fault {
				if number == 3 && attempt == 1 {
					return loadertest.Fault{After: loadertest.ErrConnection}
				}
				return loadertest.Fault{}
			}
			r := p.fails(small+" --delivery at-least-once", report.VerificationFailed, "")
			require.Contains(t, r.Warnings, "the answers to 1 attempts were lost, and delivery is at least once: their rows may be there twice")
			require.EqualValues(t, 205, r.Verify.FoundRows)
		})
	})
	t.Run("and resumed by the journal", func(t *testing.T) {
		p := newPlace(t)
		p.failOn("count", errors.New("not now"))
		p.fails(small+" --delivery at-least-once", report.Failed, "not now")
		p.failOn("", nil)
		require.True(t, p.succeeds("--resume "+p.run()).Verify.OK)
		p.exact(0, 195)
	})
}

func TestUnknownOutcomesAreNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, _ int) loadertest.Fault {
			if number == 7 {
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{}
		}
		var dead atomic.Bool
		p.meddle = func(_ context.Context, op string, number int64) error {
			if dead.Load() && op == "resolve" {
				return errors.New("nobody answers")
			}
			dead.CompareAndSwap(false, op == "load" && number == 7)
			return nil
		}
		r := p.fails(small, report.Unknown, "the outcome of 1 batches is unknown, the first are [7]")
		require.EqualValues(t, 1, r.Result.Unknown)
		require.Less(t, r.Result.Rows, int64(195))
		require.Equal(t, runlog.Loading, p.record().Stage)

		dead.Store(false)
		p.memory.Script = nil
		p.meddle = func(context.Context, string, int64) error { return nil }
		p.succeeds("--resume " + p.run())
		p.exact(0, 195)
	})
}

func TestServerLosesWhatItAcknowledged(t *testing.T) {
	p := newPlace(t)
	var crash sync.Once
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "claimed" {
			crash.Do(p.memory.Crash) // when all is in: the short last batch is lost as well
		}
		return nil
	}
	r := p.succeeds(small)
	p.exact(0, 195)
	require.Equal(t, []string{"the server lost 20 batches that it had acknowledged; the lost rows are sent again"}, r.Warnings)
	require.EqualValues(t, 195, r.Result.Rows)
	require.EqualValues(t, 20, r.Result.Batches)
	require.EqualValues(t, 195*24, r.Result.PayloadBytes)
	require.EqualValues(t, 40, r.Result.Attempts)
	require.False(t, r.Run.Resumed)
}

func TestServerLosesSomeWhileItLoads(t *testing.T) {
	p := newPlace(t)
	var crash sync.Once
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 11 {
			crash.Do(p.memory.Crash)
		}
		return nil
	}
	r := p.succeeds(small + " --workers 1")
	p.exact(0, 195)
	require.Contains(t, r.Warnings, "the server lost 11 batches that it had acknowledged; the lost rows are sent again")
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestVerificationFailure(t *testing.T) {
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "count" {
			p.memory.Crash()
		}
		return nil
	}
	r := p.fails(small, report.VerificationFailed, "")
	require.True(t, r.Verify.Ran)
	require.False(t, r.Verify.OK)
	require.EqualValues(t, 20, r.Verify.BadCount)
	require.Equal(t, runlog.Loaded, p.record().Stage)

	// The claims are gone with the rows, so a resume knows what to do.
	p.meddle = func(context.Context, string, int64) error { return nil }
	r = p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Equal(t, []string{"the server lost 20 batches that it had acknowledged; the lost rows are sent again"}, r.Warnings)
}

func TestJournalThatCannotBeWritten(t *testing.T) {
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 5 {
			// The record can be saved no more: a folder is in the way.
			return os.MkdirAll(filepath.Join(p.state, p.run(), "run.json.new"), 0o700)
		}
		return nil
	}
	p.fails(small, report.Failed, "saving the run's record")
	require.Equal(t, runlog.Loading, p.record().Stage)
}

func TestRateAndDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }
		r := p.succeeds("--duration 9500ms --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --workers 4")
		require.EqualValues(t, 400, r.Result.Rows, "four workers, ten batches each: what was begun is finished")
		require.Zero(t, r.Plan.Rows, "the run's end was a time: two runs of as long have the same plan")
		p.exact(0, 400)
		require.EqualValues(t, 400, p.record().Plan.Rows)
		require.False(t, p.record().Plan.ByDuration)
		require.Zero(t, p.succeeds("--resume "+p.run()).Plan.Rows)
		p.exact(0, 400)
	})
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		start := time.Now()
		p.succeeds("--rows 100 --batch-rows 10 --payload-bytes 16 --max-rate 100B/s --workers 1")
		require.Greater(t, time.Since(start), 25*time.Second)
	})
}

func TestDurationWithFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, attempt int) loadertest.Fault {
			f := loadertest.Fault{Delay: time.Second}
			if number == 9 && attempt == 1 {
				f = loadertest.Fault{Delay: time.Second / 2, Before: loadertest.ErrRejected}
			}
			return f
		}
		p.fails("--duration 1m --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --workers 4", report.Failed, "batch 9 (keys 90 to 99) is not applied")
		require.True(t, p.record().Plan.ByDuration, "how many rows the run has is not known yet")
		r := p.succeeds("--resume " + p.run())
		require.EqualValues(t, 160, r.Result.Rows, "12 batches were begun, and each worker might have begun one more")
		p.exact(0, 160)
	})
}

// A report is kept as it is, in records too: what is empty is {} or [], however early the run ended.
func TestReportsHoldNoNull(t *testing.T) {
	p := newPlace(t)
	for _, op := range []string{"", "open", "prepare", "load"} {
		p.failOn(op, errors.New("it is down"))
		r, _ := p.push(small + " --retries 0 --create recreate")
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NotContains(t, string(text), "null", op)
		require.Equal(t, report.Schema, r.Schema)
	}
	r, err := p.push("--rows 1 --workers -1")
	require.Error(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(text), "null")
}
