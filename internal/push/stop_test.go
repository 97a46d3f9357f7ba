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
