package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// findWarnings says in plain sentences what must not be read into a table.
func (t Table) findWarnings() []string {
	said := []string{}
	add := func(text string) {
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	for _, text := range t.differing() {
		add(text)
	}
	add(t.notDurable())
	cells := func(what, so string, is func(Point) bool) { add(t.warnOfCells(what, so, is)) }
	cells("The proof of arrival failed", "", func(p Point) bool { return p.unproven })
	cells("Arrival was not verified", "what the server acknowledged is all that is known", func(p Point) bool {
		return p.some(func(r *report.Report) bool { return r.Verify.Mode == "none" })
	})
	add(t.mixedDelivery())
	cells("Fewer than 3 pushes were measured", "how much such rates vary by themselves is not known", func(p Point) bool {
		return p.measured() && p.RowsPerSecond.N < 3
	})
	add(t.closeBest())
	add(t.noisySteps())
	cells("Pushes were cut by the cell's time limit", "their rates are of what was acknowledged by then",
		func(p Point) bool { return p.Limited > 0 })
	cells("Pushes failed and do not count", "", func(p Point) bool { return p.Failed > 0 })
	cells("Nothing was measured", "", func(p Point) bool { return p.Status == Skipped })
	cells("Batches had to be sent again", "the time for that is in the rates", func(p Point) bool { return p.Retries > 0 })
	cells("The target discards its rows", "such rates are this client's and no database's", func(p Point) bool {
		return p.some(func(r *report.Report) bool {
			return r.Target.Backend == "discard" || strings.Contains(r.Target.Server, loader.SinkMark)
		})
	})
	cells("--max-rate held the client back", "such rates are no measure of the server", func(p Point) bool {
		return p.some(func(r *report.Report) bool { return r.Plan.MaxRate > 0 })
	})
	cells("The client was the limit", "such rates are no measure of the server, and a larger client may be faster",
		func(p Point) bool { return p.some(clientWasLimit) })
	return said
}

// differing names the inputs that are not the same for all points and are no axis: nobody would expect them to be.
func (t Table) differing() []string {
	var said []string
	for _, in := range []struct{ name, what string }{
		{inputServer, "The servers or their versions differ between cells"},
		{inputDurability, "The servers' durability settings differ between cells"},
		{inputTarget, "The targets differ between cells"},
		{inputTable, "The tables differ between cells"},
		{inputDataset, "The datasets differ between cells"},
		{inputMachine, "The cells were pushed from different machines"},
		{"host", "The cells were pushed from different hosts"},
		{inputVersion, "The cells were pushed by different versions of terapush"},
	} {
		if found := valuesOf(t.allInputs, in.name); len(found) > 1 && !t.explains(in.name) {
			said = append(said, in.what+": "+firstFew(found)+".")
		}
	}
	return said
}

// explains reports whether a reader of the axes sees already that an input differs. Durability is never taken for
// granted.
func (t Table) explains(input string) bool {
	varies := func(axis string) bool {
		return slices.ContainsFunc(t.varying(), func(a Axis) bool { return a.Name == axis })
	}
	return varies(input) || input == inputTable && varies(inputDataset)
}

func (t Table) notDurable() string {
	found := map[string]bool{}
	for _, r := range t.reports() {
		for _, s := range unsafeSettings(r) {
			found[s] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "With " + firstFew(slices.Sorted(maps.Keys(found))) +
		" a crash of the server may lose rows that it has acknowledged: such rates are no promise for a durable table."
}

func (t Table) mixedDelivery() string {
	found := map[string]bool{}
	for _, r := range t.reports() {
		if r.Plan.Delivery != "" {
			found[r.Plan.Delivery] = true
		}
	}
	if len(found) < 2 {
		return ""
	}
	text := strings.Join(slices.Sorted(maps.Keys(found)), " and ") +
		" stand beside each other: the guarantees differ, and what they cost is in the rates."
	if !found["exactly-once"] {
		return text
	}
	return text + " Cells without exactly-once may hold rows twice or lack some."
}

// closeBest says when the fastest cell is so by chance.
func (t Table) closeBest() string {
	others := slices.DeleteFunc(t.measured(), func(i int) bool { return i == t.Best })
	if len(others) == 0 {
		return ""
	}
	first, second := t.Points[t.Best], t.Points[fastest(t.Points, others)]
	if differ, known := apart(first.RowsPerSecond, second.RowsPerSecond); differ || !known || first.rate() == 0 {
		return ""
	}
	return fmt.Sprintf("The best two cells (%s; %s) differ by %s, which is within their noise (±%s and ±%s):"+
		" which is faster is not known.",
		first.Settings, second.Settings, units.Percent(1-second.rate()/first.rate()),
		units.Percent(first.RowsPerSecond.Spread()), units.Percent(second.RowsPerSecond.Spread()))
}

// noisySteps counts the steps along the knee's axis that are no steps.
func (t Table) noisySteps() string {
	axis, ok := kneeAxis(t.planned, t.Axes)
	if !ok {
		return ""
	}
	total := 0
	var noisy []string
	for _, row := range rowsAlong(axis, t.Points) {
		for n := 1; n < len(row); n++ {
			a, b := t.Points[row[n-1]], t.Points[row[n]]
			differ, known := apart(a.RowsPerSecond, b.RowsPerSecond)
			if !known {
				continue
			}
			if total++; !differ {
				values := axis.Name + " " + a.Settings.Value(axis.Name) + " and " + b.Settings.Value(axis.Name)
				noisy = append(noisy, joined(", ", a.Settings.Without(axis.Name).String(), values))
			}
		}
	}
	if len(noisy) == 0 {
		return ""
	}
	return fmt.Sprintf("In %d of %d steps along %s the noise is larger than the difference: %s.",
		len(noisy), total, axis.Name, firstFew(noisy))
}

// clientWasLimit reports whether the client was the limit: then a rate says little about a database. Records of before
// there was a verdict tell it by the CPU.
func clientWasLimit(r *report.Report) bool {
	const busy = 0.9
	switch event.Limit(r.BoundBy.Verdict) {
	case event.LimitClient, event.LimitSource:
		return true
	case "":
		return r.Client.LoadSeconds > busy*r.Result.Seconds*float64(r.Client.Cores) && r.Client.LoadSeconds > 0
	}
	return false
}

// warnOfCells is a warning about those points that it is true of; "" when there is none.
func (t Table) warnOfCells(what, so string, is func(Point) bool) string {
	var found []string
	for _, p := range t.Points {
		if is(p) {
			found = append(found, p.Settings.String())
		}
	}
	where := fmt.Sprintf(" in %d of %d cells (%s)", len(found), len(t.Points), firstFew(found))
	switch {
	case len(found) == 0:
		return ""
	case len(found) == len(t.Points) && len(found) == 1:
		where = ""
	case len(found) == len(t.Points):
		where = " in all cells"
	}
	if so != "" {
		so = ": " + so
	}
	return what + where + so + "."
}

// some reports whether something is true of any push of the point.
func (p Point) some(is func(*report.Report) bool) bool { return slices.ContainsFunc(p.Pushes, is) }

// firstFew names the first three and counts the rest.
func firstFew(all []string) string {
	const most = 3
	if more := len(all) - most; more > 1 {
		return strings.Join(all[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(all, "; ")
}
