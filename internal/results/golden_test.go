package results_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

// records reads fixtures, which TestFixtures makes.
func records(t testing.TB, names ...string) []results.Record {
	t.Helper()
	var all []results.Record
	for _, name := range names {
		r, err := results.Read(filepath.Join("testdata", name))
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), got)
}

type format func(io.Writer, []results.Table) error

func formats() map[string]format {
	return map[string]format{"txt": results.Text.Write, "md": results.Markdown.Write, "csv": results.CSV.Write, "json": results.JSON.Write, "bench": results.Benchmarks.Write}
}

func rendered(t testing.TB, show format, of []results.Record) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, show(&b, results.Tables(of)))
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		formats string
		redact  bool
	}{
		{"four-methods", []string{"four-methods.jsonl"}, "txt md csv", false},
		{"workers", []string{"workers.jsonl"}, "txt md csv json bench", false},
		{"side-by-side", []string{"workers.jsonl", "workers-after.jsonl"}, "txt", false},
		{"two-parts", []string{"two-parts.jsonl"}, "txt md csv bench", false},
		{"one-run", []string{"run-4.json"}, "txt md csv json bench", false},
		{"two-runs", []string{"run-8.json", "run-4.json"}, "txt md bench", false},
		{"all", []string{"workers.jsonl", "run-4.json", "two-parts.jsonl", "run-8.json"}, "csv bench", false},
		{"redacted", []string{"four-methods.jsonl"}, "txt", true},
	} {
		of := records(t, c.files...)
		if c.redact {
			results.Redact(of)
		}
		for end := range strings.FieldsSeq(c.formats) {
			t.Run(c.name+"."+end, func(t *testing.T) { golden(t, c.name+"."+end, rendered(t, formats()[end], of)) })
		}
	}
}

// What the client can do stands beside what it did, in all forms for people.
func TestCeilingsInOutputs(t *testing.T) {
	one, ceiling := workersTable(), "this client: 172 MiB/s (databend streaming-load), group_commit async, workers 32 reached 66 % of it"
	for name, write := range map[string]func(io.Writer, []results.Table) error{"text": results.Text.Write, "markdown": results.Markdown.Write} {
		var b strings.Builder
		require.NoError(t, write(&b, []results.Table{one}))
		require.Contains(t, b.String(), map[string]string{"text": "ceiling           " + ceiling, "markdown": "- **ceiling** " + strings.ReplaceAll(ceiling, "_", `\_`)}[name])
	}
	require.Contains(t, page(t, one), ">this client: 172 MiB/s (databend streaming-load)<", "in the drawing")

	bars := workersTable()
	bars.Axes, bars.Points = bars.Axes[:1], bars.Points[:1]
	bars.Axes[0].Values = bars.Axes[0].Values[:1]
	bars.Best, bars.Smallest = 0, 0
	html := page(t, bars)
	require.Contains(t, html, "What calibrate measured, into a server that forgets: this client: 172 MiB/s")
	require.NotContains(t, html, ">what this client can do<", "12 times as far as the bar is long")

	slow := workersTable()
	slow.Points[0].Typical.Target.Backend = "\x1b[31mred"
	var b strings.Builder
	require.NoError(t, results.Text.Write(&b, []results.Table{slow}))
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, page(t, slow), "\x1b")
}
