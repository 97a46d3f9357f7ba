package results

import (
	"slices"
	"strings"
	"unicode"
)

// legible are the tables with texts that a terminal may be shown. They come from servers and from records of others, and an
// escape sequence in one would move the cursor, rename the window or worse. JSON is not for terminals and takes texts as
// they are. The tables given are left as they are.
func legible(tables []Table) []Table {
	clean := slices.Clone(tables)
	for i := range clean {
		t := &clean[i]
		t.Name, t.Title, t.Scale = printable(t.Name), printable(t.Title), printable(t.Scale)
		t.Axes = mapped(t.Axes, func(a Axis) Axis {
			return Axis{Name: printable(a.Name), Values: mapped(a.Values, printable)}
		})
		t.Points = mapped(t.Points, func(p Point) Point {
			p.Settings, p.Error = legibleSettings(p.Settings), printable(p.Error)
			return p
		})
		t.Inputs = mapped(t.Inputs, legibleInput)
		t.Knees = mapped(t.Knees, func(k Knee) Knee {
			k.Axis, k.Row, k.At, k.Best = printable(k.Axis), legibleSettings(k.Row), printable(k.At), printable(k.Best)
			return k
		})
		t.Warnings = mapped(t.Warnings, printable)
		if t.Facts != nil { // the points are the same, as a table's points refer to them
			f := *t.Facts
			f.Source, f.Machine, f.Note = printable(f.Source), printable(f.Machine), printable(f.Note)
			t.Facts = &f
		}
	}
	return clean
}

// legibleComparison is the same for a comparison.
func legibleComparison(c Comparison) Comparison {
	c.A, c.B = printable(c.A), printable(c.B)
	c.Cells = mapped(c.Cells, func(p Pair) Pair {
		p.Table, p.Settings = printable(p.Table), legibleSettings(p.Settings)
		return p
	})
	c.Lost = mapped(c.Lost, func(l Lost) Lost {
		l.Table, l.Settings, l.Error = printable(l.Table), legibleSettings(l.Settings), printable(l.Error)
		return l
	})
	c.Inputs = mapped(c.Inputs, func(d Difference) Difference {
		return Difference{Name: printable(d.Name), A: printable(d.A), B: printable(d.B)}
	})
	return c
}

func legibleSettings(settings Settings) Settings {
	return mapped(settings, func(s Setting) Setting {
		return Setting{Axis: printable(s.Axis), Value: printable(s.Value)}
	})
}

func legibleInput(in Input) Input {
	return Input{Name: printable(in.Name), Value: printable(in.Value)}
}

func mapped[L ~[]T, T any](list L, to func(T) T) L {
	clean := slices.Clone(list)
	for i := range clean {
		clean[i] = to(clean[i])
	}
	return clean
}

// printable has a sign in the place of what is no letter, and a space for any other white space.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
