package report

import (
	"fmt"
	"github.com/dustin/go-humanize"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

const (
	maxLines      = 15
	maxBadBatches = 3 // named in the text, and as many problems; the JSON has all
)

// compression returns "" where nothing was measured, as of rows of numbers alone.
func (r Report) compression() string {
	if r.Plan.ZstdRatio == 0 {
		return ""
	}
	return fmt.Sprintf("zstd ratio %.2f", r.Plan.ZstdRatio)
}

// WriteText writes the summary of the run: at most 15 lines, each beginning with a word to grep for. Only the line of a
// proof that succeeded begins with "verify ok".
func (r Report) WriteText(w io.Writer) error {
	lines := []string{r.headline()}
	add := func(word string, parts ...string) {
		lines = append(lines, fmt.Sprintf("%-10s%s", word, join(parts...)))
	}
	if r.Result.Error != "" {
		add("error", oneLine(r.Result.Error))
	}
	add("target", r.Target.URL, prefixed("table ", r.Target.Table), prefixed("via ", r.Target.Via), r.Target.Server)
	planned := r.Plan.Workers > 0 // else the run ended before its numbers were known
	if r.Plan.Method != "" && !planned {
		add("plan", r.Plan.Method, r.Plan.Format, r.Plan.Delivery)
	}
	if planned {
		add("plan", r.Plan.Method, r.Plan.Format, r.Plan.Delivery, counted(int64(r.Plan.Workers), "worker", "workers"),
			fmt.Sprintf("batches of %s, %s", counted(r.Plan.BatchRows, "row", "rows"), units.Bytes(r.Plan.BatchBytes)), r.groups())
		add("data", r.Plan.Dataset, fmt.Sprintf("seed %d", r.Plan.Seed), fmt.Sprintf("first key %d", r.Plan.FirstKey),
			r.distinct(), r.compression())
	}
	if planned && r.Result.Outcome != PreflightFailed {
		add("bytes", "payload "+units.Bytes(r.Result.PayloadBytes), "encoded "+units.Bytes(r.Result.EncodedBytes), r.uploaded(),
			"wire "+units.Bytes(r.Result.WireBytes), r.stored())
		add("time", r.Phases.parts()...)
		q := r.Latency.BatchSeconds
		add("latency", r.loop(), "p50 "+duration(q.P50), "p90 "+duration(q.P90), "p99 "+duration(q.P99), "max "+duration(q.Max)+" a batch",
			r.visible())
		add("batches", units.Count(r.Result.Batches), "attempts "+units.Count(r.Result.Attempts), "retries "+units.Count(r.Result.Retries),
			"refills "+units.Count(r.Result.Refills), "duplicates "+units.Count(r.Result.Duplicates), "unknown "+units.Count(r.Result.Unknown),
			nonZero("failed ", r.Result.GivenUp), nonZero("missing rows ", r.Result.Missing))
		add("client", counted(int64(r.Client.Cores), "core", "cores"), "user "+duration(r.Client.UserSeconds),
			"system "+duration(r.Client.SystemSeconds), "peak memory "+units.Bytes(r.Client.PeakRSSBytes))
		if r.BoundBy.Verdict != "" {
			add("bound by", r.bound()...)
		}
		if len(r.Cost) > 0 {
			add("server", r.Cost.parts()...)
		}
		if len(r.Price.Items) > 0 {
			add("price", r.Price.parts()...)
		}
		lines = append(lines, r.Verify.line())
	}
	lines = append(lines, warnings(r.Warnings, maxLines-len(lines))...)
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("report: write the summary: %w", err)
	}
	return nil
}

func (r Report) headline() string {
	if r.Result.Outcome == PreflightFailed && r.Run.Resumed {
		return string(PreflightFailed) + ": the run stands where it stood"
	}
	if r.Result.Outcome == PreflightFailed {
		return string(PreflightFailed) + ": no row was sent"
	}
	rows := counted(r.Result.Rows, "row", "rows")
	if r.Result.Outcome != OK && r.Plan.Rows > 0 {
		rows = fmt.Sprintf("%s of %s", units.Count(r.Result.Rows), counted(r.Plan.Rows, "row", "rows"))
	}
	if r.Run.Resumed {
		rows += fmt.Sprintf(", %s of them now,", units.Count(r.Result.Rows-r.Run.ResumedRows))
	}
	return join(fmt.Sprintf("%s: %s in %s", r.Result.Outcome, rows, duration(r.Result.Seconds)),
		units.Count(int64(r.Result.RowsPerSecond))+" rows/s", units.Bytes(int64(r.Result.BytesPerSecond))+"/s payload")
}

func (r Report) distinct() string {
	if r.Plan.DistinctRows == 0 {
		return "all rows distinct"
	}
	return fmt.Sprintf("%s distinct in %s", units.Bytes(r.Plan.Distinct), counted(r.Plan.DistinctRows, "row", "rows"))
}

func (r Report) uploaded() string {
	if r.Result.StoredBytes == 0 {
		return ""
	}
	return "uploaded " + units.Bytes(r.Result.StoredBytes)
}

func (r Report) groups() string {
	if r.Plan.GroupBatches == 0 {
		return ""
	}
	return fmt.Sprintf("committed %s at a time", counted(r.Plan.GroupBatches, "batch", "batches"))
}

// loop returns what the latency is measured in.
func (r Report) loop() string {
	if r.Latency.Loop == Open {
		return "open loop at " + units.Bytes(r.Plan.MaxRate) + "/s"
	}
	return "closed loop"
}

func (r Report) visible() string {
	if r.Latency.VisibleSeconds == 0 {
		return ""
	}
	return "visible " + duration(r.Latency.VisibleSeconds) + " after the last ack"
}

func (r Report) stored() string {
	if r.Stored.Bytes == 0 {
		return ""
	}
	if r.Stored.BytesPerRow == 0 {
		return "stored " + units.Bytes(r.Stored.Bytes)
	}
	return fmt.Sprintf("stored %s, %.1f B a row", units.Bytes(r.Stored.Bytes), r.Stored.BytesPerRow)
}

// parts returns the phases that took time, and load even when it took none, unless there was a phase stage.
func (p Phases) parts() []string {
	var all []string
	for _, phase := range []struct {
		name    string
		seconds float64
	}{
		{"prepare", p.Prepare}, {"fill", p.Fill}, {"stage", p.Stage}, {"load", p.Load},
		{"commit", p.Commit}, {"finish", p.Finish}, {"verify", p.Verify},
	} {
		if phase.seconds > 0 || phase.name == "load" && p.Stage == 0 {
			all = append(all, phase.name+" "+duration(phase.seconds))
		}
	}
	return all
}

// parts returns the costs in the order of their names. Units are taken from the names: a back-end may count what is not
// known here.
func (c Cost) parts() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		n := c[name]
		value := humanize.Commaf(math.Round(n*100) / 100)
		word, isBytes := strings.CutSuffix(name, "_bytes")
		word, isTime := strings.CutSuffix(word, "_seconds")
		switch {
		case isBytes:
			value = units.Bytes(int64(n))
		case isTime:
			value = duration(n)
		}
		all = append(all, strings.ReplaceAll(word, "_", " ")+" "+value)
	}
	return all
}

func (v Verify) line() string {
	switch {
	case v.Mode == "none":
		return "verify    none, as asked: nothing is proven"
	case !v.Ran:
		return "verify    did not run"
	}
	parts := []string{v.Mode, fmt.Sprintf("%s of %s found", units.Count(v.FoundRows), counted(v.ExpectedRows, "row", "rows"))}
	if v.Mode == "ack" {
		parts[1] = fmt.Sprintf("%s of %s acknowledged", units.Count(v.FoundRows), counted(v.ExpectedRows, "row", "rows"))
	}
	if v.SampledRows > 0 {
		parts = append(parts, counted(v.SampledRows, "row", "rows")+" compared byte for byte")
	}
	if v.OK {
		return "verify ok: " + join(parts...)
	}
	named := v.BadBatches[:min(len(v.BadBatches), maxBadBatches)]
	for _, b := range named {
		parts = append(parts, b.String())
	}
	if more := v.BadCount - int64(len(named)); more > 0 {
		parts = append(parts, "and "+counted(more, "more batch", "more batches"))
	}
	for _, p := range v.Problems[:min(len(v.Problems), maxBadBatches)] {
		parts = append(parts, oneLine(p))
	}
	if more := len(v.Problems) - maxBadBatches; more > 0 {
		parts = append(parts, fmt.Sprintf("and %s, see --json", counted(int64(more), "more problem", "more problems")))
	}
	return "verify FAILED: " + join(parts...)
}

// String returns the batch and what is wrong with it.
func (b BadBatch) String() string {
	text := fmt.Sprintf("batch %d (keys %d to %d) %s: %s of %s",
		b.Number, b.FirstKey, b.LastKey, b.Reason, units.Count(b.Found), counted(b.Rows, "row", "rows"))
	if b.Detail != "" {
		text += ", " + oneLine(b.Detail)
	}
	return text
}

func warnings(all []string, room int) []string {
	var lines []string
	for i, w := range all {
		if len(all) > room && room == 1 {
			return []string{fmt.Sprintf("warning   %d of them, see --json", len(all))}
		}
		if len(all) > room && i == room-1 {
			return append(lines, fmt.Sprintf("warning   and %d more, see --json", len(all)-i))
		}
		lines = append(lines, "warning   "+oneLine(w))
	}
	return lines
}

// join joins the parts that are not empty.
func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func nonZero(prefix string, n int64) string {
	if n == 0 {
		return ""
	}
	return prefix + units.Count(n)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(n) + " " + many
}

// duration is units.Seconds, but for times below a millisecond, which it shows as 0.12 ms.
func duration(seconds float64) string {
	if seconds != 0 && seconds < 0.001 {
		return fmt.Sprintf("%.2f ms", seconds*1000)
	}
	return units.Seconds(seconds)
}
