// Package render shows tables: as text, Markdown, CSV, JSON, lines for benchstat and a page with charts. It takes
// everything from package analysis and decides nothing itself; the same tables give the same bytes.
package results

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

const mib = 1 << 20

// errNothing refuses to show nothing at all, which somebody would take for a result.
var errNothing = errors.New("there is no table to show: the records hold no cells")

func write(w io.Writer, what, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("render: write the %s: %w", what, err)
	}
	return nil
}

// heading is a table's name and title in one line.
func heading(t Table) string {
	text := t.Title
	switch {
	case text == "":
		text = t.Name
	case t.Name != "":
		text = t.Name + ": " + text
	}
	if t.Scale != "" {
		text += " (scale " + t.Scale + ")"
	}
	return text
}

// varying are the axes worth a column: those of several values, or all if there is none.
func varying(t Table) []Axis {
	var found []Axis
	for _, a := range t.Axes {
		if len(a.Values) > 1 {
			found = append(found, a)
		}
	}
	return found
}

// fixed are the settings that all cells share because their axis has one value.
func fixed(t Table) []Setting {
	var found []Setting
	for _, a := range t.Axes {
		if len(a.Values) == 1 {
			found = append(found, Setting{Axis: a.Name, Value: a.Values[0]})
		}
	}
	return found
}

// notes says of a point what no number does: whether it is the best, and how its pushes ended.
func notes(t Table, i int) string {
	p, why := t.Points[i], ending(t.Points[i])
	if why != "" && p.Error != "" {
		why += ": " + shortened(p.Error)
	}
	return Joined(", ", marks(t, i), why)
}

// maxCell is the most letters of an error in a cell: what a server says may be longer than all other columns. What is cut
// there stands whole below the table.
const maxCell = 60

func shortened(why string) string {
	all := []rune(oneLine(why))
	if len(all) <= maxCell {
		return string(all)
	}
	return strings.TrimSpace(string(all[:maxCell])) + "…"
}

// shortenedErrors are the errors that cells have shortened, whole and each once, with the first cell that has it.
func shortenedErrors(t Table) []Input {
	var found []Input
	seen := map[string]bool{}
	for _, p := range t.Points {
		why := oneLine(p.Error)
		if ending(p) == "" || shortened(why) == why || seen[why] {
			continue
		}
		seen[why] = true
		found = append(found, Input{Name: ending(p), Value: Joined(": ", p.Settings.String(), why)})
	}
	if more := len(found) - maxKnees; more > 1 {
		found = append(found[:maxKnees], Input{Name: "failed", Value: fmt.Sprintf("for %d more reasons: see --format csv", more)})
	}
	return found
}

// marks are the notes but for the pushes that do not count.
func marks(t Table, i int) string {
	p := t.Points[i]
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(i == t.Best && len(t.Points) > 1, "best")
	add(i == t.Smallest && i != t.Best, "smallest within "+near())
	add(t.IsKnee(p), "knee")
	add(p.Limited > 0, "limited")
	return strings.Join(parts, ", ")
}

// ending is how pushes of a point ended that do not count; "" if there are none.
func ending(p Point) string {
	switch {
	case p.Status == Failed || p.Status == Skipped:
		return string(p.Status)
	case p.Failed > 0:
		return fmt.Sprintf("%d failed", p.Failed)
	}
	return ""
}

// near is the share of the best rate that a smaller setting may give away.
func near() string { return inPercent(Near) }

func inPercent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// amount shows a number with about three digits behind the first, and none behind the point where they say nothing.
func amount(n float64) string {
	switch {
	case !finite(n):
		return "-"
	case n == 0:
		return "0"
	case math.Abs(n) < 10:
		return fmt.Sprintf("%.2f", n)
	case math.Abs(n) < 100:
		return fmt.Sprintf("%.1f", n)
	}
	return humanize.Comma(int64(math.Round(n)))
}

// finite is false for what a division by nothing leaves, which is not to be shown as a number.
func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

func plusMinus(share float64) string {
	if !finite(share) {
		return "-"
	}
	return fmt.Sprintf("±%.1f %%", 100*share)
}

// seconds shows a time with about three digits.
func seconds(s float64) string {
	switch {
	case !finite(s):
		return "-"
	case s == 0:
		return "0 s"
	case s < 0.001:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 0.01:
		return fmt.Sprintf("%.2f ms", s*1000)
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 100:
		return fmt.Sprintf("%.2f s", s)
	case s < 600:
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// times is how a figure here stands to a published one.
func times(here, there float64) string {
	if here == 0 || there == 0 || !finite(here) || !finite(there) {
		return ""
	}
	return "×" + amount(here/there)
}
