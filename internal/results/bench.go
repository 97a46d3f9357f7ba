package results

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
)

// asBenchmarks formats a line for each measured push as Go's benchmarks do, for benchstat: settings make the name, and
// shared inputs are configuration. Versions of server and terapush are among these: benchstat keeps different
// configurations apart unless it is told to -ignore them, so nobody compares two servers by mistake.
func asBenchmarks(tables []Table) (string, error) {
	lines := []benchfmt.Record{higherIsBetter("rows/s"), higherIsBetter("overall-rows/s")}
	for _, t := range tables {
		var config []benchfmt.Config
		for _, in := range t.Inputs {
			config = append(config, benchfmt.Config{Key: benchmarkKey(in.Name), Value: []byte(units.OneLine(in.Value)), File: true})
		}
		for _, p := range t.Points {
			for _, push := range p.Pushes {
				lines = append(lines, &benchfmt.Result{
					Config: config, Name: benchmarkName(t, p, push.Client.Cores), Iters: 1, Values: benchmarkValues(p, push),
				})
			}
		}
	}
	var b strings.Builder
	out := benchfmt.NewWriter(&b)
	for _, line := range lines {
		_ = out.Write(line) // errors are those of its writer
	}
	return b.String(), nil
}

func higherIsBetter(unit string) *benchfmt.UnitMetadata {
	return &benchfmt.UnitMetadata{
		UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: "higher",
	}
}

// benchmarkKey makes a key of an input's name: it begins with a lower-case letter and has neither spaces nor capitals.
func benchmarkKey(name string) string {
	if flag, ok := strings.CutPrefix(name, "--"); ok {
		name = "flag " + flag
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == ':' {
			return '-'
		}
		return unicode.ToLower(r)
	}, name)
}

// benchmarkName returns Sweep/TABLE/axis=value…-CORES. Without the cores a setting that ends with -4 would be read as
// four of them.
func benchmarkName(t Table, p Point, cores int) benchfmt.Name {
	parts := []string{"Sweep"}
	if t.Name != "" {
		parts = append(parts, benchmarkWord(strings.ReplaceAll(t.Name, "/", "-")))
	}
	for _, s := range p.Settings {
		parts = append(parts, benchmarkWord(s.Axis)+"="+benchmarkWord(s.Value))
	}
	return benchfmt.Name(strings.Join(parts, "/") + "-" + strconv.Itoa(max(cores, 1)))
}

// benchmarkWord makes a part of a name, which has neither spaces nor slashes and is not empty.
func benchmarkWord(s string) string {
	if s == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.ReplaceAll(printable(s), " ", "_"), "/", "_")
}

// benchmarkValues returns the known values of the push.
func benchmarkValues(p Point, push *report.Report) []benchfmt.Value {
	known := figuresOf(push)
	if p.VisibleSeconds.N == 0 {
		delete(known, "visible_seconds")
	}
	var all []benchfmt.Value
	for _, b := range []struct {
		unit, quantity string
		times, per     float64
	}{
		{"ns/op", "seconds", 1e9, 1}, {"rows/s", "rows_per_second", 1, 1}, {"MB/s", "bytes_per_second", 1, 1e6},
		{"p50-sec", "batch_p50_seconds", 1, 1}, {"p99-sec", "batch_p99_seconds", 1, 1},
		{"visible-sec", "visible_seconds", 1, 1}, {"stored-B/row", "stored_bytes_per_row", 1, 1},
		{"cpu-sec/GiB", "cpu_seconds_per_gib", 1, 1}, {"overall-rows/s", "overall_rows_per_second", 1, 1},
	} {
		if v, ok := known[b.quantity]; ok {
			all = append(all, benchfmt.Value{Value: v * b.times / b.per, Unit: b.unit})
		}
	}
	return all
}
