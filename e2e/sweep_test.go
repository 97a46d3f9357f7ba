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

// kill -9 at any moment, again and again: the same cases as if nothing had been.
func TestSweepIsKilledAndGoesOn(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	d, dir := newDatabase(t, postgres), t.TempDir()
	plan, record := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "record.jsonl")
	require.NoError(t, os.WriteFile(plan, []byte(`name: small
rows: 4000
push: {payload_bytes: 100}
axes:
  batch_rows: [100, 2000]
  workers: [1, 2]
repeats: 2
warm_up: 1
`), 0o644))
	sweep := invocation{args: []string{"sweep", d.target(), "--plan", plan, "--record", record, "--state-dir", d.state}}
	kills := 0
	for range scaled(3, 60) {
		p := sweep.start(t)
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
	sweep.run(t).ends(t, 0)
	r, err := results.Read(record)
	require.NoError(t, err)
	pushes := map[results.Push]bool{}
	for _, e := range r.Entries {
		assert.Equal(t, results.Measured, e.Status, "%v", e.Push())
		pushes[e.Push()] = true
	}
	assert.Equal(t, []int{9, 9}, []int{len(pushes), len(r.Entries)}, "each case once")
	isEmpty(t, d.state)
	assert.EqualValues(t, 4000, d.number(t, "SELECT count(*) FROM documents"), "the last case's rows are left")
	assert.Zero(t, d.claims(), "what killed processes left is forgotten")
}

func isEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}
