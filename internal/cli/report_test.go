package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
)

// recorded is a fixture of package results, which makes them.
func recorded(name string) string { return filepath.Join("..", "results", "testdata", name) }

func TestReportFormats(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct{ format, has string }{
		{"text", "copy-workers: Workers of COPY"}, {"markdown", "| set.synchronous\\_commit | workers |"}, {"json", `"schema": "terapush.table/v1"`},
		{"csv", "table,scale,status,"}, {"bench", "BenchmarkSweep/copy-workers/"}, {"html", "<html"}, {"svg", "<svg"},
	} {
		r := s.run("report", recorded("workers.jsonl"), "--format", c.format)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, c.has)
		require.Empty(t, r.stderr)
	}
	require.Equal(t, s.run("report", recorded("workers.jsonl"), "--format", "text"), s.run("report", recorded("workers.jsonl")))
}

func TestReportOut(t *testing.T) {
	s := newShell(t)
	for name, format := range map[string]string{
		"r.html": "html", "r.HTM": "html", "r.svg": "svg", "r.md": "markdown", "r.json": "json", "r.csv": "csv", "r.bench": "bench", "r.txt": "text", "r": "text",
	} {
		out := filepath.Join(t.TempDir(), name)
		r := s.run("report", recorded("run-4.json"), "--out", out)
		require.Equal(t, result{}, r, name)
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, s.run("report", recorded("run-4.json"), "--format", format).stdout, string(text), name)
	}
	r := s.run("report", recorded("run-4.json"), "--out", filepath.Join(t.TempDir(), "no", "folder.txt"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "folder.txt: making a file in its folder: no such file or directory")
}

func TestPushWritesAPage(t *testing.T) {
	s := newShell(t)
	page := filepath.Join(t.TempDir(), "page.html")
	require.Equal(t, 0, s.run("push", "discard://", "--bytes", "1MiB", "--report", page).code)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<svg")
	require.Contains(t, string(text), "documents")

	nowhere := filepath.Join(t.TempDir(), "missing", "page.html")
	r := s.run("push", "discard://", "--bytes", "1MiB", "--report", nowhere)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, nowhere)
	require.Empty(t, r.stdout, "nothing was pushed before")
}

func TestReportOnlyOnePart(t *testing.T) {
	s := newShell(t)
	all := s.run("report", recorded("two-parts.jsonl"), "--format", "csv").stdout
	for part, lines := range map[string]int{"stream": 3, "groups": 4, "groups/stream": 3} {
		r := s.run("report", recorded("two-parts.jsonl"), "--format", "csv", "--only", part)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, lines, strings.Count(r.stdout, "\n"), "%s and the head", part)
		require.Less(t, len(r.stdout), len(all))
	}
	chart := func(args ...string) string {
		return s.run(append([]string{"report", recorded("two-parts.jsonl"), "--format", "svg"}, args...)...).stdout
	}
	require.Equal(t, chart("--only", "stream"), chart(), "the first table")
	golden.Equal(t, "report-only.svg", chart("--only", "groups"))
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

func TestReportMistakes(t *testing.T) {
	file := recorded("run-4.json")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"report"}, "report takes one FILE or more: 0 arguments given"},
		{[]string{"report", file, recorded("run-8.json"), recorded("../testdata/run-4.json")}, "run-4.json and " + file + " are the same file: name each file once"},
		{[]string{"report", file, "--format", "htlm"}, `format "htlm" does not exist; did you mean "html"?`},
		{[]string{"report", file, "--only", "copy"}, `--only "copy": single runs have no parts`},
		{[]string{"report", recorded("two-parts.jsonl"), "--only", "strem"}, `part "strem" does not exist; did you mean "stream"?`},
		{[]string{"report", file, "--fromat", "html"}, "did you mean --format?"},
		{[]string{"compare", file}, "compare takes two files: 1 argument given"},
		{[]string{"compare", file, file, "--fail-if-slower", "5"}, `"5" is not a share: write it as 5%`},
		{[]string{"compare", file, file, "--fail-if-slower", "0%"}, "more than 0% and less than 100%"},
		{[]string{"compare", file, "/does/not/exist"}, "/does/not/exist"},
		{[]string{"compare", file, recorded("two-parts.jsonl"), "--fail-if-slower", "5%"}, "no measured cell in common"},
	} {
		r := newShell(t).run(c.args...)
		require.Equal(t, 2, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, r.stderr, c.want)
	}
}

func TestCompareEndsWith6BeyondTheThreshold(t *testing.T) {
	s := newShell(t)
	before, after := recorded("workers.jsonl"), recorded("workers-after.jsonl")
	for _, c := range []struct {
		args []string
		code int
		has  string
	}{
		{[]string{before, after}, 0, "-12.0 %  0.008  slower"},
		{[]string{before, after, "--fail-if-slower", "5%"}, 6, "slower by more than 5 %: copy-workers: set.synchronous_commit on, workers 8, -12.0 %"},
		{[]string{before, after, "--fail-if-slower=12.5%"}, 0, "no cell is slower by more than 12.5 %"},
		{[]string{before, before, "--fail-if-slower", "0.1%"}, 0, "no input differs"},
		{[]string{before, after, "--fail-if-slower", "5%", "--json"}, 6, `"schema": "terapush.compare/v1"`},
		{[]string{recorded("run-8.json"), recorded("run-4.json"), "--fail-if-slower", "5%"}, 6, "too few repeats to tell noise"},
	} {
		r := s.run(append([]string{"compare"}, c.args...)...)
		require.Equal(t, c.code, r.code, "%v: %s", c.args, r.stderr)
		require.Contains(t, r.stdout, c.has, c.args)
		require.Equal(t, c.code == 0, r.stderr == "", r.stderr)
	}
	require.Contains(t, s.run("compare", before, after, "--fail-if-slower", "5%").stderr, "2 of 10 cells slower, 0 failed")
}

func TestRedactedCommands(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{
		{"report", recorded("workers.jsonl"), recorded("four-methods.jsonl"), "--format", "text"},
		{"compare", recorded("workers.jsonl"), recorded("run-4.json"), "--json"},
	} {
		require.Contains(t, s.run(args...).stdout, "db1.shop.internal", args)
		r := s.run(append(args, "--redact")...)
		require.Zero(t, r.code, r.stderr)
		for _, name := range []string{"anna", "db1", "shop", "orders", "archive", "10.1.2.3"} {
			require.NotContains(t, r.stdout, name, args)
		}
	}
}
