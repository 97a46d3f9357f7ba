package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
)

// namedCells is how many cells a warning names before it only counts them.
const namedCells = 3

// warnings says in plain sentences what must not be read into a table.
func warnings(t Table) []string {
	said := []string{}
	add := func(text string) {
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	for _, in := range differing(t) {
		add(in)
	}
	add(notDurable(t))
	for _, check := range []func(Table) string{
		failedProof, unproven, mixedDelivery, fewRepeats, closeBest, noisyNeighbours, wereCut, failed, notBegun, retried, ofTheClient, held, ofTheMachine,
	} {
		add(check(t))
	}
	return said
}

// differing names the inputs that are not the same for all points and are no axis: nobody would expect them to be.
func differing(t Table) []string {
	var said []string
	for _, name := range []string{inputServer, inputDurability, inputTarget, inputTable, inputDataset, inputMachine, "host", inputVersion} {
		found := values(t.allInputs, name)
		if len(found) < 2 || t.explains(name) {
			continue
		}
		what := map[string]string{
			inputServer:     "The servers or their versions differ between cells",
			inputDurability: "The servers' durability settings differ between cells",
			inputTarget:     "The targets differ between cells",
			inputTable:      "The tables differ between cells",
			inputDataset:    "The datasets differ between cells",
			inputMachine:    "The cells were pushed from different machines",
			"host":          "The cells were pushed from different hosts",
			inputVersion:    "The cells were pushed by different versions of terapush",
		}[name]
		said = append(said, what+": "+list(found)+".")
	}
	return said
}

// explains tells whether the reader of the axes sees already that an input differs. Durability is never taken for granted.
func (t Table) explains(input string) bool {
	varies := func(axis string) bool {
		return slices.ContainsFunc(t.Axes, func(a Axis) bool { return a.Name == axis && len(a.Values) > 1 })
	}
	return varies(input) || input == inputTable && varies(inputDataset)
}

func notDurable(t Table) string {
	found := map[string]bool{}
	for _, r := range t.reports() {
		for _, s := range unsafeSettings(r) {
			found[s] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("With %s a crash of the server may lose rows that it has acknowledged: such rates are no promise for a durable table.",
		list(slices.Sorted(maps.Keys(found))))
}

func failedProof(t Table) string {
	return t.cells("The proof of arrival failed", "", func(p Point) bool { return p.unproven })
}

func unproven(t Table) string {
	return t.cells("Arrival was not verified", "what the server acknowledged is all that is known", func(p Point) bool {
		return p.some(func(r *report.Report) bool { return r.Verify.Mode == "none" })
	})
}

func mixedDelivery(t Table) string {
	found := map[string]bool{}
	for _, r := range t.reports() {
		if r.Plan.Delivery != "" {
			found[r.Plan.Delivery] = true
		}
	}
	if len(found) < 2 {
		return ""
	}
	text := strings.Join(slices.Sorted(maps.Keys(found)), " and ") + " stand beside each other: the guarantees differ, and what they cost is in the rates."
	if !found["exactly-once"] {
		return text
	}
	return text + " Cells without exactly-once may hold rows twice or lack some."
}

func fewRepeats(t Table) string {
	return t.cells("Fewer than 3 pushes were measured", "how much such rates vary by themselves is not known", func(p Point) bool {
		return p.RowsPerSecond.N > 0 && p.RowsPerSecond.N < 3
	})
}

// closeBest says when the fastest cell is so by chance.
func closeBest(t Table) string {
	if t.Best < 0 {
		return ""
	}
	var others []int
	for i, p := range t.Points {
		if i != t.Best && p.RowsPerSecond.N > 0 {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return ""
	}
	first, second := t.Points[t.Best], t.Points[fastest(t.Points, others)]
	if differ, known := apart(first.RowsPerSecond, second.RowsPerSecond); differ || !known || first.RowsPerSecond.Median == 0 {
		return ""
	}
	return fmt.Sprintf("The best two cells (%s; %s) differ by %s, which is within their noise (±%s and ±%s): which is faster is not known.",
		first.Settings, second.Settings, percent(1-second.RowsPerSecond.Median/first.RowsPerSecond.Median),
		percent(first.RowsPerSecond.Spread()), percent(second.RowsPerSecond.Spread()))
}

// noisyNeighbours counts the steps along the knee's axis that are no steps.
func noisyNeighbours(t Table) string {
	axis, ok := kneeAxis(t.planned, t.Axes)
	if !ok {
		return ""
	}
	steps, known := 0, 0
	var some []string
	for _, row := range rowsAlong(axis, t.Points) {
		for n := 1; n < len(row); n++ {
			a, b := t.Points[row[n-1]], t.Points[row[n]]
			differ, isKnown := apart(a.RowsPerSecond, b.RowsPerSecond)
			if isKnown {
				known++
			}
			if isKnown && !differ {
				steps++
				values := axis.Name + " " + a.Settings.Value(axis.Name) + " and " + b.Settings.Value(axis.Name)
				some = append(some, Joined(", ", a.Settings.Without(axis.Name).String(), values))
			}
		}
	}
	if steps == 0 {
		return ""
	}
	return fmt.Sprintf("In %d of %d steps along %s the noise is larger than the difference: %s.", steps, known, axis.Name, list(some))
}

func wereCut(t Table) string {
	return t.cells("Pushes were cut by the cell's time limit", "their rates are of what was acknowledged by then", func(p Point) bool { return p.Limited > 0 })
}

func failed(t Table) string {
	return t.cells("Pushes failed and do not count", "", func(p Point) bool { return p.Failed > 0 })
}

func notBegun(t Table) string {
	return t.cells("Nothing was measured", "", func(p Point) bool { return p.Status == Skipped })
}

func retried(t Table) string {
	return t.cells("Batches had to be sent again", "the time for that is in the rates", func(p Point) bool { return p.Retries > 0 })
}

// ofTheClient keeps a reader from taking the client's rate for a database's.
func ofTheClient(t Table) string {
	return t.cells("The target discards its rows", "such rates are this client's and no database's", func(p Point) bool {
		return p.some(func(r *report.Report) bool {
			return r.Target.Backend == "discard" || strings.Contains(r.Target.Server, "terapush-sink")
		})
	})
}

func held(t Table) string {
	return t.cells("--max-rate held the client back", "such rates are no measure of the server", func(p Point) bool {
		return p.some(func(r *report.Report) bool { return r.Plan.MaxRate > 0 })
	})
}

// ofTheMachine says when the client was the limit: then a rate says little about a database. Records of before there was
// a verdict tell it by the CPU.
func ofTheMachine(t Table) string {
	const busy = 0.9
	return t.cells("The client was the limit", "such rates are no measure of the server, and a larger client may be faster", func(p Point) bool {
		return p.some(func(r *report.Report) bool {
			switch event.Limit(r.BoundBy.Verdict) {
			case event.LimitClient, event.LimitSource:
				return true
			case "":
				return r.Client.LoadSeconds > busy*r.Result.Seconds*float64(r.Client.Cores) && r.Client.LoadSeconds > 0
			}
			return false
		})
	})
}

// cells is a warning about those points that it is true of; "" when there is none.
func (t Table) cells(what, so string, is func(Point) bool) string {
	var found []string
	for _, p := range t.Points {
		if is(p) {
			found = append(found, p.Settings.String())
		}
	}
	where := fmt.Sprintf(" in %d of %d cells (%s)", len(found), len(t.Points), list(found))
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

// reports are those of all pushes that count.
func (t Table) reports() []*report.Report {
	var all []*report.Report
	for _, p := range t.Points {
		all = append(all, p.Pushes...)
	}
	return all
}

func (p Point) some(is func(*report.Report) bool) bool {
	return slices.ContainsFunc(p.Pushes, is)
}

// list names the first few and counts the rest.
func list(all []string) string {
	if more := len(all) - namedCells; more > 1 {
		return strings.Join(all[:namedCells], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(all, "; ")
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
