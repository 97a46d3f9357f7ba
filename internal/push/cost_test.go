package push_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// measures makes the place a Measurer and counts how often it was asked, after the last session was closed.
func (p *place) measures(cost map[string]float64, notes ...string) (asked *int) {
	asked = new(int)
	p.measured = func(ctx context.Context) (map[string]float64, []string) {
		*asked++
		_, bounded := ctx.Deadline()
		require.True(p, bounded)
		require.NotZero(p, p.opened.Load())
		require.Equal(p, p.opened.Load(), p.closed.Load(), "sessions that are still open have more to tell")
		return cost, notes
	}
	return asked
}

func TestServerCost(t *testing.T) {
	cost := map[string]float64{"redo_bytes": 1 << 20, "cpu_seconds": 0.25}
	p := newPlace(t)
	asked := p.measures(cost, "one of 4 sessions broke: what it has cost is not known")
	r := p.succeeds(small)
	require.Equal(t, 1, *asked)
	require.Equal(t, report.Cost(cost), r.Cost)
	require.Equal(t, []string{"one of 4 sessions broke: what it has cost is not known"}, r.Warnings)
	require.Contains(t, p.log.String(), "one of 4 sessions broke", "the log tells it, too")

	require.Empty(t, newPlace(t).succeeds(small).Cost, "nobody measured")
}

// A run that fails has cost something, too.
func TestServerCostOfAFailure(t *testing.T) {
	p := newPlace(t)
	asked := p.measures(map[string]float64{"redo_bytes": 7})
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 3 {
			return loadertest.ErrRejected
		}
		return nil
	}
	r, err := p.push(small)
	require.Error(t, err)
	require.Equal(t, report.Failed, r.Result.Outcome)
	require.Equal(t, 1, *asked)
	require.Equal(t, report.Cost{"redo_bytes": 7}, r.Cost)
}

// Nobody asks a server that did nothing for the run, or whose connections the user has just cut.
func TestNoServerCost(t *testing.T) {
	p := newPlace(t)
	p.measures(map[string]float64{"redo_bytes": 7})
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "count" {
			return errors.New("the server is in a bad mood")
		}
		return nil
	}
	r := p.fails(small, report.Failed, "in a bad mood")
	p.meddle = func(context.Context, string, int64) error { return nil }
	asked := p.measures(nil)
	require.Empty(t, p.succeeds("--resume "+r.Run.ID).Cost)
	require.Zero(t, *asked, "a process that only verifies")

	p = newPlace(t)
	asked = p.measures(nil)
	ctx, hard := context.WithCancel(t.Context())
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 3 {
			close(p.drain)
			hard()
		}
		return nil
	}
	_, err := push.Run(ctx, p.job(small+" --workers 1"))
	require.Equal(t, report.Interrupted, push.OutcomeOf(err))
	require.Zero(t, *asked, "a second signal")

	p = newPlace(t)
	asked = p.measures(nil)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "prepare" {
			return errors.New("no such table")
		}
		return nil
	}
	p.fails(small, report.PreflightFailed, "no such table")
	require.Zero(t, *asked, "a preflight that failed")
}
