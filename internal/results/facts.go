package results

import (
	"slices"
)

// addFacts puts beside each point what was published about it. A fact that names what no cell here has stays in
// Table.Facts alone.
func addFacts(points []Point, part Part) {
	if part.Facts == nil {
		return
	}
	for i := range points {
		for j := range part.Facts.Points {
			if isOf(part.Facts.Points[j], points[i].Settings, part) {
				points[i].Fact = &part.Facts.Points[j]
				break
			}
		}
	}
}

// isOf tells whether a fact is about a cell: whatever it names is so in the cell, be it an axis or a flag that all cells
// share, and every axis that varies is named. Targets are the exception: the article had its own.
func isOf(f Fact, settings Settings, part Part) bool {
	for name, want := range f.At {
		if !slices.ContainsFunc(valuesOf(name, settings, part), func(have string) bool { return sameValue(have, want) }) {
			return false
		}
	}
	for _, a := range part.Axes {
		if len(a.Values) > 1 && a.Name != axisTarget && a.Name != axisRecord && f.Value(a.Name) == "" {
			return false
		}
	}
	return true
}

func valuesOf(name string, settings Settings, part Part) []string {
	for _, s := range settings {
		if SameName(s.Axis, name) {
			return []string{s.Value}
		}
	}
	for flag, values := range part.Push {
		if SameName(flag, name) {
			return values
		}
	}
	return nil
}
