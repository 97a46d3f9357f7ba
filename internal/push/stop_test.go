package push_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
)

// A signal may come at any time. Where nothing is lost by it the phase is cut short; batches are finished.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open", "prepare", "probe", "reserve", "load", "claimed", "count"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFixture(t)
				p.memory.Script = oneSecond
				args := small + " --workers 1"
				if op == "reserve" {
					args += " --append"
				}
				stopped := false
				p.hook = func(ctx context.Context, now string, number int64) error {
					if stopped || now != op || op == "load" && number < 7 {
						return nil
					}
					stopped = true
					close(p.drain)
					switch op {
					case "claimed":
						synctest.Wait() // else the push may be over before it hears of the signal
						return nil
					case "load":
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
					require.Equal(t, runlog.Loading, p.record().Stage)
				}
				if !begun {
					return
				}
				p.drain = make(chan struct{})
				p.succeeds("--resume " + r.Run.ID)
				p.exact(0, 195)
			})
		})
	}
}

func TestInterruptedWhileFilling(t *testing.T) {
	p := newFixture(t)
	p.watch = func(push.Watched) (func(), error) {
		close(p.drain) // the last moment before buffers are filled
		return func() {}, nil
	}
	r := p.fails(small, report.Interrupted, "stopped by a signal")
	require.Empty(t, p.memory.Applied())
	require.Equal(t, runlog.Loading, p.record().Stage)
	p.drain, p.watch = make(chan struct{}), nil
	p.succeeds("--resume " + r.Run.ID)
	p.exact(0, 195)
}

// What was found out is not hidden by a signal that came later.
func TestSignalAfterTheVerdict(t *testing.T) {
	p := newFixture(t)
	p.hook = func(_ context.Context, op string, _ int64) error {
		switch op {
		case "count":
			p.memory.Crash()
		case "after count":
			close(p.drain)
		}
		return nil
	}
	p.fails(small, report.VerificationFailed, "")
}
