package cli

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/record"
)

// explain prints every cell and what the sweep will take, and connects to nothing.
func (s *sweeper) explain() error {
	out := &strings.Builder{}
	fmt.Fprintln(out, "dry run: nothing was connected to, so limits of the server are not in these numbers")
	fmt.Fprintf(out, "sweep     %s at scale %s: %s\n", s.work.Name, s.work.Scale, s.work.Title)
	fmt.Fprintf(out, "record    %s\n", s.record)
	fmt.Fprintf(out, "order     %s\n", s.orderInWords())
	for i, part := range s.parts {
		own := s.cellsOf(i)
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
	_, err := fmt.Fprint(s.Stdout, out)
	return err
}

func (s *sweeper) cellsOf(part int) []sweepCell {
	return slices.DeleteFunc(slices.Clone(s.cells), func(c sweepCell) bool { return c.Part != part })
}

func (s *sweeper) orderInWords() string {
	words := []string{"the plan's"}
	if s.work.Interleaved {
		words[0] = "shuffled in every repeat, the same whenever this sweep is done"
	}
	if s.work.Knee != "" {
		words = append(words, "a row ends when two values of "+s.work.Knee+" in succession bring less than 5 %")
	}
	if s.work.Settle > 0 {
		words = append(words, fmt.Sprintf("%s between pushes", s.work.Settle))
	}
	return strings.Join(words, "; ")
}

// rows prints the cells of a part: the axes, and what becomes of them.
func (s *sweeper) rows(out *tabwriter.Writer, part record.Part, cells []sweepCell) {
	var names []string
	for _, a := range part.Axes {
		names = append(names, strings.ToUpper(a.Name))
	}
	fmt.Fprintf(out, "CELL\t%s\tROWS\tPAYLOAD\tBATCHES\tBATCH\tWORKERS USED\tMEMORY\n", strings.Join(names, "\t"))
	for _, c := range cells {
		var values []string
		for _, setting := range c.Settings {
			values = append(values, setting.Value)
		}
		rows, payload, batches := humanize.Comma(c.plan.Rows), sizeOf(c.plan.PayloadTotal()), humanize.Comma(c.plan.Batches())
		if c.plan.ByDuration {
			rows, payload, batches = "for "+c.config.Duration.String(), "-", "-"
		}
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s of %s\t%d\t%s\n", c.Number, strings.Join(values, "\t"), rows, payload, batches,
			sizeOf(c.plan.BatchBytes()), english.Plural(int(c.plan.BatchRows), "row", ""), c.plan.Workers, sizeOf(c.plan.Memory))
	}
}

// estimate is what the sweep takes if no row of cells ends early.
func (s *sweeper) estimate() []string {
	var pushes, unbounded, known int
	var payload float64
	var bound, told time.Duration
	add := func(c sweepCell, times int) {
		pushes += times
		if !c.plan.ByDuration {
			payload += float64(times) * float64(c.plan.PayloadTotal())
		}
		most := s.bound(c)
		if most == 0 {
			unbounded += times
		}
		bound += time.Duration(times) * most
		if d := s.byFacts(c); d > 0 {
			known += times
			told += time.Duration(times) * d
		}
	}
	for i := range s.parts {
		for n, c := range s.cellsOf(i) {
			times := s.work.Repeats
			if n == 0 {
				times += s.work.WarmUp
			}
			add(c, times)
		}
	}
	settle := time.Duration(max(pushes-1, 0)) * s.work.Settle
	lines := []string{fmt.Sprintf("pushes    %d: %s, %s", pushes, english.Plural(len(s.cells), "cell", ""), s.repeatsInWords())}
	if payload > 0 {
		lines = append(lines, fmt.Sprintf("payload   %s of all pushes together", sizeOf(int64(min(payload, math.MaxInt64/2)))))
	}
	switch {
	case unbounded == 0:
		lines = append(lines, fmt.Sprintf("time      at most %s, besides preparing and proving, by the limits of the pushes", rounded(bound+settle)))
	case s.work.Budget == 0:
		lines = append(lines, fmt.Sprintf("time      no bound: %d pushes end when their rows are in, and the plan has neither limit nor budget", unbounded))
	}
	if s.work.Budget > 0 {
		lines = append(lines, fmt.Sprintf("budget    %s: what has not begun by then is skipped", rounded(s.work.Budget)))
	}
	if known > 0 {
		lines = append(lines, fmt.Sprintf("published at the rates that were published, %s for the %d pushes of which there are any", rounded(told), known))
	}
	return lines
}

func (s *sweeper) repeatsInWords() string {
	text := "once each"
	if s.work.Repeats > 1 {
		text = fmt.Sprintf("%d times each", s.work.Repeats)
	}
	if s.work.WarmUp > 0 {
		text += fmt.Sprintf(", and %s before every part", english.Plural(s.work.WarmUp, "warm-up", ""))
	}
	return text
}

// bound is the longest that the rows of a push may move, 0 if nothing bounds it.
func (s *sweeper) bound(c sweepCell) time.Duration {
	switch limit, duration := s.work.Limit, c.config.Duration; {
	case limit > 0 && duration > 0:
		return min(limit, duration)
	default:
		return max(limit, duration)
	}
}

// byFacts is how long a push would take at the rate that was published for its cell, 0 if none was.
func (s *sweeper) byFacts(c sweepCell) time.Duration {
	facts := s.parts[c.Part].Facts
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
		case c.plan.ByDuration:
			return c.config.Duration
		case f.RowsPerSecond > 0:
			seconds = float64(c.plan.Rows) / f.RowsPerSecond
		case f.OverallRowsPerSecond > 0:
			seconds = float64(c.plan.Rows) / f.OverallRowsPerSecond
		case f.BytesPerSecond > 0:
			seconds = float64(c.plan.PayloadTotal()) / f.BytesPerSecond
		}
		return time.Duration(min(seconds, 1e9) * float64(time.Second))
	}
	return 0
}

func sizeOf(n int64) string { return humanize.IBytesN(uint64(max(n, 0)), 4) }

func count(n float64) string { return humanize.Comma(int64(math.Round(n))) }

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
