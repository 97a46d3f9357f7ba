package cli_test

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
)

// Every case of every preset is a push that nothing but a server could refuse. At full size it has what the article
// had, and its page shows what the article published: testdata/published.txt has both in the article's own units.
func TestPresets(t *testing.T) {
	published := publishedTables(t)
	tested := map[string]bool{}
	for _, c := range []struct {
		preset, target, via string
		cells               map[string]int // by scale; the default is cloud
	}{
		{"singlestore-terabyte", "singlestore://admin:hunter2@h:3306/db", "", map[string]int{"": 3, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte", "mariadb://u@h:3306/db", "", map[string]int{"cloud": 3, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte-pipeline", "singlestore://admin@h:3306/db", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"yugabyte-rows-per-transaction", "yugabyte://u@h:5433/db", "", map[string]int{"": 23, "laptop": 7, "ci": 3}},
		{"yugabyte-rows-per-transaction", "postgres://u@h/db", "", map[string]int{"cloud": 23, "laptop": 11, "ci": 4}},
		{"databend-four-methods", "databend://root@h:8000/default", "", map[string]int{"": 44, "laptop": 16, "ci": 8}},
		{"databend-copy-cluster", "databend://root@h:8000/default", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"doris-group-commit", "doris://root@h:9030/db", "", map[string]int{"": 47, "laptop": 23, "ci": 9}},
		{"doris-group-commit-4x", "doris://root@h:9030/db", "", map[string]int{"": 47}},
		{"random-or-ordered-keys", "postgres://u@h/db", "", map[string]int{"": 6, "laptop": 3, "ci": 3}},
		{"random-or-ordered-keys", "mysql://u@h/db", "", map[string]int{"cloud": 6, "laptop": 3, "ci": 3}},
		{"vector-dimensions", "postgres://u@h/db", "", map[string]int{"": 6, "laptop": 3, "ci": 3}},
		{"vector-dimensions", "mysql://u@h/db", "", map[string]int{"cloud": 6, "laptop": 3, "ci": 3}},
		{"oracle-fast-ingest", "oracle://u@h:1521/service", "", map[string]int{"": 32, "laptop": 12, "ci": 8}},
	} {
		tested[c.preset] = true
		for scale, cells := range c.cells {
			s := preset(t, c.preset, c.target, c.via, scale)
			require.Len(t, s.Cases, cells, "%s at %s", c.preset, scale)
			for _, part := range s.Parts {
				if part.Facts == nil {
					require.Contains(t, []string{"random-or-ordered-keys", "vector-dimensions"}, c.preset, "the others reproduce an article")
					continue
				}
				require.NotEmpty(t, part.Facts.Machine)
				require.Contains(t, part.Facts.Source, "https://")
			}
			if scale == "" {
				record := measured(s)
				tables := results.Tables([]results.Record{record})
				for i, table := range tables {
					if s.Parts[i].Facts == nil {
						continue
					}
					published[strings.TrimSpace(c.preset+" "+s.Parts[i].Name)].check(t, s, i, table)
				}
				var page bytes.Buffer
				require.NoError(t, results.Markdown.Write(&page, tables))
				require.NotContains(t, page.String(), "hunter2")
				golden.Equal(t, "presets/"+c.preset+".md", page.String())
			}
		}
	}
	for _, name := range sweep.Presets() {
		require.NotEmpty(t, sweep.PresetTitle(name))
		require.True(t, tested[name], "preset %s is not tested", name)
	}
}

// preset makes the pushes of a preset.
func preset(t *testing.T, name, target, via, scale string) *sweep.Sweep {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	file, text, err := sweep.Preset(name)
	require.NoError(t, err)
	o := sweep.Options{
		Sources: sweep.Sources{Drivers: drivers, LookupEnv: func(string) (string, bool) { return "", false }},
		Target:  target, Scale: scale, Push: map[string][]string{},
	}
	if via != "" {
		o.Push["staging"] = []string{via}
	}
	plan, err := sweep.ParsePlan(file, text, o)
	require.NoError(t, err)
	s, err := sweep.New(plan, o)
	require.NoError(t, err)
	return s
}

// measured returns the record of a sweep whose cases have all moved a thousand rows in two seconds.
func measured(s *sweep.Sweep) results.Record {
	r := results.Record{Head: results.Head{Name: s.Plan.Name, Title: s.Plan.Title, Repeats: 1, Parts: s.Parts}}
	for _, c := range s.Cases {
		r.Entries = append(r.Entries, results.Entry{
			Part: c.Part, Cell: c.Number, Settings: c.Settings, Status: results.Measured,
			Report: &report.Report{
				Schema: report.Schema,
				Result: report.Result{Outcome: report.OK, Rows: 1000, Seconds: 2, RowsPerSecond: 500, BytesPerSecond: 1 << 20, WireBytes: 3 << 20},
				Phases: report.Phases{Stage: 1.5, Commit: 0.5},
				Client: report.Client{Cores: 2, LoadSeconds: 0.4},
				Stored: report.Stored{Bytes: 600_000, BytesPerRow: 600},
			},
		})
	}
	return r
}

// article is what an article says about one table: the flags of its pushes, and its figures.
type article struct {
	flags map[string]string
	head  []string
	lines [][]string
}

func publishedTables(t *testing.T) map[string]article {
	text, err := os.ReadFile("testdata/published.txt")
	require.NoError(t, err)
	tables := map[string]article{}
	for _, block := range strings.Split(string(text), "\n# ")[1:] {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		a := article{flags: map[string]string{}, head: strings.Fields(lines[2])}
		for _, flag := range strings.Fields(lines[1]) {
			name, value, ok := strings.Cut(flag, "=")
			require.True(t, ok, flag)
			a.flags[name] = value
		}
		for _, line := range lines[3:] {
			a.lines = append(a.lines, strings.Fields(line))
		}
		tables[lines[0]] = a
	}
	return tables
}

// inUnitsOf are the articles' figures: the quantity of each, and what to multiply it with.
var inUnitsOf = map[string]struct {
	quantity string
	times    float64
}{
	"s": {"seconds", 1}, "h:m:s": {"seconds", 1}, "rows/s": {"rows_per_second", 1}, "k-rows/s": {"rows_per_second", 1000},
	"overall-rows/s": {"overall_rows_per_second", 1}, "MiB/s": {"bytes_per_second", 1 << 20}, "GiB/s": {"bytes_per_second", 1 << 30},
	"rows": {"total_rows", 1}, "write-s": {"stage_seconds", 1}, "COPY-s": {"commit_seconds", 1},
	"COPY-rows/s": {"commit_rows_per_second", 1}, "COPY-GiB/s": {"commit_bytes_per_second", 1 << 30},
	"used-bytes": {"stored_bytes", 1}, "bytes/row": {"stored_bytes_per_row", 1}, "server-CPU-%": {"server_cpu_percent", 1},
	"sent-bytes/minute": {"sent_bytes_per_second", 1. / 60}, "client-CPU-%": {"client_cpu_percent", 1},
}

var sexagesimal = regexp.MustCompile(`^(?:(\d+):)?(\d+):([\d.]+)$`)

// check compares a part of a preset with the article.
func (a article) check(t *testing.T, s *sweep.Sweep, part int, table results.Table) {
	name := s.Plan.Name + " " + s.Parts[part].Name
	require.NotNil(t, a.flags, name)
	for _, c := range s.Cases {
		if c.Part != part {
			continue
		}
		for flag, want := range a.flags {
			if flag == "batches" {
				require.Equal(t, want, strconv.FormatInt(c.Plan.Batches(), 10), name)
			} else {
				require.Equal(t, want, strings.Join(c.Push[flag], " "), "%s: %s", name, flag)
			}
		}
	}
	require.Len(t, table.Facts.Points, len(a.lines), name)
	for _, line := range a.lines {
		settings, want := map[string]string{}, map[string]float64{}
		for i, head := range a.head {
			figure, known := inUnitsOf[head]
			switch {
			case line[i] == "-":
			case !known:
				settings[head] = line[i]
			default:
				value := line[i]
				if m := sexagesimal.FindStringSubmatch(value); m != nil {
					value = strings.TrimPrefix(m[1]+"h", "h") + m[2] + "m" + m[3] + "s"
				}
				n, _, ok := units.Parse(value)
				require.True(t, ok, "%s: %s", name, line[i])
				want[figure.quantity] = n * figure.times
			}
		}
		i := slices.IndexFunc(table.Points, func(p results.Point) bool {
			for axis, value := range settings {
				here, _, _ := units.Parse(p.Settings.Value(axis))
				there, _, ok := units.Parse(value)
				if p.Settings.Value(axis) != value && (!ok || here != there) {
					return false
				}
			}
			return true
		})
		require.GreaterOrEqual(t, i, 0, "%s: no case %v", name, line)
		require.NotNil(t, table.Points[i].Fact, "%s: %v", name, line)
		got := table.Points[i].Fact.Figures
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), "%s: %v", name, line)
		for quantity, v := range want {
			require.InEpsilon(t, v, got[quantity], 1e-5, "%s: %v: %s", name, line, quantity)
		}
	}
}
