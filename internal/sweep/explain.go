package sweep

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/results"
)

// heading names the plan, with what its name does not say.
func (s *Sweep) heading() string {
	text := s.Plan.Name
	if s.Plan.Scale != "" {
		text += " at scale " + s.Plan.Scale
	}
	if s.Plan.Title != s.Plan.Name {
		text += ": " + s.Plan.Title
	}
	return text
}

// Explain prints every case and what the whole sweep will take. file is where its record will be, or is: done are the
// pushes that it has already.
func (s *Sweep) Explain(w io.Writer, file string, done []results.Entry) error {
	out := &strings.Builder{}
	fmt.Fprintln(out, "dry run: nothing was connected to, so limits of the server are not in these numbers")
	fmt.Fprintf(out, "sweep     %s\n", s.heading())
	fmt.Fprintf(out, "record    %s%s\n", file, s.doneInWords(done))
	fmt.Fprintf(out, "order     %s\n", s.orderInWords())
	for i, part := range s.Parts {
		own := s.casesOf(i)
		if len(own) == 0 {
			continue
		}
		fmt.Fprintln(out)
		if part.Name != "" {
			fmt.Fprintf(out, "part      %s: %s\n", part.Name, part.Title)
		}
		for _, name := range slices.Sorted(maps.Keys(part.Push)) {
			for _, value := range part.Push[name] {
				fmt.Fprintf(out, "all       %s %s\n", name, value)
			}
		}
		for _, method := range slices.Sorted(maps.Keys(part.Methods)) {
			for _, name := range slices.Sorted(maps.Keys(part.Methods[method])) {
				fmt.Fprintf(out, "%-9s %s %s\n", method, name, strings.Join(part.Methods[method][name], ", "))
			}
		}
		table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		s.rows(table, part, own)
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	for _, line := range s.estimate() {
		fmt.Fprintln(out, line)
	}
	_, err := fmt.Fprint(w, out)
	return err
}

func (s *Sweep) casesOf(part int) []Case {
	return slices.DeleteFunc(slices.Clone(s.Cases), func(c Case) bool { return c.Part != part })
}

// doneInWords says how much of the sweep the record has already.
func (s *Sweep) doneInWords(done []results.Entry) string {
	total, failed := 0, 0
	for _, e := range done {
		ours := slices.ContainsFunc(s.Cases, func(c Case) bool { return c.Part == e.Part && c.Number == e.Cell })
		if !ours || e.Status == results.Skipped || !e.WarmUp && e.Repeat >= s.Plan.Repeats {
			continue
		}
		total++
		if e.Status == results.Failed {
			failed++
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

func (s *Sweep) orderInWords() string {
	words := []string{"the plan's"}
	if s.Plan.Interleaved {
		words[0] = "shuffled in every repeat, the same whenever this sweep is done"
	}
	if s.Plan.Knee != "" {
		words = append(words, fmt.Sprintf("all repeats of one value of %s before the next; a row ends when two in succession are no better, within %g %%",
			s.Plan.Knee, 100*results.Near))
	}
	if s.Plan.Settle > 0 {
		words = append(words, fmt.Sprintf("%s between pushes", s.Plan.Settle))
	}
	return strings.Join(words, "; ")
}

// rows prints the cases of a part: the axes, and what becomes of them.
func (s *Sweep) rows(out *tabwriter.Writer, part results.Part, cases []Case) {
	var names []string
	for _, a := range part.Axes {
		names = append(names, strings.ToUpper(a.Name))
	}
	fmt.Fprintf(out, "CELL\t%s\tROWS\tPAYLOAD\tBATCHES\tBATCH\tWORKERS USED\tMEMORY\n", strings.Join(names, "\t"))
	for _, c := range cases {
		var values []string
		for _, setting := range c.Settings {
			values = append(values, setting.Value)
		}
		rows, payload, batches := humanize.Comma(c.Plan.Rows), size(c.Plan.PayloadTotal()), humanize.Comma(c.Plan.Batches())
		if c.Plan.ByDuration {
			rows, payload, batches = "for "+c.Config.Duration.String(), "-", "-"
		}
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s of %s\t%d\t%s\n", c.Number, strings.Join(values, "\t"), rows, payload, batches,
			size(c.Plan.BatchBytes()), english.Plural(int(c.Plan.BatchRows), "row", ""), c.Plan.Workers, size(c.Plan.Memory))
	}
}

// estimate says what the sweep takes if no row of cases ends early.
func (s *Sweep) estimate() []string {
	var pushes, unbounded, published int
	var payload float64
	var most, told time.Duration
	for i := range s.Parts {
		for n, c := range s.casesOf(i) {
			times := s.Plan.Repeats
			if n == 0 {
				times += s.Plan.WarmUp
			}
			pushes += times
			if !c.Plan.ByDuration {
				payload += float64(times) * float64(c.Plan.PayloadTotal())
			}
			if bound := s.bound(c); bound > 0 {
				most += time.Duration(times) * bound
			} else {
				unbounded += times
			}
			if d := s.byFacts(c); d > 0 {
				published += times
				told += time.Duration(times) * d
			}
		}
	}
	lines := []string{fmt.Sprintf("pushes    %d: %s, %s", pushes, english.Plural(len(s.Cases), "cell", ""), s.repeatsInWords())}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if payload > 0 {
		add("payload   %s of all pushes together", size(min(payload, math.MaxInt64/2)))
	}
	switch {
	case unbounded == 0:
		most += time.Duration(max(pushes-1, 0)) * s.Plan.Settle
		add("time      at most %s, besides preparing and proving, by the limits of the pushes", rounded(most))
	case s.Plan.Budget == 0:
		add("time      no bound: %d pushes end when their rows are in, and the plan has neither limit nor budget", unbounded)
	}
	if s.Plan.Budget > 0 {
		add("budget    %s: what has not begun by then is skipped", rounded(s.Plan.Budget))
	}
	if published > 0 {
		add("published at the rates that were published, %s for the %d pushes of which there are any", rounded(told), published)
	}
	return lines
}

func (s *Sweep) repeatsInWords() string {
	text := "once each"
	if s.Plan.Repeats > 1 {
		text = fmt.Sprintf("%d times each", s.Plan.Repeats)
	}
	if s.Plan.WarmUp > 0 {
		text += fmt.Sprintf(", and %s before every part", english.Plural(s.Plan.WarmUp, "warm-up", ""))
	}
	return text
}

// bound returns the longest that the rows of a push may move, 0 if nothing bounds it.
func (s *Sweep) bound(c Case) time.Duration {
	limit, duration := s.Plan.Limit, c.Config.Duration
	if limit > 0 && duration > 0 {
		return min(limit, duration)
	}
	return max(limit, duration)
}

// byFacts returns how long a push would take at the rate that was published for its case, 0 if none was.
func (s *Sweep) byFacts(c Case) time.Duration {
	facts := s.Parts[c.Part].Facts
	if facts == nil {
		return 0
	}
	settings := map[string]string{}
	for _, one := range c.Settings {
		settings[one.Axis] = one.Value
	}
	for _, f := range facts.Points {
		same := true
		for axis, value := range f.At {
			same = same && settings[axis] == value
		}
		var seconds float64
		switch {
		case !same || len(f.At) == 0 && len(facts.Points) > 1:
			continue
		case c.Plan.ByDuration:
			return c.Config.Duration
		case f.RowsPerSecond > 0:
			seconds = float64(c.Plan.Rows) / f.RowsPerSecond
		case f.OverallRowsPerSecond > 0:
			seconds = float64(c.Plan.Rows) / f.OverallRowsPerSecond
		case f.BytesPerSecond > 0:
			seconds = float64(c.Plan.PayloadTotal()) / f.BytesPerSecond
		}
		return time.Duration(min(seconds, 1e9) * float64(time.Second))
	}
	return 0
}

// rounded leaves seconds, of long times only minutes, and more of what is shorter than ten seconds.
func rounded(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
