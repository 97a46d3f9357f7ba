package push_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// addsUp checks what holds of every verdict.
func addsUp(t *testing.T, r *report.Report) {
	t.Helper()
	var shares, seconds, workers float64
	for _, l := range event.Limits() {
		require.Contains(t, r.BoundBy.Shares, string(l))
		require.GreaterOrEqual(t, r.BoundBy.Shares[string(l)], 0.0)
		shares += r.BoundBy.Shares[string(l)]
		seconds += r.BoundBy.Seconds[string(l)]
	}
	for _, s := range r.WorkerSeconds {
		workers += s
	}
	require.InDelta(t, 1, shares, 1e-9)
	require.InEpsilon(t, workers, seconds, 1e-6)
}

// To look whether all claims are still there is no time of workers, who have ended: one alone has nobody to wait for.
func TestLostClaimsAreLookedForInNobodysTime(t *testing.T) {
	const looks = 300 * time.Millisecond
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "claimed" {
			time.Sleep(looks)
		}
		return nil
	}
	r := p.succeeds("--rows 195 --batch-rows 10 --payload-bytes 16 --workers 1")
	addsUp(t, r)
	require.GreaterOrEqual(t, r.Phases.Finish, looks.Seconds())
	require.Less(t, r.BoundBy.Seconds["tail"], looks.Seconds())
}

// A staged run's sessions wait for commits, not for answers.
func TestBoundByCommits(t *testing.T) {
	p := newStaged(t, loader.DedupTx)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "commit" {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	r := p.succeeds(grouped + " --commit-batches 1")
	addsUp(t, r)
	require.Equal(t, "target", r.BoundBy.Verdict)
	require.Positive(t, r.WorkerSeconds["wait_commit"])
}

func TestNoVerdictWithoutALoad(t *testing.T) {
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "probe" {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	r, err := p.push(small)
	require.Error(t, err)
	require.Empty(t, r.BoundBy.Verdict)
	require.Len(t, r.BoundBy.Shares, len(event.Limits()))
}
