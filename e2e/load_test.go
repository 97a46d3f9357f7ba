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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/rows"
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
func (d *database) runs(t *testing.T) []string {
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

// journalLines counts the lines of all runs' journals: one for every attempt that began or ended, and a first.
func (d *database) journalLines(t *testing.T) (lines int) {
	t.Helper()
	for _, id := range d.runs(t) {
		text, err := os.ReadFile(filepath.Join(d.state, id, "journal.jsonl"))
		require.NoError(t, err)
		lines += bytes.Count(text, []byte("\n"))
	}
	return lines
}

// run is the id of the only run.
func (d *database) run(t *testing.T) string {
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

// load is what a push was told about its rows, and so what has to be in the table.
type load struct {
	rows      int64
	payload   int // bytes
	batchRows int64
	seed      uint64
	first     int64
	kind      dataset.Kind
	table     string
}

// small is a load of many little batches.
func small(rows int64) load {
	return load{rows: rows, payload: 128, batchRows: 200, seed: 1, kind: dataset.Bytes, table: "documents"}
}

// flags are the command line's for the load.
func (l load) flags(more ...string) []string {
	f := []string{
		"--rows", fmt.Sprint(l.rows), "--payload-bytes", fmt.Sprint(l.payload), "--batch-rows", fmt.Sprint(l.batchRows),
		"--seed", fmt.Sprint(l.seed), "--payload-kind", string(l.kind), "--table", l.table,
	}
	if l.first != 0 {
		f = append(f, "--first-key", fmt.Sprint(l.first))
	}
	return append(f, more...)
}

// batches is how many batches the load has.
func (l load) batches() int64 { return (l.rows + l.batchRows - 1) / l.batchRows }

// isExact asks the database itself, byte by byte: every row of the load once, and no other.
func (d *database) isExact(t *testing.T, l load) {
	t.Helper()
	total := d.number(t, "SELECT COUNT(*) FROM "+l.table)
	require.Equal(t, l.rows, total, "rows in the table")
	require.Equal(t, l.rows, d.number(t, "SELECT COUNT(DISTINCT document_id) FROM "+l.table), "different keys in the table")
	d.holds(t, l)
}

// holds is isExact for a table in which other keys may stand as well.
func (d *database) holds(t *testing.T, l load) {
	t.Helper()
	data, err := dataset.New("documents", dataset.Options{Seed: l.seed, PayloadBytes: l.payload, PayloadKind: l.kind})
	require.NoError(t, err)
	block := rows.NewBlock(data.Schema())
	n := int64(0)
	err = d.query(fmt.Sprintf("SELECT document_id, payload FROM %s WHERE document_id BETWEEN %d AND %d ORDER BY document_id",
		l.table, l.first, l.first+l.rows-1), func(scan func(...any) error) error {
		var key int64
		var payload []byte
		if err := scan(&key, &payload); err != nil {
			return err
		}
		data.Fill(block, n, 1)
		if want := block.Columns[1].Value(0); key != l.first+n || !bytes.Equal(want, payload) {
			return fmt.Errorf("row %d: key %d (want %d) with payload %q (want %q)", n, key, l.first+n, payload, want)
		}
		n++
		return nil
	})
	require.NoError(t, err, "rows of %s", l.table)
	require.Equal(t, l.rows, n, "rows of the load")
}

// claims counts the claim rows of batches; 0 without a claim table.
func (d *database) claims() (n int64) {
	_ = d.query("SELECT COUNT(*) FROM terapush_claims WHERE batch >= 0", func(scan func(...any) error) error { return scan(&n) })
	return n
}

// untilClaims waits until so many batches are in, while the process runs.
func (d *database) untilClaims(t *testing.T, p *process, n int64) {
	t.Helper()
	for end := time.Now().Add(time.Minute); d.claims() < n; time.Sleep(5 * time.Millisecond) {
		if !p.running() {
			r := p.wait(t)
			t.Fatalf("%s ended with %d before %d batches were in\n%s", r.line, r.code, n, r.all())
		}
		require.True(t, time.Now().Before(end), "no %d batches after a minute: %s", n, p.stderr.String())
	}
}
