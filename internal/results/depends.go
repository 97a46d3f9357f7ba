package results

import (
	"slices"
	"strings"
)

// depends are the inputs for people, in eight lines at most; HTML and JSON have every one by itself.
func depends(t Table) []Input {
	machine := input(t, "machine")
	if cores := input(t, "client cores"); machine == "" && cores != "" {
		machine = cores + " cores"
	}
	target := ""
	if input(t, "--target") == "" { // a sweep has it among its flags
		target = Joined(", table ", input(t, "target"), input(t, "table"))
	}
	all := []Input{
		{Name: "target", Value: target},
		{Name: "server", Value: input(t, "server")},
		{Name: "durability", Value: input(t, "durability")},
		{Name: "data", Value: Joined(", ", input(t, "dataset"), withName(t, "seed", "data seed"), withUnit(t, "rows", " rows"))},
		{Name: "plan", Value: plan(t)},
		{Name: "machine", Value: machine},
		{Name: "terapush", Value: input(t, "terapush")},
		{Name: "settings", Value: settings(t)},
		{Name: "flags", Value: flags(t)},
	}
	if t.Facts != nil { // the line "here" has them
		all = slices.DeleteFunc(all, func(in Input) bool {
			return in.Name == "server" || in.Name == "durability" || in.Name == "machine"
		})
	}
	return slices.DeleteFunc(all, func(in Input) bool { return in.Value == "" })
}

// withName is an input behind a name, valued one before its unit; "" where the cells do not share it.
func withName(t Table, name, of string) string {
	if value := input(t, of); value != "" {
		return name + " " + value
	}
	return ""
}

func withUnit(t Table, of, unit string) string {
	if value := input(t, of); value != "" {
		return value + unit
	}
	return ""
}

// plan is how the rows were pushed, as far as it is the same for all cells.
func plan(t Table) string {
	parts := []string{
		withName(t, "method", "method"), withName(t, "format", "format"), input(t, "delivery"), withName(t, "workers", "workers"),
		withName(t, "batch rows", "batch rows"), withName(t, "batch bytes", "batch bytes"), withUnit(t, "batches a commit", " batches a commit"),
		withName(t, "max rate", "max rate"), withName(t, "verify", "verify"), withName(t, "repeats", "repeats"),
	}
	for _, s := range fixed(t) {
		if plain := strings.ReplaceAll(s.Axis, "-", " "); input(t, plain) == "" {
			parts = append(parts, s.Axis+" "+s.Value)
		}
	}
	return Joined(", ", parts...)
}

// settings are those of the server that do not stand in the line of durability.
func settings(t Table) string {
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

func flags(t Table) string {
	var found []string
	for _, in := range t.Inputs {
		if strings.HasPrefix(in.Name, "--") {
			found = append(found, in.Name+" "+in.Value)
		}
	}
	return strings.Join(found, " ")
}

// inCommon are the lines that several tables have all; none of a single table.
func inCommon(tables []Table) []Input {
	if len(tables) < 2 {
		return nil
	}
	common := depends(tables[0])
	for _, t := range tables[1:] {
		has := depends(t)
		common = slices.DeleteFunc(common, func(in Input) bool { return !slices.Contains(has, in) })
	}
	return common
}

func except(all, others []Input) []Input {
	return slices.DeleteFunc(all, func(in Input) bool { return slices.Contains(others, in) })
}
