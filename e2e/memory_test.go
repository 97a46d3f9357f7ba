package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// Memory is a formula: the buffers, and little else.
func TestMemory(t *testing.T) {
	backendtest.Long(t)
	t.Parallel()
	for name, flags := range map[string][]string{
		"few large":  {"--workers", "4", "--batch-bytes", "8MiB", "--memory", "64MiB"},
		"many small": {"--workers", "64", "--batch-bytes", "256KiB", "--memory", "64MiB"},
	} {
		args := append([]string{"push", "discard://", "--bytes", scaled("512MiB", "8GiB"), "--json", "--state-dir", t.TempDir()}, flags...)
		within(t, name, run(t, args...).ends(t, 0))
	}
}

// The same with real connections: rows that are kept take it over the budget.
func TestMemoryOfConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		for _, method := range d.methods() {
			l := small(scaled[int64](100_000, 2_000_000))
			l.payload, l.batchRows, l.table = 512, 1000, strings.ReplaceAll(method, "-", "_")
			within(t, method, d.push(l.flags("--method", method, "--workers", "8", "--memory", "16MiB", "--verify", "none")...).run(t).ends(t, 0))
		}
	})
}

func within(t *testing.T, name string, r result) {
	t.Helper()
	is := reportOf(t, r)
	budget := int64(is.Plan.Buffers)*is.Plan.BatchBytes + 64<<20 + int64(is.Plan.Workers)<<20
	t.Logf("%s: peak %d MiB, budget %d MiB, %d buffers of %d KiB, %d refills", name,
		is.Client.PeakRSSBytes>>20, budget>>20, is.Plan.Buffers, is.Plan.BatchBytes>>10, is.Result.Refills)
	assert.LessOrEqual(t, is.Client.PeakRSSBytes, budget, name)
}
