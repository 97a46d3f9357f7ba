package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Digest stands for all that the cells of the parts are told: flags and axes, without titles and facts.
func Digest(parts []Part) string {
	var told []any
	for _, p := range parts {
		told = append(told, []any{p.Name, p.Push, p.Methods, p.Axes})
	}
	text, err := json.Marshal(told) // the keys of maps come sorted
	if err != nil {
		panic(fmt.Sprintf("record: %v", err)) // strings and lists of them alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Difference says in one line where the sweep of a record is another than the one that is to be gone on with; "" where
// both tell their cells the same.
func (h Head) Difference(now Head) string {
	switch {
	case h.Digest == now.Digest:
		return ""
	case h.Name != now.Name:
		return fmt.Sprintf("it is of the plan %q, this is %q", h.Name, now.Name)
	case h.Scale != now.Scale:
		return fmt.Sprintf("its scale is %q, this is %q", h.Scale, now.Scale)
	case len(h.Parts) != len(now.Parts):
		return fmt.Sprintf("its plan has %d parts, this one has %d", len(h.Parts), len(now.Parts))
	}
	for i, was := range h.Parts {
		if d := was.difference(now.Parts[i]); d != "" && was.Name != "" {
			return fmt.Sprintf("part %s: %s", was.Name, d)
		} else if d != "" {
			return d
		}
	}
	return "its plan is another"
}

func (p Part) difference(now Part) string {
	if p.Name != now.Name {
		return fmt.Sprintf("its name is now %q", now.Name)
	}
	was, is := p.values(), now.values()
	for _, name := range slices.Sorted(maps.Keys(union(was, is))) {
		if was[name] != is[name] {
			return fmt.Sprintf("%s was %s, now it is %s", name, orNothing(was[name]), orNothing(is[name]))
		}
	}
	for i, a := range p.Axes {
		if a.Name != now.Axes[i].Name {
			return fmt.Sprintf("its axes come in another order: %s was where %s is now", a.Name, now.Axes[i].Name)
		}
	}
	return ""
}

// values are a part's flags and axes by name.
func (p Part) values() map[string]string {
	all := map[string]string{}
	for name, values := range p.Push {
		if name != "target" {
			name = "--" + name
		}
		all[name] = strings.Join(values, ", ")
	}
	for method, push := range p.Methods {
		for name, values := range push {
			all["--"+name+" of "+method] = strings.Join(values, ", ")
		}
	}
	for _, a := range p.Axes {
		all["axis "+a.Name] = "[" + strings.Join(a.Values, ", ") + "]"
	}
	return all
}

func union(a, b map[string]string) map[string]string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func orNothing(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}
