package render

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/report"
)

// Benchmarks writes a line for each measured push in the format of Go's benchmarks, so that benchstat reads it: the
// push's settings make the name, and the inputs that all cells share are configuration. What differs in configuration,
// such as the server's version, benchstat puts into tables of their own unless it is told to -ignore it.
func Benchmarks(w io.Writer, tables []analysis.Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	var b strings.Builder
	b.WriteString("Unit rows/s better=higher\nUnit overall-rows/s better=higher\n")
	had := map[string]bool{} // keys of the table before, which hold until they are taken back
	for _, t := range tables {
		b.WriteString("\n")
		had = writeConfig(&b, t, had)
		b.WriteString("\n")
		for _, p := range t.Points {
			for _, push := range p.Pushes {
				b.WriteString(benchmarkName(t, p, push.Report.Client.Cores) + " 1" + benchmarkValues(push.Report) + "\n")
			}
		}
	}
	return write(w, "benchmarks", b.String())
}

func writeConfig(b *strings.Builder, t analysis.Table, had map[string]bool) map[string]bool {
	has := map[string]bool{}
	for _, in := range t.Inputs {
		if key := benchmarkKey(in.Name); !has[key] {
			has[key] = true
			fmt.Fprintf(b, "%s: %s\n", key, oneLine(in.Value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(had)) {
		if !has[key] {
			fmt.Fprintf(b, "%s:\n", key)
		}
	}
	return has
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
func benchmarkName(t analysis.Table, p analysis.Point, cores int) string {
	parts := []string{"Sweep"}
	if t.Name != "" {
		parts = append(parts, benchmarkWord(strings.ReplaceAll(t.Name, "/", "-")))
	}
	for _, s := range p.Settings {
		parts = append(parts, benchmarkWord(s.Axis)+"="+benchmarkWord(s.Value))
	}
	return "Benchmark" + strings.Join(parts, "/") + "-" + strconv.Itoa(max(cores, 1))
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

func benchmarkValues(r *report.Report) string {
	var b strings.Builder
	for _, v := range []struct {
		value float64
		unit  string
	}{
		{r.Result.Seconds * 1e9, "ns/op"},
		{r.Result.RowsPerSecond, "rows/s"},
		{r.Result.BytesPerSecond / 1e6, "MB/s"},
		{r.Latency.BatchSeconds.P50, "p50-sec"},
		{r.Latency.BatchSeconds.P99, "p99-sec"},
		{r.Latency.VisibleSeconds, "visible-sec"},
		{r.Stored.BytesPerRow, "stored-B/row"},
		{analysis.CPUPerGiB(r), "cpu-sec/GiB"},
		{analysis.Overall(r), "overall-rows/s"},
	} {
		if v.value != 0 {
			b.WriteString(" " + exact(v.value) + " " + v.unit)
		}
	}
	return b.String()
}
