package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results/chart"
	"github.com/terapush/terapush/internal/units"
)

// runTitle names the page of one run.
func runTitle(r *report.Report) string {
	server, _, _ := strings.Cut(r.Target.Server, " (")
	what := units.Count(r.Result.Rows) + " rows"
	if f := r.Plan.Files; f != nil {
		what = fmt.Sprintf("%s records from %s", units.Count(r.Result.Rows), english.Plural(len(f.Paths), "file", ""))
	}
	title := what + " into " + cmp.Or(server, r.Target.Backend)
	if r.Plan.Method != "" && r.Plan.Method != r.Target.Backend { // discard
		title += " by " + r.Plan.Method
	}
	return title
}

// titleOfTables names the page of a push of several tables.
func titleOfTables(tables []Table) string {
	whole := *tables[0].run
	for _, t := range tables[1:] {
		whole.Result.Rows += t.run.Result.Rows
	}
	return strings.Replace(runTitle(&whole), " into ", fmt.Sprintf(" into %d tables of ", len(tables)), 1)
}

// commandOf returns the command of a run, with TARGET and FILE in place of names; "" if the report does not have its
// flags.
func commandOf(r *report.Report) string {
	if len(r.Run.Flags) == 0 {
		return ""
	}
	words := []string{"terapush push TARGET"}
	if f := r.Plan.Files; f != nil {
		words[0] = "terapush load TARGET FILE"
		if len(f.Paths) > 1 {
			words[0] += "…"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Run.Flags)) {
		for _, v := range r.Run.Flags[name] {
			before := " "
			if v == "true" || v == "false" { // of a switch, which takes no word of its own
				before = "="
			}
			words = append(words, "--"+name+before+units.ShellWord(v))
		}
	}
	return strings.Join(words, " ")
}

// oneMachine is a sentence for tables of which client and server shared a machine, "" for others.
func (t Table) oneMachine() string {
	reports := t.reports()
	if t.run != nil {
		reports = []*report.Report{t.run}
	}
	if len(reports) == 0 || slices.ContainsFunc(reports, func(r *report.Report) bool { return !r.OnOneMachine() }) {
		return ""
	}
	return "client and server on one machine"
}

// runTiles returns the headline of one run.
func runTiles(r *report.Report) []tile {
	is, bound := r.Result, r.BoundBy
	took := "in " + units.Seconds(is.Seconds)
	if is.Outcome != report.OK {
		took = string(is.Outcome) + " after " + units.Seconds(is.Seconds)
	}
	list := []tile{
		{"Acknowledged", units.Count(is.Rows), "rows", took},
		{"Rate", units.Amount(is.RowsPerSecond), "rows/s", units.Amount(is.BytesPerSecond/mib) + " MiB/s of column data"},
	}
	if bound.Verdict != "" {
		share := fmt.Sprintf("%.0f %% of the workers' time", 100*bound.Shares[bound.Verdict])
		list = append(list, tile{"Bottleneck", bound.Verdict, "", share})
	}
	list = append(list, proofTile(r.Verify))

	latency := r.Latency.BatchSeconds
	half := "half of the batches within " + units.Seconds(latency.P50)
	switch {
	case report.Has(0.99, latency.Count):
		list = append(list, tile{"Batch latency, p99", units.Seconds(latency.P99), "", half})
	case latency.Count > 0:
		list = append(list, tile{"Slowest batch", units.Seconds(latency.Max), "", half})
	}
	return append(list, storedTile(r.Stored.BytesPerRow)...)
}

func storedTile(bytesPerRow float64) []tile {
	if bytesPerRow <= 0 {
		return nil
	}
	return []tile{{"Stored", units.Amount(bytesPerRow), "bytes a row", "indexes included, as the server reports"}}
}

func proofTile(v report.Verify) tile {
	found := fmt.Sprintf("%s: %s of %s rows", v.Mode, units.Count(v.FoundRows), units.Count(v.ExpectedRows))
	switch {
	case v.Mode == "none":
		return tile{"Proof", "none", "", "as asked"}
	case !v.Ran:
		return tile{"Proof", "none", "", "it did not run"}
	case !v.OK:
		return tile{"Proof", "failed", "", found}
	case v.Mode == "ack":
		return tile{"Proof", "acks only", "", found}
	case v.SampledRows > 0:
		found += ", " + units.Count(v.SampledRows) + " compared byte for byte"
	}
	return tile{"Proof", "complete", "", found}
}

// runSketches returns the charts of one run. Their bars have their names and figures beside them.
func runSketches(r *report.Report) []sketch {
	list := timeline("", r)
	for i := range list {
		list[i].wide = true
	}

	return slices.Concat(list,
		barsOf("Worker-seconds by bottleneck", "The workers' time while rows moved, by what held them up; the largest is the verdict.",
			true, limitNames, r.BoundBy.Seconds),
		barsOf("Worker-seconds by activity", "The workers' time while rows moved, by what they were doing.",
			true, stateNames, r.WorkerSeconds),
		barsOf("Latency of batches", "Time of a batch to its answer."+loopInWords(loops[r.Latency.Loop]),
			false, latencyNames, figuresOf(r)),
		barsOf("Phases", "The run's time by phase, from the first statement to the end of the proof.",
			true, phaseNames, phasesOf(r)))
}

// barsOf draws the times that are not 0, if there are any, with their shares if they are parts of a whole.
func barsOf(title, caption string, parts bool, names []share, seconds map[string]float64) []sketch {
	var sum float64
	for _, s := range names {
		sum += max(seconds[s.key], 0)
	}
	var drawn chart.Bars
	for _, s := range names {
		took := seconds[s.key]
		if took <= 0 {
			continue
		}
		note := units.Seconds(took)
		if parts {
			note += " · " + shareOf(took, sum)
		}
		drawn.Rows = append(drawn.Rows, chart.Bar{Name: s.name, Note: note, Parts: []float64{took}})
	}
	if len(drawn.Rows) == 0 {
		return nil
	}
	return []sketch{{title: title, caption: caption, draw: drawn.Draw}}
}

// shareOf formats a part of a whole.
func shareOf(part, whole float64) string {
	if percent := 100 * part / whole; percent >= 0.5 {
		return fmt.Sprintf("%.0f %%", percent)
	}
	return "< 0.5 %"
}

// shardGrid is the table of a merged run's shards.
func shardGrid(r *report.Report) (g grid) {
	if r.Merged == nil {
		return g
	}
	shards := r.Merged.Shards
	first, fastest := shards[0].Start, 0.0
	for _, s := range shards {
		fastest = max(fastest, s.RowsPerSecond)
		if s.Start.Before(first) {
			first = s.Start
		}
	}
	text := func(head string, of func(report.ShardResult) string) column[report.ShardResult] {
		number := head != "outcome" && head != "bottleneck"
		return column[report.ShardResult]{head, number, func(s report.ShardResult) gridCell { return gridCell{Text: of(s)} }}
	}
	return gridOf(shards, []column[report.ShardResult]{
		text("shard", func(s report.ShardResult) string { return strconv.FormatInt(s.Index, 10) }),
		text("outcome", func(s report.ShardResult) string { return string(s.Outcome) }),
		text("rows", func(s report.ShardResult) string { return units.Count(s.Rows) }),
		text("began after", func(s report.ShardResult) string { return units.Seconds(s.Start.Sub(first).Seconds()) }),
		text("took", func(s report.ShardResult) string { return units.Seconds(s.End.Sub(s.Start).Seconds()) }),
		{rateHead, true, func(s report.ShardResult) gridCell {
			return gridCell{Text: units.Amount(s.RowsPerSecond), Share: percentOf(s.RowsPerSecond, fastest)}
		}},
		text("MiB/s", func(s report.ShardResult) string { return units.Amount(s.BytesPerSecond / mib) }),
		text("bottleneck", func(s report.ShardResult) string { return s.BoundBy }),
	})
}

// summaryOf is the summary of a run as push prints it.
func summaryOf(r *report.Report) (all []Input) {
	for _, l := range r.Lines() {
		all = append(all, Input{l.Word, strings.Replace(l.Text, " table table ", " table ", 1)}) // of a numbered one
	}
	return all
}

// latencyNames are the quantities of latency.
var latencyNames = []share{
	{"batch_p50_seconds", "p50 (half within)"}, {"batch_p90_seconds", "p90"}, {"batch_p99_seconds", "p99"},
	{"batch_p999_seconds", "p99.9"}, {"batch_max_seconds", "longest"},
}

// limitNames are the limits for people, the database's first.
var limitNames = []share{
	{"target", "target: the server"}, {"network", "network"}, {"protocol", "protocol: round trips, overhead"},
	{"client-cpu", "client-cpu: this machine"}, {"source", "source: waiting for rows"}, {"limit", "limit: --max-rate"},
	{"tail", "tail: no batch left"},
}
