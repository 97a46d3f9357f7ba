package e2e_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

// sweepOf is a sweep of a plan with its own folder: plan, record and state.
type sweepOf struct {
	plan, record, state string
}

func newSweep(t *testing.T, plan string) sweepOf {
	dir := t.TempDir()
	s := sweepOf{filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "record.jsonl"), filepath.Join(dir, "state")}
	require.NoError(t, os.WriteFile(s.plan, []byte(plan), 0o644))
	return s
}

func (s sweepOf) of(target string, args ...string) invocation {
	return invocation{args: append([]string{"sweep", target, "--plan", s.plan, "--record", s.record, "--state-dir", s.state}, args...)}
}

// pushes are what the record has, each once.
func (s sweepOf) pushes(t *testing.T) map[results.Push]results.Status {
	t.Helper()
	r, err := results.Read(s.record)
	require.NoError(t, err)
	all := map[results.Push]results.Status{}
	for _, e := range r.Entries {
		require.NotContains(t, all, e.Push(), "pushed twice")
		all[e.Push()] = e.Status
	}
	return all
}

const smallSweep = `name: small
title: Small documents in four ways
rows: 4000
push: {payload_bytes: 100}
axes:
  batch_rows: [100, 2000]
  workers: [1, 2]
repeats: 2
warm_up: 1
`

// kill -9 at any moment, again and again: the same cases as if nothing had been.
func TestSweepIsKilledAndGoesOn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	s := newSweep(t, smallSweep)
	kills := 0
	for range scaled(3, 60) {
		p := s.of(d.target()).start(t)
		select {
		case <-p.done:
			p.wait(t).ends(t, 0)
		case <-time.After(time.Duration(chance.Int64N(int64(800 * time.Millisecond)))):
			_ = p.Process.Kill()
			<-p.done
			kills++
		}
	}
	t.Logf("killed %d times", kills)
	s.of(d.target()).run(t).ends(t, 0)
	got := s.pushes(t)
	require.Len(t, got, 9)
	for push, status := range got {
		assert.Equal(t, results.Measured, status, "%v", push)
	}
	isEmpty(t, s.state)
	assert.EqualValues(t, 4000, d.number(t, "SELECT count(*) FROM documents"), "the last case's rows are left")
	assert.Zero(t, d.claims(), "what killed processes left is forgotten")
}
