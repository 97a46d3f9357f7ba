package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// push is a push into the test's database that prints its report as JSON and no progress.
func (d *database) push(flags ...string) invocation { return d.pushTo(d.target(), flags...) }

func (d *database) pushTo(target string, flags ...string) invocation {
	args := []string{"push", target, "--state-dir", d.state, "--json", "--progress", "none"}
	return invocation{args: append(args, flags...)}
}

// resume goes on with the only run there is.
func (d *database) resume(t *testing.T, flags ...string) invocation {
	t.Helper()
	return d.push(append([]string{"--resume", d.run(t)}, flags...)...)
}

// runs lists the ids of all runs in the state folder. Hidden is what a process that was killed had not made a run yet.
func (d *database) runs(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(d.state)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	var ids []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// journalLines counts the lines of all runs' journals, but for the first of each piece.
func (d *database) journalLines(t *testing.T) (lines int) {
	t.Helper()
	for _, id := range d.runs(t) {
		pieces, err := filepath.Glob(filepath.Join(d.state, id, "journal-*.jsonl"))
		require.NoError(t, err)
		for _, piece := range pieces {
			text, err := os.ReadFile(piece)
			require.NoError(t, err)
			lines += bytes.Count(text, []byte("\n")) - 1
		}
	}
	return lines
}

// run is the id of the only run.
func (d *database) run(t testing.TB) string {
	t.Helper()
	ids := d.runs(t)
	require.Len(t, ids, 1, "runs in the state folder")
	return ids[0]
}

// reportOf reads the one JSON object that stdout has to hold.
func reportOf(t *testing.T, r result) report.Report {
	t.Helper()
	var parsed report.Report
	in := json.NewDecoder(strings.NewReader(r.stdout))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&parsed), "stdout of %s is no report: %q, stderr: %s", r.line, r.stdout, r.stderr)
	_, err := in.Token()
	require.ErrorIs(t, err, io.EOF, "stdout holds more than one object: %s", r.stdout)
	assert.Equal(t, report.Schema, parsed.Schema)
	return parsed
}

// claims counts the claim rows of batches; 0 without a claim table.
func (d *database) claims() (n int64) {
	if d.kind == databend { // which has none: the files that it has loaded
		history := fmt.Sprintf("SELECT COUNT(*) FROM copy_history('%s.orders')", strings.Trim(d.url.Path, "/"))
		_ = d.query(history, func(scan func(...any) error) error { return scan(&n) })
		return n
	}
	return d.claimsIn("terapush_claims")
}

func (d *database) claimsIn(table string) (n int64) {
	_ = d.query("SELECT COUNT(*) FROM "+table+" WHERE batch >= 0", func(scan func(...any) error) error { return scan(&n) })
	return n
}

// untilClaims waits until so many batches are in, while the process runs.
func (d *database) untilClaims(t *testing.T, p *process, n int64) {
	t.Helper()
	p.until(t, fmt.Sprintf("%d claims", n), func() bool { return d.claims() >= n })
}

// again is a command on the only run of the state folder.
func (d *database) again(t *testing.T, command string, flags ...string) invocation {
	t.Helper()
	return invocation{args: append([]string{command, d.target(), "--run", d.run(t), "--state-dir", d.state}, flags...)}
}

// proven asserts that the run ended well and every row was found.
func proven(t *testing.T, is report.Report, rows int64) {
	t.Helper()
	assert.Equal(t, report.OK, is.Result.Outcome)
	assert.Equal(t, []any{"full", true, rows, rows}, []any{is.Verify.Mode, is.Verify.OK, is.Verify.ExpectedRows, is.Verify.FoundRows})
	assert.Positive(t, is.Verify.SampledRows)
	assert.Equal(t, rows, is.Result.Rows)
	assert.Equal(t, "exactly-once", is.Plan.Delivery)
}
