package cli_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

// quick is a plan of two cases that take no time.
const quick = `name: quick
title: Quick documents
rows: 100
push: {batch_rows: 10}
axes:
  workers: [1, 2]
repeats: 2
warm_up: 1
`

// desk is a folder with a plan in it, and the record that sweeps of the plan leave.
type desk struct {
	shell
	plan, record string
}

func newDesk(t *testing.T, plan string) desk {
	dir := t.TempDir()
	d := desk{newShell(t), filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "record.jsonl")}
	require.NoError(t, os.WriteFile(d.plan, []byte(plan), 0o644))
	return d
}

func (d desk) sweep(args ...string) result {
	d.Helper()
	return d.run(append([]string{"sweep", "--plan", d.plan, "--record", d.record}, args...)...)
}

func (d desk) read() results.Record {
	d.Helper()
	r, err := results.Read(d.record)
	require.NoError(d, err)
	return r
}

// pushes are the pushes of a record, and fails when one is there twice.
func (d desk) pushes() map[results.Push]results.Status {
	d.Helper()
	all := map[results.Push]results.Status{}
	for _, e := range d.read().Entries {
		require.NotContains(d, all, e.Push())
		all[e.Push()] = e.Status
	}
	return all
}

func TestSweepDryRun(t *testing.T) {
	s := newShell(t)
	r := s.run("sweep", "postgres://u:hunter2@h/db", "--plan", "testdata/two-parts.yaml", "--dry-run", "--budget", "20m")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stdout+r.stderr, "hunter2")
	golden.Equal(t, "sweep-dry-run.txt", strings.ReplaceAll(r.stdout, s.env["XDG_STATE_HOME"], "STATE"))
	r = s.run("sweep", "postgres://u@h/db", "--plan", "testdata/two-parts.yaml", "--dry-run", "--only", "timed", "--repeats", "1", "--rows", "5")
	require.Zero(t, r.code, r.stderr)
	golden.Equal(t, "sweep-dry-run-only.txt", strings.ReplaceAll(r.stdout, s.env["XDG_STATE_HOME"], "STATE"))
	require.NoFileExists(t, "two-parts.sweep.jsonl")
	require.NoDirExists(t, filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))
}

// Without --record nothing lands in the folder where one happens to stand.
func TestSweepKeepsItsRecordInTheStateFolder(t *testing.T) {
	d := newDesk(t, quick)
	t.Chdir(t.TempDir())
	d.record = filepath.Join(d.env["XDG_STATE_HOME"], "terapush", "sweeps", "quick.sweep.jsonl")
	for range 2 {
		r := d.run("sweep", "discard://", "--plan", d.plan, "--repeats", "1")
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stderr, "record: "+d.record+"\n")
		require.Len(t, d.pushes(), 3, "the same command goes on with it")
	}
	here, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, here)
	require.Zero(t, d.run("report", d.record).code)
}

func TestSweepRefusesImpossibleCellsAllAtOnce(t *testing.T) {
	d := newDesk(t, `name: impossible
rows: 1000
push: {workers: 2, memory: 1MiB}
axes:
  method: [copy, insert, copi]
  batch_rows: [10, 100000]
  format: [pgbinary, parquet]
  payload_bytes: [100, 1048576]
`)
	r := d.sweep("postgres://u@h/db", "--rows-per-transaction", "10", "--verify-rows", "0")
	require.Equal(t, 2, r.code)
	require.Empty(t, r.stdout)
	golden.Equal(t, "sweep-impossible.txt", r.stderr)
	r = d.sweep("postgres://u@h/db")
	require.Equal(t, 2, r.code)
	golden.Equal(t, "sweep-impossible-memory.txt", r.stderr)
	require.NoFileExists(t, d.record)
}

// Whoever runs a sweep in a script has no other word on whether it has any result.
func TestASweepThatMeasuredNothingFails(t *testing.T) {
	d := newDesk(t, quick)
	r := d.sweep("discard://", "--budget", "1ns")
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "terapush: nothing was measured: the sweep's time of 1ns was up")
	require.Contains(t, r.stdout, "skipped")
	require.Zero(t, d.sweep("discard://").code)
	require.Zero(t, d.sweep("discard://", "--budget", "1ns").code, "what is in the record was measured")
}

func TestSweep(t *testing.T) {
	d := newDesk(t, quick)
	page := filepath.Join(t.TempDir(), "page.html")
	r := d.sweep("discard://", "--report", page)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "Quick documents")
	require.Regexp(t, `(?m)^ +2 +[\d,]+ `, r.stdout)
	require.Contains(t, r.stderr, "[1/5] warm-up, workers 1: ")
	require.Regexp(t, `(?m)^\[5/5\] workers \d \(2 of 2\): [\d,]+ rows/s, .*elapsed [\dhms.]+$`, r.stderr)
	require.Equal(t, 1, strings.Count(r.stderr, "at least once: discarded rows"), "what all pushes warn of is said once")
	require.Len(t, d.pushes(), 5)
	require.Contains(t, read(t, page), "<svg")
	for _, e := range d.read().Entries {
		require.Equal(t, results.Measured, e.Status)
		require.Equal(t, report.Schema, e.Report.Schema)
		require.EqualValues(t, 100, e.Report.Result.Rows)
	}
	d.leavesNothing()

	was := d.read()
	r = d.sweep("discard://", "--json", "--progress", "none")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, was, d.read(), "there was nothing left to do")
	require.NotContains(t, r.stderr, "cut off")
	require.True(t, json.Valid([]byte(r.stdout)), r.stdout)

	text := read(t, d.record)
	require.NoError(t, os.WriteFile(d.record, []byte(text[:len(text)-9]), 0o644)) // package sweep has the other cuts
	r = d.sweep("discard://")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "last line was cut off")
	require.Contains(t, r.stderr, "which has 4 pushes")
	require.Len(t, d.pushes(), 5)

	r = d.sweep("discard://", "--rows", "101")
	require.Equal(t, 2, r.code)
	require.Len(t, d.pushes(), 5)
	r = d.sweep("discard://", "--rows", "101", "--restart", "--repeats", "1")
	require.Zero(t, r.code, r.stderr)
	require.Len(t, d.pushes(), 3)
}

func TestSweepOfAServerThatIsDown(t *testing.T) {
	d := newDesk(t, quick)
	r := d.sweep("postgres://u@127.0.0.1:1/db")
	require.Equal(t, 5, r.code)
	require.Contains(t, r.stderr, "3 pushes in succession failed and are not recorded: the target cannot be reached: opening")
	require.Contains(t, r.stderr, "to continue: terapush sweep postgres://u@127.0.0.1:1/db --plan="+d.plan)
	require.Empty(t, r.stdout)
	require.Empty(t, d.read().Entries)
}

// The command that a stopped sweep prints goes on with its record.
func TestSweepIsStopped(t *testing.T) {
	d := newDesk(t, "name: s\nduration: 1h\naxes:\n  workers: [1, 2]\n")
	r := d.stopped(syscall.SIGTERM, "sweep", "discard://", "--plan", d.plan, "--record", d.record)
	require.Equal(t, 143, r.code, r.stderr)
	require.Contains(t, r.stderr, "finishing the batches in flight; a second signal closes the connections")
	require.Contains(t, r.stderr, "to continue: terapush sweep discard:/// --plan="+d.plan+" --record="+d.record)
	require.Empty(t, d.read().Entries)
}

// However a secret comes in, it is neither in the record nor on the screen.
func TestSweepKeepsSecrets(t *testing.T) {
	const secret = "hunter2-%p:a/s?s#w@rd"
	for name, plan := range map[string]string{
		"command line": quick,
		"plan":         quick + "target: 'discard://u:" + secret + "@h/db'\n",
		"axis":         strings.Replace(quick, "axes:\n", "axes:\n  target: ['discard://u:"+url.QueryEscape(secret)+"@h/db']\n", 1),
	} {
		d := newDesk(t, plan)
		d.env["TERAPUSH_PASSWORD"] = secret
		args := []string{"--repeats", "1"}
		if name == "command line" {
			args = append(args, "discard://u:"+secret+"@h/db")
		}
		r := d.sweep(args...)
		require.Zero(t, r.code, r.stderr)
		shown := r.stdout + r.stderr + read(t, d.record)
		require.NotContains(t, shown, "hunter2", name)
		require.NotContains(t, shown, "w%40rd", name)
		require.Contains(t, read(t, d.record), "discard://u@h/db")
	}
	d := newDesk(t, quick)
	r := d.sweep("postgres://u:"+secret+"@127.0.0.1:1/db", "--set", "app.password=hunter2", "--set", "work_mem=4MB")
	require.Equal(t, 5, r.code)
	require.NotContains(t, r.stdout+r.stderr+read(t, d.record), "hunter2")
	require.Equal(t, []string{"app.password=***", "work_mem=4MB"}, d.read().Head.Parts[0].Push["set"])
	require.Contains(t, r.stderr, "--set='app.password=***'")

	d = newDesk(t, "name: x\nrows: 1\naxes:\n  set.app.token: [a, b]\n")
	r = d.sweep("postgres://u@h/db")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "axis set.app.token looks like a secret")
}

// To a case the environment says only what plan and command line do not.
func TestSweepAndTheEnvironment(t *testing.T) {
	d := newDesk(t, quick)
	d.env["TERAPUSH_WORKERS"], d.env["TERAPUSH_ROWS"], d.env["TERAPUSH_SEED"] = "7", "9", "5"
	d.env["TERAPUSH_REPEATS"], d.env["TERAPUSH_PROGRESS"] = "1", "none"
	r := d.sweep("discard://")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stderr, "rows/s")
	got := d.read()
	require.Len(t, got.Entries, 3)
	for _, e := range got.Entries {
		require.EqualValues(t, 100, e.Report.Result.Rows)
		require.EqualValues(t, 5, e.Report.Plan.Seed)
		require.LessOrEqual(t, e.Report.Plan.Workers, 2)
	}
	require.Equal(t, []string{"5"}, got.Head.Parts[0].Push["seed"])
	require.NotContains(t, got.Head.Parts[0].Push, "workers")
}

func TestTuneDryRun(t *testing.T) {
	s := newShell(t)
	r := s.run("tune", "postgres://u:hunter2@h/db", "--dry-run", "--workers", "3", "--rows", "1000000", "--max-batch-bytes", "32MiB")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stdout+r.stderr, "hunter2")
	golden.Equal(t, "tune-dry-run.txt", r.stdout)
}

func newRecord(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	file, err := results.Open(path)
	require.NoError(t, err)
	require.NoError(t, file.Begin(results.Head{Parts: []results.Part{{Cells: 1}}}))
	require.NoError(t, file.Close())
	return path
}

func TestTune(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	// Tiny trials are noise: who gives away half and more has a command all the same.
	r := s.run("tune", "discard://", "--rows", "1000", "--payload-bytes", "100", "--max-workers", "2", "--max-batch-bytes", "128KiB",
		"--tolerance", "60%", "--json", "--record", file)
	require.Zero(t, r.code, r.stderr)
	var found sweep.Found
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &found), r.stdout)
	require.Equal(t, "terapush.tune/v1", found.Schema)
	require.True(t, found.Complete)
	require.Regexp(t, `^terapush push discard:/// --method discard --workers \d --batch-bytes \d+\S* --create recreate --payload-bytes 100$`, found.Command)
	require.NotContains(t, found.Command, "--rows")
	require.Contains(t, r.stderr, "warm-up, ")
	pushes := 1
	for _, one := range found.Trials {
		pushes += len(one.Measured)
	}
	kept, err := results.Read(file)
	require.NoError(t, err)
	require.Len(t, kept.Entries, pushes)
	shown := s.run("report", file)
	require.Zero(t, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "Workers and batch size of discard")
	s.leavesNothing()
}

func TestTuneWithoutAServer(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	r := s.run("tune", "postgres://u@127.0.0.1:1/db", "--record", file)
	require.Equal(t, 5, r.code)
	require.Equal(t, 1, strings.Count(r.stderr, "terapush: the target cannot be reached: opening"), r.stderr)
	require.Empty(t, r.stdout)
	require.Equal(t, 5, s.run("tune", "postgres://u@127.0.0.1:1/db", "--record", file).code, "an empty record is no obstacle")
}

func TestTuneIsStopped(t *testing.T) {
	s := newShell(t)
	r := s.stopped(syscall.SIGINT, "tune", "discard://", "--trial", "1h")
	require.Equal(t, 130, r.code, r.stderr)
	require.Contains(t, r.stderr, "terapush: the search was stopped by a signal")
	require.Empty(t, r.stdout)
	s.leavesNothing()
}
