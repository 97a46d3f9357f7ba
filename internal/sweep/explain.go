package sweep

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// Explain prints every case and an estimate of the whole sweep. file is its record, and done are the trials in it.
func (s *Sweep) Explain(w io.Writer, file string, done []results.Entry) error {
	heading := s.Plan.Name
	if s.Plan.Scale != "" {
		heading += " at scale " + s.Plan.Scale
	}
	if s.Plan.Title != s.Plan.Name {
		heading += ": " + s.Plan.Title
	}
	fmt.Fprintln(w, "dry run: nothing was connected to, so limits of the server are not in these numbers")
	fmt.Fprintf(w, "sweep     %s\n", heading)
	fmt.Fprintf(w, "record    %s%s\n", file, s.describeDone(done))
	fmt.Fprintf(w, "order     %s\n", s.describeOrder())
	for i, part := range s.Parts {
		own := casesOf(s.Cases, i)
		if len(own) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if part.Name != "" {
			fmt.Fprintf(w, "part      %s: %s\n", part.Name, part.Title)
		}
		writeFlags(w, "all", part.Push)
		for _, method := range slices.Sorted(maps.Keys(part.Methods)) {
			writeFlags(w, method, part.Methods[method])
		}
		for _, a := range part.Axes {
			for _, value := range a.Values {
				writeFlags(w, value, a.Settings[value])
			}
		}
		if n := len(part.Excluded); n > 0 {
			fmt.Fprintf(w, "cases     %d of %d combinations\n", part.Cells-n, part.Cells)
		}
		if err := writeCases(w, part, own); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "\n", s.estimate(done))
	return err
}

func writeFlags(w io.Writer, of string, flags map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		for _, value := range flags[name] {
			fmt.Fprintf(w, "%-9s %s %s\n", of, name, value)
		}
	}
}

func (s *Sweep) describeDone(done []results.Entry) string {
	total, failed := 0, 0
	for _, c := range s.Cases {
		for _, e := range s.madeOf(c, done) {
			total++
			if e.Status == results.Failed {
				failed++
			}
		}
	}
	if total == 0 {
		return ""
	}
	text := fmt.Sprintf(", which has %s of this sweep already", english.Plural(total, "push", "pushes"))
	if failed > 0 {
		text += fmt.Sprintf("; %d failed, which --retry-failed does again", failed)
	}
	return text
}

func (s *Sweep) describeOrder() string {
	words := []string{"the plan's"}
	if s.Plan.Interleaved {
		words[0] = "shuffled in every repeat, the same whenever this sweep is done"
	}
	if s.Plan.Knee != "" {
		words = append(words, fmt.Sprintf("all repeats of one value of %s before the next; "+
			"a row ends when two in succession are no better, within %g %%", s.Plan.Knee, 100*results.Near))
	}
	if s.Plan.Settle > 0 {
		words = append(words, fmt.Sprintf("%s between pushes", s.Plan.Settle))
	}
	return strings.Join(words, "; ")
}

// writeCases prints the cases of a part: their axes, and their plans.
func writeCases(w io.Writer, part results.Part, cases []Case) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(out, "CASE\t")
	for _, a := range part.Axes {
		fmt.Fprint(out, strings.ToUpper(a.Name), "\t")
	}
	fmt.Fprintln(out, "ROWS\tPAYLOAD\tBATCHES\tBATCH\tWORKERS USED\tMEMORY")
	for _, c := range cases {
		fmt.Fprint(out, c.Number, "\t")
		for _, setting := range c.Settings {
			fmt.Fprint(out, setting.Value, "\t")
		}
		rows, payload, batches := units.Count(c.Plan.Rows), units.Bytes(c.Plan.PayloadTotal()), units.Count(c.Plan.Batches())
		if c.Plan.ByDuration() {
			rows, payload, batches = "for "+c.Config.Duration.String(), "-", "-"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s of %s\t%d\t%s\n", rows, payload, batches,
			units.Bytes(c.Plan.BatchBytes()), english.Plural(int(c.Plan.BatchRows), "row", ""), c.Plan.Workers, units.Bytes(c.Plan.Memory))
	}
	return out.Flush()
}

// What a push takes beside its load: to prepare, to prove and to close, on a server nearby that does other things, too; and
// to fill its buffers with so many bytes a second.
const (
	besideLoad = time.Second
	fillRate   = 512 << 20
)

// estimate says what the sweep takes if no row of cases ends early.
func (s *Sweep) estimate(done []results.Entry) string {
	var pushes, left, unknown int
	var payload float64
	var takes time.Duration
	atMost := s.Plan.Precision > 0
	for i := range s.Parts {
		for n, c := range casesOf(s.Cases, i) {
			times := s.Plan.Repeats
			if n == 0 {
				times += s.Plan.WarmUp
			}
			pushes += times
			if !c.Plan.ByDuration() {
				payload += float64(times) * float64(c.Plan.PayloadTotal())
			}

			made, each, most := s.takes(c, done)
			rest := max(times-made, 0)
			left += rest
			takes += time.Duration(rest) * each
			atMost = atMost || most
			if each == 0 {
				unknown += rest
			}
		}
	}
	takes += time.Duration(max(left-1, 0)) * s.Plan.Settle

	var out strings.Builder
	number, about := strconv.Itoa(pushes), "about"
	if s.Plan.Precision > 0 {
		number = "at most " + number
	}
	if atMost {
		about = "at most about"
	}
	fmt.Fprintf(&out, "pushes    %s: %s, %s\n", number, english.Plural(len(s.Cases), "case", ""), s.describeRepeats())
	if payload > 0 {
		fmt.Fprintf(&out, "payload   %s of all pushes together\n", units.Bytes(int64(min(payload, math.MaxInt64/2))))
	}
	switch {
	case left == 0 || unknown > 0 && s.Plan.Budget > 0: // the budget says it
	case unknown > 0:
		fmt.Fprintf(&out, "time      not known: %s until the rows are in; sweep with --repeats 1 first, and its record tells\n",
			english.PluralWord(unknown, "1 push lasts", strconv.Itoa(unknown)+" pushes last"))
	default:
		fmt.Fprintf(&out, "time      %s %s, with preparation and proof\n", about, rounded(takes))
	}
	if s.Plan.Budget > 0 {
		fmt.Fprintf(&out, "budget    %s: what has not begun by then is skipped\n", rounded(s.Plan.Budget))
	}
	return out.String()
}

func (s *Sweep) describeRepeats() string {
	text := "once each"
	switch {
	case s.Plan.Precision > 0:
		text = fmt.Sprintf("%d to %d times each, until the median is known to %s",
			results.LeastTrials, s.Plan.Repeats, units.Percent(s.Plan.Precision))
	case s.Plan.Repeats > 1:
		text = fmt.Sprintf("%d times each", s.Plan.Repeats)
	}
	if s.Plan.WarmUp > 0 {
		text += fmt.Sprintf(", and %s before every part", english.Plural(s.Plan.WarmUp, "warm-up", ""))
	}
	return text
}

// madeOf returns those pushes of a case that are done.
func (s *Sweep) madeOf(c Case, done []results.Entry) (made []results.Entry) {
	for _, e := range done {
		isOurs := e.Part == c.Part && e.Cell == c.Number && (e.WarmUp || e.Repeat < s.Plan.Repeats)
		if isOurs && e.Status != results.Skipped {
			made = append(made, e)
		}
	}
	return made
}

// takes returns how many pushes of a case are done, and how long one takes: as long as they did or, if none was measured, its
// duration, or its limit at most; 0 if it is not known.
func (s *Sweep) takes(c Case, done []results.Entry) (made int, each time.Duration, atMost bool) {
	var took pace
	all := s.madeOf(c, done)
	for _, e := range all {
		took.add(e)
	}
	if took.n > 0 {
		return len(all), took.mean(0), false
	}

	load := s.Plan.Limit
	if d := c.Config.Duration; d > 0 {
		load = min(d+c.Config.WarmUp, cmp.Or(load, math.MaxInt64))
	}
	if load == 0 {
		return len(all), 0, false
	}
	return len(all), load + besideLoad + seconds(float64(c.Plan.Memory)/fillRate), c.Config.Duration == 0
}

// rounded formats a time to a second, or to 10 ms below ten seconds.
func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
