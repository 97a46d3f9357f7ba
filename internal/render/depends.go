package render

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/analysis"
)

// depends are the inputs for people, in eight lines at most; HTML and JSON have every one by itself.
func depends(t analysis.Table) []analysis.Input {
	machine := input(t, "machine")
	if cores := input(t, "client cores"); machine == "" && cores != "" {
		machine = cores + " cores"
	}
	target := ""
	if input(t, "--target") == "" { // a sweep has it among its flags
		target = analysis.Joined(", table ", input(t, "target"), input(t, "table"))
	}
	all := []analysis.Input{
		{Name: "target", Value: target},
		{Name: "server", Value: input(t, "server")},
		{Name: "durability", Value: input(t, "durability")},
		{Name: "data", Value: analysis.Joined(", ", input(t, "dataset"), named(t, "seed", "data seed"), valued(t, "rows", " rows"))},
		{Name: "plan", Value: plan(t)},
		{Name: "machine", Value: machine},
		{Name: "terapush", Value: input(t, "terapush")},
		{Name: "settings", Value: settings(t)},
		{Name: "flags", Value: flags(t)},
	}
	if t.Facts != nil { // the line "here" has them
		all = slices.DeleteFunc(all, func(in analysis.Input) bool {
			return in.Name == "server" || in.Name == "durability" || in.Name == "machine"
		})
	}
	return slices.DeleteFunc(all, func(in analysis.Input) bool { return in.Value == "" })
}

// named is an input behind a name, valued one before its unit; "" where the cells do not share it.
func named(t analysis.Table, name, of string) string {
	if value := input(t, of); value != "" {
		return name + " " + value
	}
	return ""
}

func valued(t analysis.Table, of, unit string) string {
	if value := input(t, of); value != "" {
		return value + unit
	}
	return ""
}

// plan is how the rows were pushed, as far as it is the same for all cells.
func plan(t analysis.Table) string {
	parts := []string{
		named(t, "method", "method"), named(t, "format", "format"), input(t, "delivery"), named(t, "workers", "workers"),
		named(t, "batch rows", "batch rows"), named(t, "batch bytes", "batch bytes"), valued(t, "batches a commit", " batches a commit"),
		named(t, "max rate", "max rate"), named(t, "verify", "verify"), named(t, "repeats", "repeats"),
	}
	for _, s := range fixed(t) {
		if plain := strings.ReplaceAll(s.Axis, "-", " "); input(t, plain) == "" {
			parts = append(parts, s.Axis+" "+s.Value)
		}
	}
	return analysis.Joined(", ", parts...)
}

// settings are those of the server that do not stand in the line of durability.
func settings(t analysis.Table) string {
	decisive := strings.Split(input(t, "durability"), ", ")
	var found []string
	for _, in := range t.Inputs {
		name, is := strings.CutPrefix(in.Name, "setting ")
		if is && !slices.Contains(decisive, name+"="+in.Value) {
			found = append(found, name+"="+in.Value)
		}
	}
	return strings.Join(found, ", ")
}

func flags(t analysis.Table) string {
	var found []string
	for _, in := range t.Inputs {
		if strings.HasPrefix(in.Name, "--") {
			found = append(found, in.Name+" "+in.Value)
		}
	}
	return strings.Join(found, " ")
}

// inCommon are the lines that several tables have all; none of a single table.
func inCommon(tables []analysis.Table) []analysis.Input {
	if len(tables) < 2 {
		return nil
	}
	common := depends(tables[0])
	for _, t := range tables[1:] {
		has := depends(t)
		common = slices.DeleteFunc(common, func(in analysis.Input) bool { return !slices.Contains(has, in) })
	}
	return common
}

func except(all, others []analysis.Input) []analysis.Input {
	return slices.DeleteFunc(all, func(in analysis.Input) bool { return slices.Contains(others, in) })
}
