package results

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/terapush/terapush/internal/report"
)

// Benchmarks writes a line for each measured push in the format of Go's benchmarks, so that benchstat reads it: the
// push's settings make the name, and the inputs that all cells share are configuration. All of them, even the versions of
// server and terapush, which always differ where they are what one compares: benchstat keeps apart what differs in
// configuration until it is told to -ignore it, so nobody compares two servers by mistake.
func Benchmarks(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	lines := []benchfmt.Record{better("rows/s"), better("overall-rows/s")}
	for _, t := range legible(tables) {
		config := benchmarkConfig(t)
		for _, p := range t.Points {
			visible := VisibleSeconds(p.Pushes)
			for _, push := range p.Pushes {
				lines = append(lines, &benchfmt.Result{
					Config: config, Name: benchmarkName(t, p, push.Client.Cores), Iters: 1, Values: benchmarkValues(push, visible),
				})
			}
		}
	}
	out := benchfmt.NewWriter(w)
	for _, line := range lines {
		if err := out.Write(line); err != nil {
			return fmt.Errorf("render: write the benchmarks: %w", err)
		}
	}
	return nil
}

// better says of a unit that more of it is better.
func better(unit string) *benchfmt.UnitMetadata {
	return &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: "higher"}
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
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '/' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
	if s == "" {
		return "none"
	}
	return s
}

// benchmarkValues are those that are known of the push.
func benchmarkValues(r *report.Report, visible Measure) []benchfmt.Value {
	var all []benchfmt.Value
	add := func(unit string, of Measure, show func(float64) float64) {
		if v, ok := of(r); ok {
			all = append(all, benchfmt.Value{Value: show(v), Unit: unit})
		}
	}
	same := func(v float64) float64 { return v }
	add("ns/op", Seconds, func(v float64) float64 { return v * 1e9 })
	add("rows/s", RowsPerSecond, same)
	add("MB/s", BytesPerSecond, func(v float64) float64 { return v / 1e6 })
	add("p50-sec", P50, same)
	add("p99-sec", P99, same)
	add("visible-sec", visible, same)
	add("stored-B/row", BytesPerRow, same)
	add("cpu-sec/GiB", CPUPerGiB, same)
	add("overall-rows/s", OverallRowsPerSecond, same)
	return all
}
