package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/analysis"
)

// maxKnees bounds the knees that are told in words: they are in the notes of the cells as well.
const maxKnees = 12

// Text writes tables for people and terminals.
func Text(w io.Writer, tables []analysis.Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(heading(t) + "\n\n")
		if len(t.Points) > 0 {
			b.WriteString(gridOf(t).text() + "\n")
		}
		lines := conclusions(t)
		for _, text := range t.Warnings {
			lines = append(lines, analysis.Input{Name: "warning", Value: text})
		}
		for _, in := range slices.Concat(lines, besides(t), depends(t)) {
			fmt.Fprintf(&b, "%-17s %s\n", in.Name, oneLine(in.Value))
		}
	}
	return write(w, "text", b.String())
}

// conclusions are the best cell, the smallest that is nearly as fast, and the knee of every row.
func conclusions(t analysis.Table) []analysis.Input {
	if t.Best < 0 {
		return []analysis.Input{{Name: "best", Value: "nothing was measured"}}
	}
	var found []analysis.Input
	if len(t.Points) > 1 {
		found = append(found, analysis.Input{Name: "best", Value: at(t, t.Best)})
		if t.Smallest != t.Best {
			found = append(found, analysis.Input{Name: "smallest", Value: at(t, t.Smallest) + ", within 5 % of the best"})
		}
	}
	return append(found, knees(t)...)
}

// knees tells of every row where more stopped to pay. Of rows that were still rising at their end there is nothing to
// tell but how many they are.
func knees(t analysis.Table) []analysis.Input {
	var found []analysis.Input
	rising := map[string]int{}
	var axes []string
	for _, k := range t.Knees {
		if k.At == k.Best && last(t, k.Axis) == k.At {
			if rising[k.Axis]++; rising[k.Axis] == 1 {
				axes = append(axes, k.Axis)
			}
			continue
		}
		text := joined(": ", analysis.Name(k.Row), k.Axis+" "+k.At)
		if k.At != k.Best {
			text += fmt.Sprintf(" is within 5 %% of the best, which is at %s", k.Best)
		} else {
			text += " is the best, and nothing smaller is within 5 %"
		}
		found = append(found, analysis.Input{Name: "knee", Value: text})
	}
	if more := len(found) - maxKnees; more > 1 {
		found = append(found[:maxKnees], analysis.Input{Name: "knee", Value: fmt.Sprintf("of %d more rows: see the notes", more)})
	}
	for _, axis := range axes {
		text := fmt.Sprintf("not reached: %s %s, the most that was measured, is the best", axis, last(t, axis))
		if len(t.Knees) > 1 {
			text += fmt.Sprintf(" in %d of %d rows", rising[axis], len(t.Knees))
		}
		found = append(found, analysis.Input{Name: "knee", Value: text})
	}
	return found
}

// last is the end of an axis.
func last(t analysis.Table, axis string) string {
	for _, a := range t.Axes {
		if a.Name == axis {
			return a.Values[len(a.Values)-1]
		}
	}
	return ""
}

func at(t analysis.Table, i int) string {
	p := t.Points[i]
	return fmt.Sprintf("%s: %s rows/s, %s MiB/s", analysis.Name(p.Settings), amount(p.RowsPerSecond.Median), amount(p.BytesPerSecond.Median/mib))
}

// besides are what was published and what was measured here, so that nobody reads the one as the other.
func besides(t analysis.Table) []analysis.Input {
	if t.Facts == nil {
		return nil
	}
	in := []analysis.Input{{Name: "seed", Value: joined("; ", t.Facts.Source, t.Facts.Machine, t.Facts.Note)}}
	here := joined("; ", input(t, "server"), input(t, "durability"), input(t, "machine"))
	if here != "" {
		in = append(in, analysis.Input{Name: "here", Value: here})
	}
	found := 0
	for i := range t.Facts.Points {
		if slices.ContainsFunc(t.Points, func(p analysis.Point) bool { return p.Fact == &t.Facts.Points[i] }) {
			found++
		}
	}
	if missing := len(t.Facts.Points) - found; missing > 0 {
		in = append(in, analysis.Input{Name: "seed", Value: fmt.Sprintf("%d of %d published figures have no cell of the same settings here", missing, len(t.Facts.Points))})
	}
	return in
}

func input(t analysis.Table, name string) string {
	for _, in := range t.Inputs {
		if in.Name == name {
			return in.Value
		}
	}
	return ""
}

// depends are the inputs, the settings of the server in one line and the flags in another.
func depends(t analysis.Table) []analysis.Input {
	var in []analysis.Input
	for _, s := range fixed(t) {
		in = append(in, analysis.Input{Name: s.Axis, Value: s.Value})
	}
	var settings, flags []string
	decisive := strings.Split(input(t, "durability"), ", ")
	for _, i := range t.Inputs {
		name, isSetting := strings.CutPrefix(i.Name, "setting ")
		switch {
		case isSetting && slices.Contains(decisive, name+"="+i.Value): // told already
		case isSetting:
			settings = append(settings, name+"="+i.Value)
		case strings.HasPrefix(i.Name, "--"):
			flags = append(flags, i.Name+" "+i.Value)
		case !slices.ContainsFunc(in, func(had analysis.Input) bool { return had.Name == i.Name }):
			in = append(in, i)
		}
	}
	for _, more := range []analysis.Input{{Name: "settings", Value: strings.Join(settings, ", ")}, {Name: "flags", Value: strings.Join(flags, " ")}} {
		if more.Value != "" {
			in = append(in, more)
		}
	}
	return in
}
