package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Digest stands for all that the cells of the parts are told: flags, those of single methods included, axes, and the limit
// of one push, which decides what is measured. It does not stand for titles and facts, nor for what only decides which
// cells are pushed, when and how often: repeats, budget, settle, knee.
func Digest(parts []Part, limit time.Duration) string {
	told := []any{limit.Seconds()}
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
	case h.Limit != now.Limit:
		return fmt.Sprintf("limit was %s, now it is %s", limitInWords(h.Limit), limitInWords(now.Limit))
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

func limitInWords(seconds float64) string {
	if seconds == 0 {
		return "none"
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// Same tells whether two heads say the same of a sweep. When it was begun is left out.
func (h Head) Same(other Head) bool {
	h.Started = other.Started
	was, err := json.Marshal(h)
	is, err2 := json.Marshal(other)
	return err == nil && err2 == nil && bytes.Equal(was, is) // as lines: nil and empty are one there
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
	if len(p.Axes) != len(now.Axes) {
		return fmt.Sprintf("it has %d axes, now %d", len(p.Axes), len(now.Axes))
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
