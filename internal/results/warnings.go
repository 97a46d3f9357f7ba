package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// findWarnings returns what a reader of the table must know, in sentences.
func (t Table) findWarnings() []string {
	all := append(t.differing(), t.notDurable())
	cells := func(what, consequence string, is func(Point) bool) {
		all = append(all, t.warnOfCells(what, consequence, is))
	}
	pushes := func(what, consequence string, is func(*report.Report) bool) {
		cells(what, consequence, func(p Point) bool { return slices.ContainsFunc(p.Pushes, is) })
	}
	cells("The proof of arrival failed", "", func(p Point) bool { return p.unproven })
	pushes("Arrival was not verified", "what the server acknowledged is all that is known",
		func(r *report.Report) bool { return r.Verify.Mode == "none" })
	all = append(all, t.mixedDelivery())
	cells("Fewer than 3 pushes were measured", "their noise is unknown",
		func(p Point) bool { return p.measured() && p.RowsPerSecond.N < 3 })
	cells(fmt.Sprintf("The 95 %% interval of the median reaches further than %s", units.Percent(t.precision)),
		"give the sweep more time, longer pushes or a quieter machine", func(p Point) bool {
			return t.precision > 0 && p.measured() && p.RowsPerSecond.Precision() > t.precision
		})
	all = append(all, t.closeBest(), t.drift)
	cells("Pushes were cut by the case's time limit", "their rates count what was acknowledged by then",
		func(p Point) bool { return p.Limited > 0 })
	cells("Pushes failed and do not count", "", func(p Point) bool { return p.Failed > 0 })
	cells("Nothing was measured", "", func(p Point) bool { return p.Status == Skipped })
	cells("Batches had to be sent again", "the time for that is in the rates", func(p Point) bool { return p.Retries > 0 })
	pushes("The target discards its rows", "such rates measure this client, not a database", func(r *report.Report) bool {
		return r.Target.Endpoint == loader.NoEndpoint || strings.Contains(r.Target.Server, loader.SinkMark)
	})
	pushes("--max-rate held the client back", "such rates do not measure the server",
		func(r *report.Report) bool { return r.Plan.MaxRate > 0 })
	pushes("The client was the limit", "such rates do not measure the server, and a larger client may be faster",
		func(r *report.Report) bool {
			return slices.Contains([]event.Limit{event.LimitClient, event.LimitSource}, event.Limit(r.BoundBy.Verdict))
		})
	return those(all, func(text string) bool { return text != "" })
}

// differing returns a warning for each input that differs between points without being an axis.
func (t Table) differing() (warnings []string) {
	varies := func(axis string) bool {
		return slices.ContainsFunc(t.varying(), func(a Axis) bool { return a.Name == axis || a.brings(axis) })
	}
	isParameter := func(a Axis) bool { return strings.HasPrefix(a.Name, "param.") }
	ofDataset := varies(inputDataset) || slices.ContainsFunc(t.varying(), isParameter)
	for _, in := range []struct{ name, what string }{
		{inputServer, "The servers or their versions differ between cases"},
		{inputDurability, "The servers' durability settings differ between cases"},
		{inputTarget, "The targets differ between cases"},
		{inputTable, "The tables differ between cases"},
		{inputDataset, "The datasets differ between cases"},
		{inputMachine, "The cases were pushed from different machines"},
		{"host", "The cases were pushed from different hosts"},
		{inputVersion, "The cases were pushed by different versions of terapush"},
	} {
		values := valuesOf(t.allInputs, in.name)
		explained := varies(in.name) || ofDataset && (in.name == inputTable || in.name == inputDataset)
		if len(values) > 1 && !explained {
			warnings = append(warnings, in.what+": "+firstFew(values)+".")
		}
	}
	return warnings
}

// driftOf warns that the machine's speed changed by more than a share while the entries were pushed: if the medians of
// two quarters of them, in the order of time, differ by more than that and their intervals do not meet.
func driftOf(entries []Entry, matters float64) string {
	var speeds []float64
	for _, e := range slices.SortedStableFunc(slices.Values(entries), func(a, b Entry) int { return a.Started.Compare(b.Started) }) {
		if finite(e.Speed) && e.Speed > 0 {
			speeds = append(speeds, e.Speed)
		}
	}
	parts := min(len(speeds)/LeastTrials, 4)
	if parts < 2 {
		return ""
	}
	var quarters []Sample
	for i := range parts {
		quarters = append(quarters, SampleOf(speeds[i*len(speeds)/parts:(i+1)*len(speeds)/parts]))
	}
	byMedian := func(a, b Sample) int { return cmp.Compare(a.Median, b.Median) }
	slow, fast := slices.MinFunc(quarters, byMedian), slices.MaxFunc(quarters, byMedian)
	drift := 1 - slow.Median/fast.Median
	if drift <= matters || slow.MedianHigh >= fast.MedianLow {
		return ""
	}
	return fmt.Sprintf("The machine that runs terapush drifted: a reference before and after every push was up to %s slower at one "+
		"time than at another. Rates of different times may differ as much.", units.Percent(drift))
}

func (t Table) notDurable() string {
	unsafe := t.ofPushes(func(r *report.Report) []string {
		_, unsafe := durability(r)
		return unsafe
	})
	return around("With ", firstFew(unsafe),
		" a crash of the server may lose acknowledged rows: do not expect such rates with durable settings.")
}

// ofPushes returns what the pushes have, each once and sorted.
func (t Table) ofPushes(of func(*report.Report) []string) []string {
	var all []string
	for _, r := range t.reports() {
		all = append(all, of(r)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t Table) mixedDelivery() string {
	guarantees := t.ofPushes(func(r *report.Report) []string { return []string{r.Plan.Delivery} })
	guarantees = those(guarantees, func(text string) bool { return text != "" })
	if len(guarantees) < 2 {
		return ""
	}
	text := strings.Join(guarantees, " and ") +
		" are in one table: guarantees differ, and so do their costs, which the rates include."
	if slices.Contains(guarantees, "exactly-once") {
		text += " Cases without exactly-once may hold rows twice or lack some."
	}
	return text
}

// closeBest warns if the fastest case may be so by chance.
func (t Table) closeBest() string {
	others := slices.DeleteFunc(t.measured(), func(i int) bool { return i == t.Best })
	if len(others) == 0 {
		return ""
	}
	first, second := t.Points[t.Best], t.Points[fastestOf(t, others, 1)[0]]
	if differ, known := apart(first.RowsPerSecond, second.RowsPerSecond); differ || !known || first.rate() == 0 {
		return ""
	}
	return fmt.Sprintf("The best two cases (%s; %s) differ by %s, which is within their noise (±%s and ±%s):"+
		" it is not known which is faster.",
		first.Settings, second.Settings, units.Percent(1-second.rate()/first.rate()),
		units.Percent(first.RowsPerSecond.Spread()), units.Percent(second.RowsPerSecond.Spread()))
}

// warnOfCells returns a warning about the points for which is returns true, "" without any.
func (t Table) warnOfCells(what, consequence string, is func(Point) bool) string {
	var cells []string
	for _, p := range t.Points {
		if is(p) {
			cells = append(cells, p.Settings.String())
		}
	}
	switch {
	case len(cells) == 0:
		return ""
	case len(cells) < len(t.Points):
		what += fmt.Sprintf(" in %d of %d cases (%s)", len(cells), len(t.Points), firstFew(cells))
	case len(cells) > 1:
		what += " in all cases"
	}
	return units.Join(": ", what, consequence) + "."
}

// firstFew names the first three and counts the rest.
func firstFew(all []string) string {
	const most = 3
	if more := len(all) - most; more > 1 {
		return strings.Join(all[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(all, "; ")
}
