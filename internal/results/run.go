package results

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results/chart"
	"github.com/terapush/terapush/internal/units"
)

// runTitle names the page of one run.
func runTitle(r *report.Report) string {
	server, _, _ := strings.Cut(r.Target.Server, " (")
	what := units.Count(r.Result.Rows) + " rows"
	if f := r.Plan.Files; f != nil {
		what = fmt.Sprintf("%s records from %s", units.Count(r.Result.Rows), many(len(f.Paths), "file"))
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

// partTitle names one table of such a push by its dataset.
func partTitle(r *report.Report) string {
	dataset, _, _ := strings.Cut(r.Plan.Dataset, " ") // behind it is a digest
	return dataset + ": " + units.Count(r.Result.Rows) + " rows"
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return units.Count(int64(n)) + " " + what + "s"
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
	for _, in := range flagsOf(Part{Push: r.Run.Flags}) {
		for _, v := range r.Run.Flags[strings.TrimPrefix(in.Name, "--")] {
			if v == "true" || v == "false" { // of a switch, which takes no word of its own
				words = append(words, in.Name+"="+v)
				continue
			}
			words = append(words, in.Name+" "+shellWord(v))
		}
	}
	return strings.Join(words, " ")
}

// shellWord quotes what a shell would not take for one word.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=%+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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

// clientOf says what the client of one run was.
func clientOf(r *report.Report) string {
	if r.Client.Cores == 0 {
		return ""
	}
	return "client with " + many(r.Client.Cores, "core")
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
	if r.Stored.BytesPerRow > 0 {
		list = append(list, tile{"Stored", units.Amount(r.Stored.BytesPerRow), "bytes a row", "indexes included, as the server reports"})
	}
	return list
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
	if r.Merged != nil {
		list = append(list, shardBars(r.Merged.Shards))
	}

	var times []bar
	latency := r.Latency.BatchSeconds
	for _, q := range []struct {
		name    string
		of      float64
		seconds float64
	}{{"half within (p50)", 0.5, latency.P50}, {"p90", 0.9, latency.P90}, {"p99", 0.99, latency.P99}, {"p99.9", 0.999, latency.P999}} {
		if report.Has(q.of, latency.Count) {
			times = append(times, bar{q.name, q.seconds})
		}
	}
	if latency.Count > 0 {
		times = append(times, bar{"the slowest", latency.Max})
	}
	loop := "Time of a batch from being sent to its answer (closed loop)."
	if r.Latency.Loop == report.Open {
		loop = "Time of a batch from when --max-rate wanted it sent to its answer (open loop)."
	}

	return slices.Concat(list,
		barsOf("Worker-seconds by bottleneck", "The workers' time while rows moved, by what held them up; the largest is the verdict.",
			true, barsBy(limitNames, r.BoundBy.Seconds)),
		barsOf("Worker-seconds by activity", "The workers' time while rows moved, by what they were doing.",
			true, barsBy(stateNames, r.WorkerSeconds)),
		barsOf("Latency of batches", loop, false, times),
		barsOf("Phases", "The run's time by phase, from the first statement to the end of the proof.",
			true, barsBy(phaseNames, phasesOf(r))))
}

// bar is a time with its name.
type bar struct {
	name    string
	seconds float64
}

// barsBy returns those of some shares that are not 0, in their order.
func barsBy(shares []share, seconds map[string]float64) (bars []bar) {
	for _, s := range shares {
		if seconds[s.key] > 0 {
			bars = append(bars, bar{s.name, seconds[s.key]})
		}
	}
	return bars
}

// barsOf draws times, if there are any, with their shares if they are parts of a whole.
func barsOf(title, caption string, parts bool, bars []bar) []sketch {
	if len(bars) == 0 {
		return nil
	}
	var sum float64
	for _, b := range bars {
		sum += b.seconds
	}
	var drawn chart.Bars
	for _, b := range bars {
		note := units.Seconds(b.seconds)
		if parts {
			note += " · " + shareOf(b.seconds, sum)
		}
		drawn.Rows = append(drawn.Rows, chart.Bar{Name: b.name, Note: note, Parts: []float64{b.seconds}})
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

func shardBars(shards []report.ShardResult) sketch {
	const most = 24
	var b chart.Bars
	for _, s := range shards[:min(len(shards), most)] {
		b.Rows = append(b.Rows, chart.Bar{
			Name: "shard " + strconv.FormatInt(s.Index, 10), Parts: []float64{s.RowsPerSecond},
			Note: units.Amount(s.RowsPerSecond) + " rows/s · " + s.BoundBy + "-bound",
		})
	}
	caption := "Rows per second of each shard while it had rows to send, and its bottleneck."
	if len(shards) > most {
		caption += fmt.Sprintf(" The first %d of %d are shown.", most, len(shards))
	}
	return sketch{title: "Shards", caption: caption, draw: b.Draw}
}

// shardGrid is the table of a merged run's shards.
func shardGrid(r *report.Report) (g grid) {
	if r.Merged == nil {
		return g
	}
	shards := r.Merged.Shards
	g.Rows = make([]gridRow, len(shards))
	first := slices.MinFunc(shards, func(a, b report.ShardResult) int { return a.Start.Compare(b.Start) }).Start
	for _, c := range []struct {
		head string
		of   func(report.ShardResult) string
	}{
		{"shard", func(s report.ShardResult) string { return strconv.FormatInt(s.Index, 10) }},
		{"outcome", func(s report.ShardResult) string { return string(s.Outcome) }},
		{"rows", func(s report.ShardResult) string { return units.Count(s.Rows) }},
		{"began after", func(s report.ShardResult) string { return units.Seconds(s.Start.Sub(first).Seconds()) }},
		{"took", func(s report.ShardResult) string { return units.Seconds(s.End.Sub(s.Start).Seconds()) }},
		{"rows/s", func(s report.ShardResult) string { return units.Amount(s.RowsPerSecond) }},
		{"MiB/s", func(s report.ShardResult) string { return units.Amount(s.BytesPerSecond / mib) }},
		{"bottleneck", func(s report.ShardResult) string { return s.BoundBy }},
	} {
		var cells []gridCell
		for _, s := range shards {
			cells = append(cells, gridCell{Text: c.of(s)})
		}
		g.addColumn(gridCell{Text: c.head, Number: c.head != "outcome" && c.head != "bottleneck"}, cells)
	}
	return g
}

// summaryOf is the summary of a run as push prints it.
func summaryOf(r *report.Report) (all []Input) {
	for _, l := range r.Lines() {
		all = append(all, Input{l.Word, strings.Replace(l.Text, " table table ", " table ", 1)}) // of a numbered one
	}
	return all
}

// limitNames are the limits for people, the database's first.
var limitNames = []share{
	{"target", "target: the server"}, {"network", "network"}, {"protocol", "protocol: round trips, overhead"},
	{"client-cpu", "client-cpu: this machine"}, {"source", "source: waiting for rows"}, {"limit", "limit: --max-rate"},
	{"tail", "tail: no batch left"},
}
