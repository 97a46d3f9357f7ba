package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxKnees bounds the knees that are told in words: they are in the notes of the cells as well. It bounds the errors, too.
const maxKnees = 12

// Text writes tables for people and terminals. What all of several tables depend on stands at their end, once.
func Text(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	var b strings.Builder
	lines := func(all []Input) {
		for _, in := range all {
			fmt.Fprintf(&b, "%-17s %s\n", in.Name, oneLine(in.Value))
		}
	}
	tables = legible(tables)
	common := inCommon(tables)
	for i, t := range tables {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(heading(t) + "\n\n")
		if len(t.Points) > 0 {
			b.WriteString(gridOf(t, notes).text() + "\n")
		}
		lines(append(shortenedErrors(t), conclusions(t)...))
		for _, text := range t.Warnings {
			lines([]Input{{Name: "warning", Value: text}})
		}
		lines(besides(t))
		lines(except(depends(t), common))
	}
	if len(common) > 0 {
		b.WriteString("\n\nall tables\n\n")
		lines(common)
	}
	return write(w, "text", b.String())
}

// conclusions are the best cell, the smallest that is nearly as fast, and the knee of every row.
func conclusions(t Table) []Input {
	if t.Best < 0 {
		return []Input{{Name: "best", Value: "nothing was measured"}}
	}
	var found []Input
	if len(t.Points) > 1 {
		found = append(found, Input{Name: "best", Value: at(t, t.Best)})
		if t.Smallest != t.Best {
			found = append(found, Input{Name: "smallest", Value: at(t, t.Smallest) + ", within " + near() + " of the best"})
		}
	}
	return append(append(found, ceilings(t)...), kneeLines(t)...)
}

// ceilings are what calibrate has measured, and how near the fastest cell came.
func ceilings(t Table) []Input {
	var found []Input
	for _, c := range t.Ceilings() {
		text := printable(c.Name)
		if n, share := t.Under(c); n >= 0 {
			who := "this run"
			if len(t.Points) > 1 {
				who = t.Points[n].Settings.String()
			}
			text += fmt.Sprintf(", of which %s has %.0f %%", who, 100*share)
		}
		found = append(found, Input{Name: "ceiling", Value: text})
	}
	return found
}

// kneeLines tells of every row where more stopped to pay. Of rows that were still rising at their end there is nothing to
// tell but how many they are.
func kneeLines(t Table) []Input {
	var found []Input
	rising := map[string]int{}
	var ends []string
	for _, k := range t.Knees {
		at := k.Axis + " " + k.At
		if !k.Reached {
			if rising[at]++; rising[at] == 1 {
				ends = append(ends, at)
			}
			continue
		}
		text := Joined(": ", k.Row.String(), at)
		if k.At != k.Best {
			text += fmt.Sprintf(" is within %s of the best, which is at %s", near(), k.Best)
		} else {
			text += " is the best, and nothing smaller is within " + near()
		}
		found = append(found, Input{Name: "knee", Value: text})
	}
	if more := len(found) - maxKnees; more > 1 {
		found = append(found[:maxKnees], Input{Name: "knee", Value: fmt.Sprintf("of %d more rows: see the notes", more)})
	}
	for _, at := range ends {
		text := fmt.Sprintf("not reached: %s, the most that was measured, is the best", at)
		if len(t.Knees) > 1 {
			text += fmt.Sprintf(" in %d of %d rows", rising[at], len(t.Knees))
		}
		found = append(found, Input{Name: "knee", Value: text})
	}
	return found
}

func at(t Table, i int) string {
	p := t.Points[i]
	return fmt.Sprintf("%s: %s rows/s, %s MiB/s", p.Settings.String(), amount(p.RowsPerSecond.Median), amount(p.BytesPerSecond.Median/mib))
}

// besides are what was published and what was measured here, so that nobody reads the one as the other.
func besides(t Table) []Input {
	if t.Facts == nil {
		return nil
	}
	in := []Input{{Name: "seed", Value: Joined("; ", t.Facts.Source, t.Facts.Machine, t.Facts.Note)}}
	here := Joined("; ", input(t, "server"), input(t, "durability"), input(t, "machine"))
	if here != "" {
		in = append(in, Input{Name: "here", Value: here})
	}
	found := 0
	for i := range t.Facts.Points {
		if slices.ContainsFunc(t.Points, func(p Point) bool { return p.Fact == &t.Facts.Points[i] }) {
			found++
		}
	}
	if missing := len(t.Facts.Points) - found; missing > 0 {
		in = append(in, Input{Name: "seed", Value: fmt.Sprintf("%d of %d published figures have no cell of the same settings here", missing, len(t.Facts.Points))})
	}
	return in
}

func input(t Table, name string) string {
	for _, in := range t.Inputs {
		if in.Name == name {
			return in.Value
		}
	}
	return ""
}
