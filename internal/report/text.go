package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/units"
)

const (
	maxLines = 15
	maxNamed = 3 // bad batches and problems in the text; the JSON has all
)

// WriteText writes the summary: at most 15 lines, each beginning with a word to grep for. Only the line of a successful
// verification begins with "verify ok".
func (r Report) WriteText(w io.Writer) error {
	lines := []string{r.headline()}
	for _, l := range r.Lines() {
		text := fmt.Sprintf("%-10s%s", l.Word, l.Text)
		if l.Word == proofWord {
			text = r.Verify.line()
		}
		lines = append(lines, text)
	}
	lines = append(lines, warnings(r.Warnings, maxLines-len(lines))...)
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("report: write the summary: %w", err)
	}
	if r.Merged != nil {
		return r.Merged.writeText(w)
	}
	return nil
}

// Line is one line of the summary: a word such as plan or bound by, and what follows it.
type Line struct{ Word, Text string }

// proofWord is that of the line about the proof.
const proofWord = "verify"

// Lines returns the summary between its headline and its warnings.
func (r Report) Lines() []Line {
	var lines []Line
	add := func(word string, parts ...string) { lines = append(lines, Line{word, join(parts...)}) }
	if r.Result.Error != "" {
		add("error", units.OneLine(r.Result.Error))
	}
	add("target", r.Target.URL, when(r.Target.Table != "", "table "+r.Target.Table), when(r.Target.Via != "", "via "+r.Target.Via),
		r.Target.Server)
	planned := r.Plan.Workers > 0 // else the run ended before its numbers were known
	if r.Plan.Method != "" && !planned {
		add("plan", r.Plan.Method, r.Plan.Format, r.Plan.Delivery)
	}
	if planned {
		r.addPlan(add)
	}
	if planned && r.Result.Outcome != PreflightFailed {
		r.addResult(add)
		add(proofWord, strings.TrimSpace(strings.TrimPrefix(r.Verify.line(), proofWord)))
	}
	return lines
}

func (r Report) headline() string {
	if r.Result.Outcome == PreflightFailed && r.Run.Resumed {
		return string(PreflightFailed) + ": the run is unchanged"
	}
	if r.Result.Outcome == PreflightFailed {
		return string(PreflightFailed) + ": no row was sent"
	}
	rows := counted(r.Result.Rows, "row")
	if r.Result.Outcome != OK && r.Plan.Rows > 0 {
		rows = fmt.Sprintf("%s of %s", units.Count(r.Result.Rows), counted(r.Plan.Rows, "row"))
	}
	if r.Run.Resumed {
		rows += fmt.Sprintf(", %s of them now,", units.Count(r.Result.Rows-r.Run.ResumedRows))
	}
	if r.Result.Seconds == 0 { // nothing was pushed, as by verify
		return fmt.Sprintf("%s: %s", r.Result.Outcome, strings.TrimSuffix(rows, ","))
	}
	all := fmt.Sprintf("%s: %s in %s", r.Result.Outcome, rows, duration(r.Result.Seconds))
	if r.Unmeasured() {
		return join(all, "nothing measured: it ended within the warm-up")
	}
	if m := r.Measured; m != nil {
		all = join(all, fmt.Sprintf("after the warm-up %s in %s", units.Count(m.Rows), duration(m.Seconds)))
	}
	return join(all, units.Count(int64(r.Result.RowsPerSecond))+" rows/s", units.Bytes(int64(r.Result.BytesPerSecond))+"/s payload")
}

func (r Report) addPlan(add func(word string, parts ...string)) {
	p := r.Plan
	distinct := "all rows distinct"
	if p.DistinctRows > 0 {
		rows, bytes := p.DistinctOf(cmp.Or(p.Rows, r.Result.Rows))
		distinct = fmt.Sprintf("%s distinct in %s", units.Bytes(bytes), counted(rows, "row"))
	}
	if p.Files != nil {
		add("plan", p.Method, p.Format, p.Delivery, counted(int64(p.Workers), "worker"), "batches of "+units.Bytes(p.BatchBytes))
		add("data", counted(int64(len(p.Files.Paths)), "file"), p.Files.Format, when(p.Files.Bytes > 0, units.Bytes(p.Files.Bytes)))
		return
	}
	add("plan", p.Method, p.Format, p.Delivery, counted(int64(p.Workers), "worker"),
		fmt.Sprintf("batches of %s, %s", counted(p.BatchRows, "row"), units.Bytes(p.BatchBytes)),
		when(p.GroupBatches > 0, "committed "+counted(p.GroupBatches, "batch")+" at a time"))
	add("data", p.Dataset, fmt.Sprintf("seed %d", p.Seed), fmt.Sprintf("first key %d", p.FirstKey), distinct,
		when(p.ZstdRatio > 0, fmt.Sprintf("zstd ratio %.2f", p.ZstdRatio)))
}

func (r Report) addResult(add func(word string, parts ...string)) {
	is, q, seconds := r.Result, r.Latency.BatchSeconds, r.Latency.VisibleSeconds
	perRow := when(r.Stored.BytesPerRow > 0, fmt.Sprintf(", %.1f B a row", r.Stored.BytesPerRow))
	add("bytes", "payload "+units.Bytes(is.PayloadBytes), "encoded "+units.Bytes(is.EncodedBytes),
		when(is.StoredBytes > 0, "uploaded "+units.Bytes(is.StoredBytes)), "wire "+units.Bytes(is.WireBytes),
		when(r.Stored.Bytes > 0, "stored "+units.Bytes(r.Stored.Bytes)+perRow))
	if times := r.Phases.parts(); len(times) > 0 {
		add("time", times...)
	}
	loop := "closed loop"
	if r.Latency.Loop == Open {
		loop = "open loop at " + units.Bytes(r.Plan.MaxRate) + "/s"
	}
	if n := r.Latency.BatchSeconds.Count; n > 0 && !r.Unmeasured() {
		parts := []string{loop}
		for _, p := range []struct {
			name    string
			of      float64
			seconds float64
		}{{"p50", 0.5, q.P50}, {"p90", 0.9, q.P90}, {"p99", 0.99, q.P99}, {"p99.9", 0.999, q.P999}} {
			parts = append(parts, when(Has(p.of, n), p.name+" "+duration(p.seconds)))
		}
		add("latency", append(parts, "max "+duration(q.Max)+" a batch",
			when(seconds > 0, "visible "+duration(seconds)+" after the last ack"))...)
	}
	add("batches", units.Count(is.Batches), "attempts "+units.Count(is.Attempts), "retries "+units.Count(is.Retries),
		"refills "+units.Count(is.Refills), "duplicates "+units.Count(is.Duplicates), "unknown "+units.Count(is.Unknown),
		when(is.GivenUp != 0, "failed "+units.Count(is.GivenUp)), when(is.Missing != 0, "missing rows "+units.Count(is.Missing)))
	add("client", counted(int64(r.Client.Cores), "core")+when(r.OnOneMachine(), ", shared with the server"),
		"user "+duration(r.Client.UserSeconds),
		"system "+duration(r.Client.SystemSeconds), "peak memory "+units.Bytes(r.Client.PeakRSSBytes))
	if r.BoundBy.Verdict != "" {
		add("bound by", r.bound()...)
	}
	if len(r.Cost) > 0 {
		add("server", r.Cost.parts()...)
	}
}

// parts returns the phases that took time.
func (p Phases) parts() []string {
	var all []string
	for _, phase := range []struct {
		name    string
		seconds float64
	}{
		{"prepare", p.Prepare}, {"fill", p.Fill}, {"stage", p.Stage}, {"load", p.Load},
		{"commit", p.Commit}, {"finish", p.Finish}, {"verify", p.Verify},
	} {
		if phase.seconds > 0 {
			all = append(all, phase.name+" "+duration(phase.seconds))
		}
	}
	return all
}

// parts returns the costs in the order of their names, which end with their units.
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
	what := "found"
	if v.Mode == "ack" {
		what = "acknowledged"
	}
	parts := []string{v.Mode, fmt.Sprintf("%s of %s %s", units.Count(v.FoundRows), counted(v.ExpectedRows, "row"), what)}
	if v.Files != nil {
		parts = append([]string{v.Mode}, v.Files.parts(v.Mode)...)
	}
	switch {
	case v.SampledRows > 0 && v.Files != nil:
		parts = append(parts, counted(v.SampledRows, "record")+" compared field by field")
	case v.SampledRows > 0:
		parts = append(parts, counted(v.SampledRows, "row")+" compared byte for byte")
	}
	if len(v.NotCompared) > 0 {
		parts = append(parts, units.OneLine("not compared: "+strings.Join(v.NotCompared, ", ")))
	}
	if v.OK {
		return "verify ok: " + join(parts...)
	}
	named := v.BadBatches[:min(len(v.BadBatches), maxNamed)]
	for _, b := range named {
		parts = append(parts, b.String())
	}
	if more := v.BadCount - int64(len(named)); more > 0 {
		parts = append(parts, "and "+counted(more, "more batch"))
	}
	for _, p := range v.Problems[:min(len(v.Problems), maxNamed)] {
		parts = append(parts, units.OneLine(p))
	}
	if more := len(v.Problems) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %s, see --json", counted(int64(more), "more problem")))
	}
	return "verify FAILED: " + join(parts...)
}

// parts returns the numbers in the words of what they prove.
func (f VerifiedFiles) parts(mode string) []string {
	all := []string{fmt.Sprintf("%s in the files", counted(f.Records, "record"))}
	if f.Rejected > 0 {
		all[0] += fmt.Sprintf(" − %s rejected", units.Count(f.Rejected))
	}
	switch in := f.Records - f.Rejected; {
	case f.Acknowledged == in && f.Labels:
		all[0] += " = acknowledged"
	case f.Acknowledged == in && f.Claimed == in:
		all[0] += " = acknowledged = claimed"
	case f.Labels:
		all = append(all, units.Count(f.Acknowledged)+" acknowledged")
	default:
		all = append(all, units.Count(f.Acknowledged)+" acknowledged", units.Count(f.Claimed)+" claimed")
	}
	if mode == "count" || f.RowsAfter > 0 {
		all = append(all, fmt.Sprintf("table from %s to %s", units.Count(f.RowsBefore), counted(f.RowsAfter, "row")))
	}
	return all
}

// String returns the batch and what is wrong with it.
func (b BadBatch) String() string {
	keys := cmp.Or(b.Keys, fmt.Sprintf("rows %d to %d", b.FirstKey, b.LastKey))
	text := fmt.Sprintf("batch %d (%s) %s: %s of %s",
		b.Number, keys, b.Reason, units.Count(b.Found), counted(b.Rows, "row"))
	if b.Detail != "" {
		text += ", " + units.OneLine(b.Detail)
	}
	return text
}

// warnings returns a line for each warning, the last of which counts those that have no room.
func warnings(all []string, room int) []string {
	var lines []string
	for i, w := range all {
		if len(all) > room && room == 1 {
			return []string{fmt.Sprintf("warning   %d of them, see --json", len(all))}
		}
		if len(all) > room && i == room-1 {
			return append(lines, fmt.Sprintf("warning   and %d more, see --json", len(all)-i))
		}
		lines = append(lines, "warning   "+units.OneLine(w))
	}
	return lines
}

func join(parts ...string) string { return units.Join(" · ", parts...) }

func when(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

func counted(n int64, what string) string { return english.Plural(int(n), what, "") }

// duration is units.Seconds, except that times below a millisecond are shown as 0.12 ms.
func duration(seconds float64) string {
	if seconds != 0 && seconds < 0.001 {
		return fmt.Sprintf("%.2f ms", seconds*1000)
	}
	return units.Seconds(seconds)
}
