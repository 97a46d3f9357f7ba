package push_test

import (
	"context"
	"errors"
	"fmt"
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

// A signal may come at any time. Where nothing is lost by it the phase is cut short; batches are finished.
func TestInterrupted(t *testing.T) {
	for _, op := range []string{"open", "prepare", "probe", "reserve", "load", "claimed", "count"} {
		interrupt := func(t *testing.T) {
			p := newPlace(t)
			p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }
			args := small + " --workers 1"
			if op == "reserve" {
				args += " --append"
			}
			stopped := false
			p.meddle = func(ctx context.Context, now string, number int64) error {
				if stopped || now != op || op == "load" && number < 7 {
					return nil
				}
				stopped = true
				close(p.drain)
				if op == "load" || op == "claimed" {
					return nil
				}
				<-ctx.Done()
				return errors.New("the driver's own words for a context that has ended")
			}
			r := p.fails(args, report.Interrupted, "stopped by a signal")
			require.True(t, stopped)

			begun := op == "load" || op == "claimed" || op == "count"
			require.Equal(t, begun, r.Run.ID != "")
			if op == "load" {
				require.EqualValues(t, 80, r.Result.Rows, "the batch on its way is finished")
			}
			if !begun {
				return
			}
			p.drain = make(chan struct{})
			p.succeeds("--resume " + r.Run.ID)
			p.exact(0, 195)
		}
		t.Run(op, func(t *testing.T) { synctest.Test(t, interrupt) })
	}
}

func TestInterruptedWhileFilling(t *testing.T) {
	p := newPlace(t)
	j := p.job(small)
	j.Watch = func(push.Watched) (func(), error) {
		close(p.drain) // the last moment before buffers are filled
		return func() {}, nil
	}
	r, err := push.Run(t.Context(), j)
	require.Equal(t, report.Interrupted, push.OutcomeOf(err))
	require.Empty(t, p.memory.Applied())
	require.Equal(t, runlog.Loading, p.record().Stage)
	p.drain = make(chan struct{})
	p.succeeds("--resume " + r.Run.ID)
	p.exact(0, 195)
}

func TestInterruptedDurationRun(t *testing.T) { synctest.Test(t, interruptedDurationRun) }

func interruptedDurationRun(t *testing.T) {
	p := newPlace(t)
	p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Delay: time.Second} }
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 7 {
			close(p.drain)
		}
		return nil
	}
	r := p.fails("--duration 1h --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --workers 1", report.Interrupted, "stopped by a signal")
	p.drain = make(chan struct{})
	got := p.succeeds("--resume " + r.Run.ID)
	require.EqualValues(t, 80, got.Result.Rows)
	p.exact(0, 80)
}

func TestSecondSignal(t *testing.T) {
	p := newPlace(t)
	ctx, hard := context.WithCancelCause(t.Context())
	p.memory.Script = func(number int64, _ int) loadertest.Fault { return loadertest.Fault{Stall: number == 7} }
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 7 {
			close(p.drain)
			hard(errors.New("a second signal closed the connections"))
		}
		return nil
	}
	r, err := push.Run(ctx, p.job(small+" --workers 1"))
	require.Equal(t, report.Interrupted, push.OutcomeOf(err))
	require.EqualValues(t, 70, r.Result.Rows)
	p.drain = make(chan struct{})
	p.memory.Script = nil
	p.meddle = func(context.Context, string, int64) error { return nil }
	p.succeeds("--resume " + r.Run.ID)
	p.exact(0, 195)
}

// What was found out is not hidden by a signal that came later.
func TestSignalAfterTheVerdict(t *testing.T) {
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		switch op {
		case "count":
			p.memory.Crash()
		case "counted":
			close(p.drain)
		}
		return nil
	}
	p.fails(small, report.VerificationFailed, "")
}

// A command to go on is printed for runs that can go on, and for no others.
func TestResumable(t *testing.T) {
	down := errors.New("the server is down")
	failOn := func(op string) func(*place) { return func(p *place) { p.failOn(op, down) } }
	inUse := func(p *place) {
		l, err := runlog.Open(p.state, p.run(), func(event.Event) {})
		require.NoError(p, err)
		p.Cleanup(func() { _ = l.Close() })
	}
	const timed = "--duration 1h --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --workers 1"
	for name, c := range map[string]struct {
		first   string       // a process that is killed when five batches are in
		between func(*place) // what happens before the next
		args    string       // of the next; --resume where there was a first
		watch   error
		outcome report.Outcome
		want    bool
	}{
		"ok":                         {args: small, outcome: report.OK},
		"usage":                      {args: small + " --set x", outcome: push.Usage},
		"no run yet":                 {args: small, between: failOn("prepare"), outcome: report.PreflightFailed},
		"a run, and nothing sent":    {args: small, watch: down, outcome: report.PreflightFailed, want: true},
		"by duration, nothing sent":  {args: timed, watch: down, outcome: report.PreflightFailed},
		"sessions fail":              {args: small + " --retries 0", between: failOn("session"), outcome: report.Failed, want: true},
		"by duration, sessions fail": {args: timed + " --retries 0", between: failOn("session"), outcome: report.Failed, want: true},
		"the proof fails":            {args: small, between: failOn("count"), outcome: report.Failed, want: true},
		"rows are gone":              {args: small, between: func(p *place) { p.then("count", p.memory.Truncate) }, outcome: report.VerificationFailed},
		"claims are gone":            {args: small, between: func(p *place) { p.then("claimed", p.memory.RemoveClaims) }, outcome: report.Failed},
		"rows are missing": {
			args: small + " --delivery at-least-once --verify none", outcome: report.Rejected,
			between: func(p *place) {
				p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Missing: 1} }
			},
		},
		"resumed, server down":         {first: small, between: failOn("open"), outcome: report.PreflightFailed, want: true},
		"resumed, table not there":     {first: small, between: func(p *place) { p.failOn("prepare", loader.Final(down)) }, outcome: report.PreflightFailed},
		"resumed, table made anew":     {first: small, between: func(p *place) { p.memory.Truncate(); p.memory.Identity = "x" }, outcome: report.PreflightFailed},
		"resumed, used by another":     {first: small, between: inUse, outcome: report.PreflightFailed},
		"resumed by duration, failing": {first: timed, between: failOn("load"), outcome: report.Failed, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if c.first != "" {
				c.args = "--resume " + p.kill(c.first, 5)
			}
			if c.between != nil {
				c.between(p)
			}
			j := p.job(c.args)
			j.Watch = func(push.Watched) (func(), error) { return func() {}, c.watch }
			r, err := push.Run(t.Context(), j)
			require.Equal(t, c.outcome, push.OutcomeOf(err), "%v", err)
			require.Equal(t, c.want, r.Run.Resumable, "%v", err)
			if c.want {
				p.failOn("", nil)
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
		require.Equal(t, graver, push.OutcomeOf(of(graver)))
		require.Equal(t, graver, push.OutcomeOf(fmt.Errorf("while: %w", of(graver))))
		for _, other := range all[i:] {
			require.Equal(t, graver, push.OutcomeOf(errors.Join(of(other), of(graver))))
			require.Equal(t, graver, push.OutcomeOf(errors.Join(errors.New("x"), fmt.Errorf("%w, %w", of(graver), of(other)))))
			require.Equal(t, graver, push.OutcomeOf(&push.Error{Outcome: other, Err: of(graver)}))
		}
	}
}
