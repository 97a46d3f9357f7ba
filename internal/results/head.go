package results

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Digest identifies what the cases of the parts are: their flags, axes, and the time limit of one push. Titles, facts
// and what only decides which cases are pushed, when and how often (repeats, budget, settle, knee) are not in it.
func Digest(parts []Part, limit time.Duration) string {
	cells := []any{limit.Seconds()}
	for _, p := range parts {
		cells = append(cells, []any{p.Name, p.Push, p.Methods, p.Axes})
	}
	text, _ := json.Marshal(cells) // map keys are sorted; strings and lists of them cannot fail
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Same reports whether two heads are equal except for the time of their start.
func (h Head) Same(other Head) bool {
	h.Started = other.Started
	was, err := json.Marshal(h)
	is, err2 := json.Marshal(other)
	return err == nil && err2 == nil && bytes.Equal(was, is) // nil and empty lists are equal there
}

// Difference describes the first difference between the sweep of a record and the one that is to continue it, in one
// line; "" if both have the same cases.
func (h Head) Difference(now Head) string {
	if h.Digest == now.Digest {
		return ""
	}
	was, is := h.cellInputs(), now.cellInputs()
	for _, in := range slices.Concat(inputsWithout(was, is), inputsWithout(is, was)) {
		value := func(all []Input) string { return cmp.Or(strings.Join(valuesOf(all, in.Name), ", "), "not given") }
		return fmt.Sprintf("%s was %s, now it is %s", in.Name, value(was), value(is))
	}
	return "the plan differs"
}

// cellInputs lists what Digest covers, for people.
func (h Head) cellInputs() []Input {
	var parts []string
	for _, p := range h.Parts {
		parts = append(parts, p.Name)
	}
	all := []Input{{"the plan", h.Name}, {"the scale", h.Scale}, {"the list of parts", strings.Join(parts, ", ")}}
	if h.Limit > 0 {
		all = append(all, Input{"limit", time.Duration(h.Limit * float64(time.Second)).String()})
	}
	for _, p := range h.Parts {
		part := flagsOf(p)
		for _, a := range p.Axes {
			part = append(part, Input{"axis " + a.Name, "[" + strings.Join(a.Values, ", ") + "]"})
		}
		part = append(part, Input{"the order of axes", strings.Join(axisNames(p.Axes), ", ")})
		for _, in := range part {
			if p.Name != "" {
				in.Name = "part " + p.Name + ": " + in.Name
			}
			all = append(all, in)
		}
	}
	return all
}

func flagsOf(p Part) (all []Input) {
	add := func(of string, flags map[string][]string) {
		for _, name := range slices.Sorted(maps.Keys(flags)) {
			all = append(all, Input{"--" + name + of, strings.Join(flags[name], ", ")})
		}
	}
	add("", p.Push)
	for _, method := range slices.Sorted(maps.Keys(p.Methods)) {
		add(" of "+method, p.Methods[method])
	}
	for _, a := range p.Axes {
		for _, value := range a.Values {
			add(" of "+a.Name+" "+value, a.Settings[value])
		}
	}
	return all
}

func axisNames(axes []Axis) (names []string) {
	for _, a := range axes {
		names = append(names, a.Name)
	}
	return names
}
