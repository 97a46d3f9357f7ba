package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
)

// What a command writes never takes the place of what it reads, by whatever name.
func TestNothingIsWrittenOverAnInput(t *testing.T) {
	text := read(t, recorded("workers.jsonl"))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("q.jsonl"), []byte(text), 0o644))
	require.NoError(t, os.Symlink(at("q.jsonl"), at("link.html")))
	require.NoError(t, os.Link(at("q.jsonl"), at("hard.html")))
	require.NoError(t, os.Symlink(dir, at("folder")))
	require.NoError(t, os.Symlink("new.jsonl", at("dangling.html")))
	s := newShell(t)
	for _, out := range []string{at("q.jsonl"), at("link.html"), at("hard.html"), at("folder/q.jsonl"), dir + "/./q.jsonl"} {
		r := s.run("report", recorded("run-4.json"), at("q.jsonl"), "--out", out, "--format", "text")
		require.Equal(t, 2, r.code, out)
		require.Contains(t, r.stderr, "it is the same file as "+at("q.jsonl")+", which it would overwrite")
	}
	d := newDesk(t, quick)
	for _, files := range [][]string{
		{"--record", at("new.jsonl"), "--report", at("new.jsonl")},
		{"--record", at("new.jsonl"), "--report", at("folder/new.jsonl")},
		{"--record", at("dangling.html"), "--report", at("new.jsonl")},
		{"--record", at("q.jsonl"), "--report", at("hard.html")},
		{"--record", at("new.jsonl"), "--report", d.plan},
		{"--record", d.plan},
	} {
		for _, more := range [][]string{nil, {"--dry-run"}} {
			r := s.run(append(append([]string{"sweep", "discard://", "--plan", d.plan}, files...), more...)...)
			require.Equal(t, 2, r.code, "%v: %s", files, r.stderr)
			require.Contains(t, r.stderr, "it is the same file as ", files)
			require.NoFileExists(t, at("new.jsonl"))
		}
	}
	require.Equal(t, text, read(t, at("q.jsonl")))
	require.Equal(t, quick, read(t, d.plan))
}

// A page that cannot be written is refused before the first push, by the name that the user gave it.
func TestAPageThatCannotBeWrittenIsFoundOutAtOnce(t *testing.T) {
	d := newDesk(t, quick)
	dir := t.TempDir()
	for page, want := range map[string]string{
		filepath.Join(dir, "no", "page.html"): "no such file or directory",
		filepath.Join(d.plan, "page.html"):    "not a directory",
		dir:                                   "it is a folder",
	} {
		r := d.sweep("discard://", "--report", page)
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, "terapush: --report "+page+": ")
		require.Contains(t, r.stderr, want)
		require.NotContains(t, r.stderr, ".terapush-")
		require.NoFileExists(t, d.record)
		r = d.run("push", "discard://", "--rows", "10", "--report", page)
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, want)
		require.Empty(t, r.stdout, "nothing was pushed before")
	}
	require.Zero(t, d.run("push", "discard://", "--rows", "10", "--report", filepath.Join(dir, "page.html")).code)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "and nothing else is left")
}

// A dry run says of the record what the real one would.
func TestSweepDryRunLooksAtTheRecord(t *testing.T) {
	d := newDesk(t, quick)
	r := d.sweep("discard://", "--dry-run")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "\nrecord    "+d.record+"\n")
	require.Zero(t, d.sweep("discard://", "--repeats", "1").code)
	was := read(t, d.record)
	r = d.sweep("discard://", "--dry-run")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "\nrecord    "+d.record+", which has 3 pushes of this sweep already\n")
	r = d.sweep("discard://", "--dry-run", "--rows", "5")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "holds another sweep: --rows was 100, now it is 5; give another --record, or --restart")
	require.Contains(t, r.stdout, "\npushes    5")
	require.Zero(t, d.sweep("discard://", "--dry-run", "--rows", "5", "--restart").code)
	require.Equal(t, was, read(t, d.record))
}

// What is no record is the user's mistake, as another sweep's is.
func TestWhatIsNoRecordIsRefused(t *testing.T) {
	d := newDesk(t, quick)
	const text = `{"schema":"terapush.report/v1"}`
	require.NoError(t, os.WriteFile(d.record, []byte(text), 0o644))
	sweep := []string{"sweep", "discard://", "--plan", d.plan}
	for _, args := range [][]string{sweep, append(sweep, "--dry-run"), append(sweep, "--restart"), {"tune", "discard://", "--rows", "5"}} {
		r := d.run(append(args, "--record", d.record)...)
		require.Equal(t, 2, r.code, r.stderr)
		require.Contains(t, r.stderr, "--record: "+d.record)
	}
	require.Equal(t, text, read(t, d.record))
}

func TestSweepRetriesWhatFailed(t *testing.T) {
	d := newDesk(t, "name: f\nrows: 10\npush: {retries: 0}\naxes:\n  target: ['discard://', 'postgres://u@127.0.0.1:1/db', 'discard://h']\norder: in-order\nrepeats: 2\n")
	r := d.sweep()
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stderr, "terapush: 2 of 6 pushes failed")
	require.Contains(t, r.stderr, "target postgres://u@127.0.0.1:1/db (1 of 2): FAILED: the target cannot be reached: opening")
	require.Contains(t, r.stderr, "to repeat the failed pushes: terapush sweep --plan="+d.plan+" --record="+d.record+" --retry-failed\n")
	require.NotContains(t, r.stderr, "to continue")
	require.Len(t, d.read().Entries, 6)
	require.Contains(t, d.sweep("--dry-run").stdout, ", which has 6 pushes of this sweep already; 2 failed, which --retry-failed does again\n")
	r = d.sweep("--retry-failed")
	require.Equal(t, 1, r.code)
	require.Equal(t, 2, strings.Count(r.stderr, ": FAILED: the target"), r.stderr)
	require.Len(t, d.read().Entries, 6)
}

// brokenPipe fails as a pipe does whose reader has gone.
type brokenPipe struct{ writes int }

func (p *brokenPipe) Write([]byte) (int, error) {
	p.writes++
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// A reader that has seen enough is no failure, and a sweep goes on without it.
func TestAPipeThatIsClosedEarly(t *testing.T) {
	d := newDesk(t, quick)
	for _, args := range [][]string{
		{"report", recorded("workers.jsonl")}, {"version"}, {"sweep", "--help"},
		{"sweep", "discard://", "--plan", d.plan, "--record", d.record, "--progress", "none", "--repeats", "1"},
	} {
		var out brokenPipe
		var log strings.Builder
		code := cli.Run(t.Context(), args, d.process(&out, &log, nil))
		require.Zero(t, code, args)
		require.NotContains(t, log.String(), "pipe", args)
		require.Equal(t, 1, out.writes, args)
	}
	require.Len(t, d.pushes(), 3)
}

// What comes from outside cannot steer the terminal.
func TestNoControlCharactersOnTheScreen(t *testing.T) {
	s := newShell(t)
	r := s.run("sweep", "--plan", "/no/\x1b[2Jwhere\a")
	require.Equal(t, 2, r.code)
	require.Equal(t, "terapush: --plan: open /no/ [2Jwhere : no such file or directory\n", r.stderr)
}
