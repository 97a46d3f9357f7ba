package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a fixture of package results, which makes them.
func recorded(name string) string { return filepath.Join("..", "results", "testdata", name) }

// The format is what --format says, or what the name of the file ends with. Package results has what each looks like.
func TestReportOut(t *testing.T) {
	s := newShell(t)
	for name, c := range map[string]struct{ format, has string }{
		"r.html": {"html", "<html"}, "r.HTM": {"html", "<html"}, "r.svg": {"svg", "<svg"}, "r.md": {"markdown", "| rows/s |"},
		"r.json": {"json", `"schema": "terapush.table/v1"`}, "r.bench": {"bench", "Benchmark"},
		"r.txt": {"text", "rows/s"}, "r": {"text", "rows/s"},
	} {
		out := filepath.Join(t.TempDir(), name)
		require.Equal(t, result{}, s.run("report", recorded("run-4.json"), "--out", out), name)
		require.Contains(t, read(t, out), c.has, name)
		require.Equal(t, s.run("report", recorded("run-4.json"), "--format", c.format).stdout, read(t, out), name)
		require.Zero(t, s.run("report", recorded("run-4.json"), "--out", out+".pdf", "--format", c.format).code)
	}
	require.Equal(t, s.run("report", recorded("workers.jsonl"), "--format", "text"), s.run("report", recorded("workers.jsonl")))
	r := s.run("report", recorded("run-4.json"), "--out", filepath.Join(t.TempDir(), "no", "folder.txt"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "folder.txt: making a file in its folder: no such file or directory")
}

func TestReportOnlyOnePart(t *testing.T) {
	s := newShell(t)
	all := s.run("report", recorded("two-parts.jsonl"), "--format", "bench").stdout
	for part, lines := range map[string]int{"stream": 2, "groups": 3, "groups/stream": 2} {
		r := s.run("report", recorded("two-parts.jsonl"), "--format", "bench", "--only", part)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, lines, strings.Count(r.stdout, "\nBenchmark"), part)
		require.Less(t, len(r.stdout), len(all))
	}
	chart := func(args ...string) string {
		return s.run(append([]string{"report", recorded("two-parts.jsonl"), "--format", "svg"}, args...)...).stdout
	}
	require.Equal(t, chart("--only", "stream"), chart(), "the first table")
	require.Contains(t, chart("--only", "groups"), "Group commit: Inserts by group commit")
}

func TestReportNamesEveryBadFile(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	empty, binary, other := write("empty.jsonl", ""), write("binary.jsonl", "\x00\xff\x00"), write("other.json", `{"schema":"terapush.tally/v1"}`)
	missing := filepath.Join(dir, "missing.jsonl")
	r := s.run("report", empty, recorded("run-4.json"), binary, missing, other)
	require.Equal(t, 2, r.code)
	require.Empty(t, r.stdout)
	for _, path := range []string{empty, binary, missing, other} {
		require.Contains(t, r.stderr, path)
	}
	require.NotContains(t, r.stderr, "run-4.json")
	require.Len(t, strings.Split(strings.TrimSpace(r.stderr), "\n"), 4)
}

func TestCompareEndsWith6BeyondTheThresholdAnd8InDoubt(t *testing.T) {
	s := newShell(t)
	before, after := recorded("workers.jsonl"), recorded("workers-after.jsonl")
	people := filepath.Join(t.TempDir(), "people.json")
	other := strings.Replace(read(t, recorded("run-4.json")), `"dataset": "documents"`, `"dataset": "people"`, 1)
	require.NoError(t, os.WriteFile(people, []byte(other), 0o600))
	for _, c := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{before, after}, 0, "0.008  slower"},
		{[]string{before, after, "--fail-if-slower", "5%"}, 6, "slower by more than 5 %: copy-workers: set.synchronous_commit on, workers 8, -12.0 %"},
		{[]string{before, after, "--fail-if-slower=12.5%"}, 8, "0 of 10 cases slower by more than 12.5 %, 0 failed, 2 inconclusive"},
		{[]string{before, after, "--fail-if-slower=30%"}, 0, "no case is slower by more than 30 %"},
		{[]string{before, before, "--fail-if-slower", "10%"}, 0, "no input differs"},
		{[]string{before, before, "--fail-if-slower", "0.1%"}, 8, "10 inconclusive"},
		{[]string{before, after, "--fail-if-slower", "5%", "--json"}, 6, `"schema": "terapush.compare/v1"`},
		{[]string{before, after, "--fail-if-slower", "5%", "--format", "markdown"}, 6, "### B against A: 2 slower"},
		{[]string{before, after, "--format", "svg"}, 2, ""},
		{[]string{before, after, "--format", "markdown", "--json"}, 2, ""},
		{[]string{recorded("run-8.json"), recorded("run-4.json"), "--fail-if-slower", "5%"}, 8, "1 and 1 pushes cannot tell any difference from noise"},
		{[]string{recorded("run-4.json"), recorded("two-parts.jsonl"), "--fail-if-slower", "5%"}, 2, "nothing to compare"},
		{[]string{recorded("run-4.json"), recorded("two-parts.jsonl")}, 2, "nothing to compare"},
		{[]string{recorded("run-4.json"), people}, 8, "not alike: the rows differ: a pushes documents, b people"},
	} {
		r := s.run(append([]string{"compare"}, c.args...)...)
		require.Equal(t, c.code, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, r.stdout, c.has, c.args)
		require.Equal(t, c.code == 0, r.stderr == "", r.stderr)
	}
	require.Contains(t, s.run("compare", before, after, "--fail-if-slower", "5%").stderr, "2 of 10 cases slower, 0 failed")
}

// Text is for its reader. All other formats are to be shown, and name nobody unless asked.
func TestWhatIsShownNamesNobody(t *testing.T) {
	names := []string{"anna", "db1", "shop", "orders", "archive", "10.1.2.3"}
	s := newShell(t)
	sweeps := []string{"report", recorded("workers.jsonl"), recorded("four-methods.jsonl")}
	compared := []string{"compare", recorded("workers.jsonl"), recorded("run-4.json")}
	for _, args := range [][]string{sweeps, compared} {
		require.Contains(t, s.run(args...).stdout, "db1.shop.internal", args)
	}

	commands := [][]string{append(slices.Clone(compared), "--json"), append(slices.Clone(compared), "--format", "markdown")}
	for _, format := range []string{"markdown", "json", "html", "bench"} {
		commands = append(commands, append(slices.Clone(sweeps), "--format", format))
	}
	for _, args := range commands {
		r := s.run(args...)
		for _, name := range names {
			require.NotContains(t, r.stdout, name, args)
		}
		full := s.run(append(args, "--full")...)
		require.Contains(t, full.stdout, "db1.shop.internal", args)
		require.Equal(t, full.code, r.code, r.stderr)
	}
}

// A page is made to be shown; what is printed and kept stays whole.
func TestPagesNameNobody(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	page, kept := filepath.Join(dir, "page.html"), filepath.Join(dir, "kept")
	r := s.run("push", "discard://anna@db1.shop.internal", "--rows", "10", "--table", "orders", "--json", "--report", page, "--report-to", kept)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "db1.shop.internal")
	files, err := filepath.Glob(filepath.Join(kept, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Contains(t, read(t, files[0]), "db1.shop.internal")

	text := read(t, page)
	require.Contains(t, text, "discard 1")
	for _, name := range []string{"anna", "db1", "shop", "orders", dir} {
		require.NotContains(t, text, name)
	}
}

// A folder may have any name, and one without reports is named.
func TestMergeOfAFolder(t *testing.T) {
	s, dir := newShell(t), filepath.Join(t.TempDir(), "[a")
	require.NoError(t, os.Mkdir(dir, 0o700))
	r := s.run("report", "merge", dir)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, dir+" has no reports (*.json)")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shard.json"), []byte("{}"), 0o600))
	require.Contains(t, s.run("report", "merge", dir).stderr, "reading the report "+filepath.Join(dir, "shard.json"))
}
