package push_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// slow makes every batch take a second.
func (p *place) slow() {
	p.memory.Script = func(number int64, attempt int) loadertest.Fault {
		if number == 3 && attempt == 1 {
			return loadertest.Fault{Delay: time.Second, Before: loadertest.ErrThrottled}
		}
		return loadertest.Fault{Delay: time.Second}
	}
}

func TestWhatARunReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.slow()
		r := p.succeeds(small + " --verify count")
		require.Equal(t, map[string]int64{"throttled": 1}, r.Result.Errors)
		require.Zero(t, r.Plan.MaxRate)
		require.Equal(t, report.Closed, r.Latency.Loop)
		require.Zero(t, r.Latency.VisibleSeconds, "an ack says it")
		require.InDelta(t, 1, r.Latency.BatchSeconds.Max, 1e-9)

		require.Len(t, r.WorkerSeconds, len(event.States()))
		all := 0.0
		for _, seconds := range r.WorkerSeconds {
			all += seconds
		}
		require.InDelta(t, 4*r.Phases.Load, all, 1e-6)
		require.InDelta(t, 21, r.WorkerSeconds["send"]+r.WorkerSeconds["wait_ack"], 1e-6)
		require.Positive(t, r.WorkerSeconds["backoff"])

		require.EqualValues(t, 1, r.Timeline.Interval)
		moments := r.Timeline.Moments
		require.Len(t, moments, int(math.Ceil(r.Phases.Load))+1, "one a second, and the end")
		require.Equal(t, "load", moments[2].Phase)
		require.Equal(t, "target", moments[2].BoundBy)
		require.Positive(t, moments[2].Rows)
		end := moments[len(moments)-1]
		require.Equal(t, report.Moment{At: end.At, Phase: "done", Rows: 195, PayloadBytes: 195 * 24, Retries: 1}, end)
		end.Phase, end.BoundBy = "load", "tail"
		require.Equal(t, end, moments[len(moments)-2])
		require.InDelta(t, r.Phases.Load, end.At, 1e-6, "nothing else takes time here")
	})
}

func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.slow()
		r := p.succeeds(small + " --max-rate 100B/s")
		require.EqualValues(t, 100, r.Plan.MaxRate)
		require.Equal(t, report.Open, r.Latency.Loop)
		whole := float64(r.Plan.BatchBytes) / 100 // seconds a batch
		require.InDelta(t, 19*whole+1, r.Phases.Load, 2*whole, "the last batch begins when the others have had their time")
		require.Greater(t, r.Latency.BatchSeconds.Max, 2.0, "of the batch that was sent twice")
		require.Greater(t, r.WorkerSeconds["wait_rate"], r.Phases.Load)
	})
}

// Resumed rows were acknowledged by another process: they are in no moment of this one.
func TestTimelineOfAResumedRun(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small, 5)
	r := p.succeeds("--resume " + run)
	end := r.Timeline.Moments[len(r.Timeline.Moments)-1]
	require.Positive(t, r.Run.ResumedRows)
	require.Equal(t, r.Result.Rows-r.Run.ResumedRows, end.Rows)
}

func TestTimeUntilVisible(t *testing.T) {
	for name, c := range map[string]struct {
		finish func(context.Context, loader.KeyRange, int64) ([]string, error)
		want   float64
	}{
		"shown later": {func(context.Context, loader.KeyRange, int64) ([]string, error) {
			time.Sleep(1200 * time.Millisecond)
			return nil, nil
		}, 1.2},
		"nothing to wait for": {func(context.Context, loader.KeyRange, int64) ([]string, error) { return nil, nil }, 0},
		"not seen": {func(context.Context, loader.KeyRange, int64) ([]string, error) {
			time.Sleep(time.Minute)
			return []string{"7 rows cannot be read after a minute"}, nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t)
				p.slow()
				p.finish = c.finish
				r := p.succeeds(small)
				require.InDelta(t, c.want, r.Latency.VisibleSeconds, 1e-6)
				require.Zero(t, p.succeeds("--resume "+r.Run.ID).Latency.VisibleSeconds, "it had no ack of its own")
			})
		})
	}
}

// A sweep stops when the server's disk is full, wherever the run met that.
func TestClassOfWhatEndedTheRun(t *testing.T) {
	full := &loader.Error{Op: "load", Applied: loader.No, Err: errDiskFull}
	for _, op := range []string{"open", "prepare", "load", "count"} {
		p := newPlace(t)
		p.classes = map[error]loader.Class{errDiskFull: loader.ClassDiskFull}
		p.failOn(op, full)
		r, err := p.push(small + " --workers 1 --retries 0")
		require.ErrorIs(t, err, errDiskFull, op)
		require.Equal(t, map[string]int64{"disk_full": 1}, r.Result.Errors, op)
		require.Equal(t, report.Closed, r.Latency.Loop)
	}
	p := newPlace(t)
	p.failOn("prepare", errors.New("of no class"))
	require.Empty(t, p.fails(small, report.PreflightFailed, "of no class").Result.Errors)
	p.classes = map[error]loader.Class{syscall.ENOTDIR: loader.ClassConnection} // as drivers see it
	require.Empty(t, p.fails(small+" --state-dir /dev/null/x", report.PreflightFailed, "not a directory").Result.Errors, "ours")
	require.Empty(t, p.fails(small+" --set x", "usage", "name=value").Result.Errors)
}

var errDiskFull = errors.New("no space left on device")

// To empty or drop a large table takes as long as it takes; to look at one does not.
func TestTimeToMakeTheTableReady(t *testing.T) {
	for create, ok := range map[string]bool{"if-missing": false, "never": false, "recreate": true, "truncate": true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace(t)
			p.meddle = func(ctx context.Context, op string, _ int64) error {
				if op != "prepare" {
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Minute):
					return nil
				}
			}
			r, err := p.push(fmt.Sprintf("%s --create %s", small, create))
			require.Equal(t, ok, err == nil, "%s: %v", create, err)
			if ok {
				require.InDelta(t, 60, r.Phases.Prepare, 1e-6)
			}
		})
	}
}
