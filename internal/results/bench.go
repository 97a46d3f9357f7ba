package results

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/terapush/terapush/internal/report"
)

// asBenchmarks gives a line for each measured push in the format of Go's benchmarks, so that benchstat reads it: the
// push's settings make the name, and the inputs that all cells share are configuration. All of them, even the
// versions of server and terapush, which always differ where they are what one compares: benchstat keeps apart what
// differs in configuration until it is told to -ignore it, so nobody compares two servers by mistake.
func asBenchmarks(tables []Table) (string, error) {
	lines := []benchfmt.Record{higherIsBetter("rows/s"), higherIsBetter("overall-rows/s")}
	for _, t := range tables {
		config := benchmarkConfig(t)
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
		if err := out.Write(line); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func higherIsBetter(unit string) *benchfmt.UnitMetadata {
	return &benchfmt.UnitMetadata{
		UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: "higher",
	}
}

func benchmarkConfig(t Table) []benchfmt.Config {
	var config []benchfmt.Config
	has := map[string]bool{}
	for _, in := range t.Inputs {
		if key := benchmarkKey(in.Name); !has[key] {
			has[key] = true
			config = append(config, benchfmt.Config{Key: key, Value: []byte(oneLine(in.Value)), File: true})
		}
	}
	return config
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

// benchmarkName is Sweep/TABLE/axis=value…-CORES. It always ends with the cores: without them a setting that ends with
// -4 would be read as so many.
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

// benchmarkWord keeps a value in one piece of a name: neither space nor slash, and never empty.
func benchmarkWord(s string) string {
	if s == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.ReplaceAll(printable(s), " ", "_"), "/", "_")
}

// benchmarkValues returns those that are known of the push.
func benchmarkValues(p Point, push *report.Report) []benchfmt.Value {
	known := map[string]float64{}
	for _, q := range quantities() {
		if v := q.of(push); finite(v) && q.sample(&p).N > 0 {
			known[q.name] = v
		}
	}
	var all []benchfmt.Value
	add := func(unit, quantity string, show func(float64) float64) {
		if v, ok := known[quantity]; ok {
			all = append(all, benchfmt.Value{Value: show(v), Unit: unit})
		}
	}
	same := func(v float64) float64 { return v }
	add("ns/op", "seconds", func(v float64) float64 { return v * 1e9 })
	add("rows/s", "rows_per_second", same)
	add("MB/s", "bytes_per_second", func(v float64) float64 { return v / 1e6 })
	add("p50-sec", "batch_p50_seconds", same)
	add("p99-sec", "batch_p99_seconds", same)
	add("visible-sec", "visible_seconds", same)
	add("stored-B/row", "stored_bytes_per_row", same)
	add("cpu-sec/GiB", "cpu_seconds_per_gib", same)
	add("overall-rows/s", "overall_rows_per_second", same)
	return all
}
