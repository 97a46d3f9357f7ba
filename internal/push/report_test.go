package push_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// oneSecond is what every batch takes.
func oneSecond(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }

// onceThrottled is oneSecond with a refusal of one batch.
func onceThrottled(number int64, attempt int) loadertest.Fault {
	f := loadertest.Fault{Delay: time.Second}
	if number == 3 && attempt == 1 {
		f.Before = loadertest.ErrThrottled
	}
	return f
}

func sum(all map[string]float64) (sum float64) {
	for _, seconds := range all {
		sum += seconds
	}
	return sum
}

func TestReportOfTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Script = onceThrottled
		p.then("claimed", func() { time.Sleep(time.Minute) })
		r := p.succeeds(small)
		require.Equal(t, map[string]int64{"throttled": 1}, r.Result.Errors)
		require.Equal(t, report.Closed, r.Latency.Loop)
		require.Zero(t, r.Latency.VisibleSeconds, "an ack says it")
		require.InDelta(t, 1, r.Latency.BatchSeconds.Max, 1e-9)
		require.InDelta(t, 60, r.Phases.Finish, 1e-6, "looking for lost claims is no time of workers, who have ended")

		require.InDelta(t, 4*r.Phases.Load, sum(r.WorkerSeconds), 1e-6)
		require.InDelta(t, 4*r.Phases.Load, sum(r.BoundBy.Seconds), 1e-6)
		require.InDelta(t, 21, r.WorkerSeconds["send"]+r.WorkerSeconds["wait_ack"], 1e-6)

		require.EqualValues(t, 1, r.Timeline.Interval)
		moments := r.Timeline.Moments
		require.Len(t, moments, int(math.Ceil(r.Phases.Load+60))+1, "one a second, and the end")
		require.Equal(t, "load", moments[2].Phase)
		require.Equal(t, "target", moments[2].BoundBy)
		require.Positive(t, moments[2].Rows)
		end := moments[len(moments)-1]
		require.Equal(t, report.Moment{At: end.At, Phase: "done", Rows: 195, PayloadBytes: 195 * 24, Retries: 1}, end)
		require.InDelta(t, r.Phases.Load+60, end.At, 1e-6, "nothing else takes time here")
	})
}

// warm takes two seconds for each of the first four batches, and one for each of the others.
func warm(number int64, _ int) loadertest.Fault {
	if number < 4 {
		return loadertest.Fault{Delay: 2 * time.Second}
	}
	return loadertest.Fault{Delay: time.Second}
}

// Batches are acknowledged after 2, 3, 4, 5 and 6 seconds, four at a time.
func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Script = warm
		r := p.succeeds(small + " --warm-up 2500ms")
		p.exact(0, 195)
		require.Equal(t, &report.Measured{From: 2.5, Seconds: 3.5, Rows: 155, PayloadBytes: 155 * 24}, r.Measured)
		require.Equal(t, []float64{155 / 3.5, 155 * 24 / 3.5, 155 / 3.5},
			[]float64{r.Result.RowsPerSecond, r.Result.BytesPerSecond, r.Rates.Load})
		require.InDelta(t, 1, r.Latency.BatchSeconds.Max, 1e-9, "that of the warm-up was longer")
		require.InDelta(t, 4*3.5, sum(r.WorkerSeconds), 1e-6)
		require.InDelta(t, 4*3.5, sum(r.BoundBy.Seconds), 1e-6)
		require.Equal(t, []any{int64(195), 6.0, 6.0, int64(20)}, []any{r.Result.Rows, r.Result.Seconds, r.Phases.Load, r.Result.Attempts}, "of the whole")
		require.Equal(t, "verified", string(p.record().Stage))
	})
	synctest.Test(t, func(t *testing.T) { // --duration begins after it
		p := newFixture(t)
		p.memory.Script = oneSecond
		r := p.succeeds(timed + "2s --workers 4 --warm-up 2500ms")
		require.Equal(t, &report.Measured{From: 2.5, Seconds: 2.5, Rows: 120, PayloadBytes: 120 * 24}, r.Measured)
	})
	synctest.Test(t, func(t *testing.T) { // a resumed process warms up again
		p := newFixture(t)
		p.memory.Script = warm
		time.AfterFunc(time.Second, func() { close(p.drain) })
		r := p.fails(small+" --warm-up 2500ms", report.Interrupted, "stopped")
		require.Equal(t, &report.Measured{From: 2}, r.Measured)
		require.EqualValues(t, 40, r.Result.Rows)
		require.Zero(t, r.Result.RowsPerSecond+r.Latency.BatchSeconds.Max+sum(r.WorkerSeconds)+sum(r.BoundBy.Seconds)+r.Client.LoadSeconds)
		require.Empty(t, r.BoundBy.Verdict)
		require.Equal(t, []string{"the load ended within --warm-up 2.5s: nothing is measured"}, r.Warnings)
		p.drain = make(chan struct{})
		r = p.succeeds("--resume " + r.Run.ID)
		require.Equal(t, &report.Measured{From: 2.5, Seconds: 1.5, Rows: 75, PayloadBytes: 75 * 24}, r.Measured)
		require.EqualValues(t, 195, r.Result.Rows)
	})
}

func TestMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t).succeeds(small + " --max-rate 100B/s")
		require.EqualValues(t, 100, r.Plan.MaxRate)
		require.Equal(t, report.Open, r.Latency.Loop)
		require.Greater(t, r.Phases.Load, float64(18*r.Plan.BatchBytes)/100, "the last batch begins when the others have had their time")
	})
}

func TestTimeUntilVisible(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		notes []string
		want  float64
	}{
		"shown later":         {takes: 1200 * time.Millisecond, want: 1.2},
		"nothing to wait for": {},
		"not seen":            {takes: time.Minute, notes: []string{"7 rows cannot be read after a minute"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFixture(t)
				p.memory.Script = oneSecond
				p.finishes(func(loader.KeyRange, int64) ([]string, error) { time.Sleep(c.takes); return c.notes, nil })
				r := p.succeeds(small)
				require.InDelta(t, c.want, r.Latency.VisibleSeconds, 1e-6)
				require.Zero(t, p.succeeds("--resume "+r.Run.ID).Latency.VisibleSeconds, "it had no ack of its own")
			})
		})
	}
}

// A sweep stops when the server's disk is full, wherever the run met that.
func TestClassOfWhatEndedTheRun(t *testing.T) {
	errDiskFull := errors.New("no space left on device")
	full := &loader.Error{Op: "load", Applied: loader.No, Err: errDiskFull}
	for _, op := range []string{"open", "prepare", "load", "count"} {
		p := newFixture(t)
		p.classes = map[error]loader.Class{errDiskFull: loader.ClassDiskFull}
		p.failOn(op, full)
		r, err := p.push(small + " --workers 1 --retries 0")
		require.ErrorIs(t, err, errDiskFull, op)
		require.Equal(t, map[string]int64{"disk_full": 1}, r.Result.Errors, op)
	}
	p := newFixture(t)
	p.failOn("prepare", errors.New("of no class"))
	require.Empty(t, p.fails(small, report.PreflightFailed, "of no class").Result.Errors)
	p.classes = map[error]loader.Class{syscall.ENOTDIR: loader.ClassConnection} // as drivers see it
	require.Empty(t, p.fails(small+" --state-dir /dev/null/x", report.PreflightFailed, "not a directory").Result.Errors, "ours")
}

// What to do about an error is told wherever the error is.
func TestHintsAreTold(t *testing.T) {
	hint := &loader.Error{Op: "load", Applied: loader.No, Err: loadertest.ErrRejected, Hint: "ask the owner"}
	p := newFixture(t)
	p.failOn("load", hint)
	r := p.fails(small+" --workers 1 --retries 0", report.Failed, "after 1 attempts: ")
	require.Regexp(t, `bad value \(ask the owner\)$`, r.Result.Error)
	require.Regexp(t, `bad value \(ask the owner\)$`, r.Result.Failures[0].Error)

	p = newFixture(t)
	p.checks(checking{err: hint})
	warnings := p.succeeds(small).Warnings
	require.Len(t, warnings, 1)
	require.Regexp(t, `^the server could not be checked: .* \(ask the owner\)$`, warnings[0])
}

// measuring is a back-end whose server counts what it does.
type measuring struct {
	hooked
	measure func(ctx context.Context) (map[string]float64, []string)
}

func (l measuring) Measured(ctx context.Context) (map[string]float64, []string) {
	return l.measure(ctx)
}

// The server is asked once what the load cost it, after the last session was closed and however the load ended; but not
// if it did nothing for the run, or if the user has just cut its connections.
func TestServerCost(t *testing.T) {
	const note = "one of 4 sessions broke: what it has cost is not known"
	cost := map[string]float64{"redo_bytes": 1 << 20, "cpu_seconds": 0.25}
	failing := func(op string) func(*fixture, func()) {
		return func(p *fixture, _ func()) { p.failOn(op, loadertest.ErrRejected) }
	}
	for name, c := range map[string]struct {
		prepare func(p *fixture, cancel func())
		resume  bool // after a process that failed to verify
		outcome report.Outcome
		asked   bool
	}{
		"ok":          {outcome: report.OK, asked: true},
		"a failure":   {prepare: failing("load"), outcome: report.Failed, asked: true},
		"a preflight": {prepare: failing("prepare"), outcome: report.PreflightFailed},
		"only proof":  {prepare: failing("count"), resume: true, outcome: report.OK},
		"a second signal": {prepare: func(p *fixture, cancel func()) {
			p.then("load", sync.OnceFunc(func() { close(p.drain); cancel() }))
		}, outcome: report.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			p, args, asked := newFixture(t), small, 0
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.prepare != nil {
				c.prepare(p, cancel)
			}
			if c.resume {
				args = "--resume " + p.fails(small, report.Failed, "bad value").Run.ID
				p.hook = nil
			}
			p.wrap = func(h hooked) loader.Loader {
				return measuring{h, func(ctx context.Context) (map[string]float64, []string) {
					asked++
					_, bounded := ctx.Deadline()
					require.True(t, bounded)
					require.Zero(t, p.open.Load(), "sessions that are still open have more to tell")
					return cost, []string{note}
				}}
			}
			r, err := push.Run(ctx, p.job(args))
			require.Equal(t, c.outcome, push.OutcomeOf(err))
			if !c.asked {
				require.Zero(t, asked)
				require.Empty(t, r.Cost)
				return
			}
			require.Equal(t, 1, asked)
			require.Equal(t, report.Cost(cost), r.Cost)
			require.Equal(t, []string{note}, r.Warnings)
			require.Contains(t, p.log.String(), note)
		})
	}
}

// A command to go on is printed for runs that can go on, and for no others.
func TestResumable(t *testing.T) {
	t.Parallel()
	down := errors.New("the server is down")
	failOn := func(op string) func(*fixture) { return func(p *fixture) { p.failOn(op, down) } }
	drop := func(op string) func(*fixture) {
		gone := errors.New("no such table")
		return func(p *fixture) {
			p.classes = map[error]loader.Class{gone: loader.ClassMissing}
			p.failOn(op, gone)
		}
	}
	inUse := func(p *fixture) {
		l, err := runlog.Open(p.state, p.run(), func(event.Event) {}, nil)
		require.NoError(p, err)
		p.Cleanup(func() { _ = l.Close() })
	}
	const hour = timed + "1h --workers 1 --retries 0"
	for name, c := range map[string]struct {
		first   string         // a process that is killed when five batches are in
		between func(*fixture) // what happens before the next
		args    string         // of the next; --resume where there was a first
		watch   error
		outcome report.Outcome
		want    bool
	}{
		"ok":                         {args: small, outcome: report.OK},
		"usage":                      {args: small + " --set unfit=1", outcome: push.Usage},
		"no run yet":                 {args: small, between: failOn("prepare"), outcome: report.PreflightFailed},
		"a run, and nothing sent":    {args: small, watch: down, outcome: report.PreflightFailed, want: true},
		"by duration, nothing sent":  {args: hour, watch: down, outcome: report.PreflightFailed},
		"sessions fail":              {args: small + " --retries 0", between: failOn("session"), outcome: report.Failed, want: true},
		"by duration, sessions fail": {args: hour, between: failOn("session"), outcome: report.Failed, want: true},
		"the proof fails":            {args: small, between: failOn("count"), outcome: report.Failed, want: true},
		"rows are gone": {args: small, between: func(p *fixture) { p.then("count", p.memory.Truncate) },
			outcome: report.VerificationFailed},
		"claims are gone":             {args: small, between: func(p *fixture) { p.then("claimed", p.memory.RemoveClaims) }, outcome: report.Failed},
		"dropped while it loads":      {args: small, between: drop("load"), outcome: report.Failed},
		"dropped while a load begins": {args: small, between: drop("session"), outcome: report.Failed},
		"dropped after the load":      {args: small, between: drop("claimed"), outcome: report.Failed},
		"dropped while it is counted": {args: small, between: drop("count"), outcome: report.Failed},
		"rows are missing": {args: small + " --delivery at-least-once --verify none",
			between: func(p *fixture) { p.memory.Script = oddMissing }, outcome: report.Rejected},
		"resumed, server down": {first: small, between: failOn("open"), outcome: report.PreflightFailed, want: true},
		"resumed, table not there": {first: small, between: func(p *fixture) { p.failOn("prepare", loader.Final(down)) },
			outcome: report.PreflightFailed},
		"resumed, table made again": {first: small, between: func(p *fixture) { p.memory.Truncate(); p.memory.Identity = "x" },
			outcome: report.PreflightFailed},
		"resumed, used by another":     {first: small, between: inUse, outcome: report.PreflightFailed},
		"resumed by duration, failing": {first: hour, between: failOn("load"), outcome: report.Failed, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			if c.first != "" {
				c.args = "--resume " + p.kill(c.first, 5)
			}
			if c.between != nil {
				c.between(p)
			}
			p.watch = func(push.Watched) (func(), error) { return func() {}, c.watch }
			r, err := p.push(c.args)
			require.Equal(t, c.outcome, push.OutcomeOf(err), "%v", err)
			require.Equal(t, c.want, r.Run.Resumable, "%v", err)
			if c.want {
				p.hook, p.watch = nil, nil
				p.succeeds("--resume " + p.run())
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	all := []report.Outcome{
		push.Usage, report.PreflightFailed, report.Interrupted, report.Unknown, report.VerificationFailed, report.Rejected, report.Failed,
	}
	of := func(o report.Outcome) error { return &push.Error{Outcome: o, Err: fmt.Errorf("%s happened", o)} }
	require.Equal(t, report.OK, push.OutcomeOf(nil))
	require.Equal(t, report.Failed, push.OutcomeOf(errors.New("anything")))
	for i, graver := range all {
		for _, other := range all[i:] {
			require.Equal(t, graver, push.OutcomeOf(errors.Join(of(other), of(graver))))
			require.Equal(t, graver, push.OutcomeOf(errors.Join(errors.New("x"), fmt.Errorf("%w, %w", of(graver), of(other)))))
			require.Equal(t, graver, push.OutcomeOf(&push.Error{Outcome: other, Err: of(graver)}))
		}
	}
}

func TestServerMetrics(t *testing.T) {
	var asked atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		_, _ = io.WriteString(w, "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} "+strconv.FormatInt(n, 10)+
			"\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} "+strconv.FormatInt(4*n, 10)+"\n")
	}))
	defer node.Close()
	p := newFixture(t)
	with := strings.Replace(node.URL, "http://", "http://u:s3cr3t@", 1) + "/metrics?token=s3cr3t"
	r := p.succeeds(small + " --server-metrics " + with)
	require.Equal(t, report.ServerLoad{URL: node.URL + "/metrics", CPU: 0.8, Cores: 1}, r.BoundBy.Evidence.Server)
	require.Empty(t, r.Warnings)
	require.EqualValues(t, 2, asked.Load(), "when the load began and when it ended")
	require.Zero(t, newFixture(t).succeeds(small+" --warm-up 1h --server-metrics "+with).BoundBy.Evidence.Server)
	require.EqualValues(t, 2, asked.Load(), "the warm-up was not over")
	require.NotContains(t, p.log.String(), "s3cr3t")
	require.NotContains(t, fmt.Sprint(p.record().Flags), "s3cr3t")

	node.Close()
	r = newFixture(t).succeeds(small + " --server-metrics " + with)
	require.Zero(t, r.BoundBy.Evidence.Server)
	require.Len(t, r.Warnings, 1, "and the run is none the worse")
	require.Contains(t, r.Warnings[0], "--server-metrics: "+node.URL+"/metrics: dial tcp")
	require.NotContains(t, r.Warnings[0], "s3cr3t")
}
