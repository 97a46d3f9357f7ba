package push_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// trial is push of one that is only measured.
func (p *fixture) trial(args string) (*report.Report, error) {
	p.Helper()
	j := p.job(args)
	j.Trial = true
	return push.Run(p.Context(), j)
}

// killTrial is trial of a process that dies at the fifth batch, and asks the database for nothing any more.
func (p *fixture) killTrial(args string) (run string) {
	p.Helper()
	var loads atomic.Int32
	var gone atomic.Bool
	p.hook = func(_ context.Context, op string, _ int64) error {
		// A group is committed beside the worker, perhaps before its fifth batch.
		if op == "commit" || op == "load" && loads.Add(1) == 5 {
			gone.Store(true)
		}
		if gone.Load() {
			return errors.New("the process is gone")
		}
		return nil
	}
	r, err := p.trial(args + " --workers 1 --retries 0")
	require.Error(p, err)
	p.hook = nil
	require.Equal(p, []loader.RunState{loader.RunOpen}, p.states(r.Run.ID))
	return r.Run.ID
}

// left lists the state folder.
func (p *fixture) left() []os.DirEntry {
	entries, err := os.ReadDir(p.state)
	require.NoError(p, err)
	return entries
}

// A trial leaves its rows and its report, however it ends.
func TestTrialLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		outcome report.Outcome
		fault   func(p *fixture) error
	}{
		"it is proven": {report.OK, func(*fixture) error { return nil }},
		"it fails":     {report.Failed, func(*fixture) error { return loader.Final(errors.New("no more rows")) }},
		"it is stopped": {report.Interrupted, func(p *fixture) error {
			close(p.drain)
			return nil
		}},
	} {
		p := newFixture(t)
		p.at("load", 7, func() error { return c.fault(p) })
		r, err := p.trial(small + " --workers 1")
		require.Equal(t, c.outcome, push.OutcomeOf(err), name)
		require.False(t, r.Run.Resumable, name)
		require.NotEmpty(t, p.memory.Applied(), name)
		require.Equal(t, []loader.RunState{loader.RunForgotten}, p.states(r.Run.ID), name)
		require.Zero(t, p.claims(r.Run.ID), name)
		require.Empty(t, p.left(), name)
	}
}

// A killed trial has the table, and claims. The next one with the same folder frees them, over its own connection.
func TestKilledTrial(t *testing.T) {
	p := newFixture(t)
	killed := p.killTrial(small)
	require.Equal(t, 4, p.claims(killed))
	elsewhere := p.target
	p.target = "memory://u@h/other"
	_, err := p.trial(small + " --create recreate")
	require.ErrorContains(t, err, "belongs to run "+killed, "a target with another name may be another database")

	p.target = elsewhere
	p.failOn("forget", errors.New("the server is down"))
	r, err := p.trial(small + " --create recreate")
	require.Error(t, err)
	require.Contains(t, r.Warnings, "run "+killed+" may still have claims, or the table: the server is down")
	p.hook = nil
	require.NoError(t, push.FreeKilled(t.Context(), p.job(small)), "without a trial")
	require.Zero(t, p.claims(killed))
	require.Empty(t, p.left())

	killed = p.killTrial(small + " --create recreate")
	r, err = p.trial(small + " --create recreate")
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	p.exact(0, 195)
	require.Zero(t, p.claims(killed))
	require.Empty(t, p.left())
}

// What a staged method leaves is that method's: claims do not go without it. Objects stay, and a warning says where.
func TestKilledStagedTrial(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	killed := p.killTrial(grouped)
	r, err := p.trial(grouped + " --create recreate")
	require.NoError(t, err)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "of run "+killed+" stay in the object store under ")
	require.Empty(t, p.left())

	killed = p.killTrial(grouped + " --create recreate")
	_, err = p.trial(strings.ReplaceAll(grouped, "bucket", "other") + " --create recreate")
	require.ErrorContains(t, err, "belongs to run "+killed)
	require.Len(t, p.left(), 1)
}
