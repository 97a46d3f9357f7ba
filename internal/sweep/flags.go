package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
)

// checkFlags reports the names of flags that do not exist or have no place in a plan.
func (p *planner) checkFlags(part partKeys) {
	all := slices.Clone(part.Push)
	for _, method := range part.Methods {
		all = append(all, method.value...)
	}
	for _, e := range all {
		switch name := normal(e.key); {
		case name == targetName:
			p.add(e.line, "target is no flag: write it beside push, or make it an axis")
		case p.isFlag(e.key, e.line) && name != setFlag && len(e.value) != 1 && e.value != nil:
			p.add(e.line, "%s: a list is here, one value belongs", e.key)
		}
	}
	for _, e := range part.Axes {
		switch name := normal(e.key); {
		case name == setFlag:
			p.add(e.line, "axis set: write set.NAME for the session variable NAME")
		case name != targetName:
			p.isFlag(e.key, e.line)
		}
	}
}

// isFlag reports whether a case may be given the flag, and adds a problem if not.
func (p *planner) isFlag(key string, line int) bool {
	name := normal(key)
	if slices.Contains(p.names, name) || strings.HasPrefix(name, setPrefix) && len(name) > len(setPrefix) {
		return true
	}
	if name == "report" || slices.Contains(ofProcess(), name) {
		p.add(line, "--%s cannot be set in a plan: give it on the command line", name)
		return false
	}
	hint := "terapush push --help lists them"
	if guess := config.Suggest(key, append([]string{targetName}, p.names...)); guess != "" {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	p.add(line, "flag %q does not exist; %s", key, hint)
	return false
}

// sizes are flags that may stand outside of push, since a plan without one says little.
func sizes() []string { return []string{"rows", "bytes", "duration"} }

// push reads the flags of all cases of a part.
func (p *planner) push(keys partKeys) map[string][]string {
	push, lines := make(map[string][]string), make(map[string]int)
	put := func(name string, s scalar, value string) {
		for _, other := range p.excludedBy(name) {
			if at, ok := lines[other]; ok {
				p.add(s.line, "%s: line %d has %s, and one of them only may be given", name, at, other)
			}
		}
		push[name], lines[name] = []string{value}, s.line
	}
	for i, s := range []scalar{keys.Rows, keys.Bytes, keys.Duration} {
		if name := sizes()[i]; s.line > 0 {
			put(name, s, p.checked(name, s))
		}
	}
	p.readFlags(keys.Push, put)
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		for _, other := range p.excludedBy(name) {
			delete(push, other)
		}
		push[name] = p.given[name]
	}
	return push
}

// readFlags calls put for every flag, and for every entry of set as for the flag set.NAME.
func (p *planner) readFlags(flags entries[scalars], put func(name string, s scalar, value string)) {
	for _, e := range flags {
		name := normal(e.key)
		for _, s := range e.value {
			if name != setFlag {
				put(name, s, p.checked(name, s))
				continue
			}
			variable, value, found := strings.Cut(p.expand(s), "=")
			if variable = strings.TrimSpace(variable); !found || variable == "" {
				p.add(s.line, "set: write it as name=value")
				continue
			}
			put(setPrefix+variable, s, strings.TrimSpace(value))
		}
	}
}

// methods reads the flags of single methods, as far as the part has them.
func (p *planner) methods(part *Part, methods entries[entries[scalars]]) {
	has := part.Push[methodFlag]
	for _, a := range part.Axes {
		if a.Name == methodFlag {
			has = a.Values
		}
	}
	for _, e := range methods {
		if !slices.Contains(has, e.key) {
			continue
		}
		p.used[e.key] = true
		own := make(map[string][]string)
		p.readFlags(e.value, func(name string, s scalar, value string) {
			if slices.ContainsFunc(p.excludedBy(name), func(other string) bool { return p.given[other] != nil }) {
				return // the command line says it of all cases
			}
			for _, other := range p.excludedBy(name) {
				if hasAxis(*part, other) {
					p.add(s.line, "%s: %s is an axis, and a cell takes one of them only", name, other)
				}
				if part.Push[other] != nil && other != name {
					p.add(s.line, "%s: push has %s, and a cell takes one of them only", name, other)
				}
			}
			own[name] = []string{value}
		})
		if part.Methods == nil {
			part.Methods = make(map[string]map[string][]string)
		}
		part.Methods[e.key] = own
	}
}

func hasAxis(part Part, name string) bool {
	return slices.ContainsFunc(part.Axes, func(a results.Axis) bool { return a.Name == name })
}

// checkMethods refuses flags of a method that no part has: most likely its name is wrong.
func (p *planner) checkMethods(keys overrideKeys) {
	all := slices.Clone(keys.Shared.Methods)
	for _, part := range keys.Parts {
		all = append(all, part.value.Methods...)
	}
	for _, e := range all {
		if !p.used[e.key] && e.value != nil {
			p.add(e.line, "methods: no cell has the method %s", e.key)
		}
	}
}

// excludedBy lists the flags that may not be given beside name, itself included.
func (p *planner) excludedBy(name string) []string {
	for _, group := range p.exclusive {
		if slices.Contains(group, name) {
			return group
		}
	}
	return []string{name}
}

// axis adds an axis to the part.
func (p *planner) axis(part *Part, e entry[scalars]) {
	name := normal(e.key)
	for _, other := range p.excludedBy(name) {
		switch {
		case p.given[other] != nil:
			p.add(e.line, "axis %s: the command line has --%s as well", name, other)
		case part.Push[other] != nil:
			p.add(e.line, "axis %s: push has %s as well, and a cell takes one of them only", name, other)
		}
		if hasAxis(*part, other) {
			p.add(e.line, "axis %s: %s is an axis as well, and a cell takes one of them only", name, other)
		}
	}
	if name == targetName && p.knee == name {
		p.add(e.line, "knee: targets have no order")
	}
	if name == targetName && p.Target != "" {
		part.targets = []string{p.Target}
		part.Axes = append(part.Axes, results.Axis{Name: name, Values: []string{p.shown(p.Target, e.line)}})
		return
	}
	axis := results.Axis{Name: name}
	var was string
	for _, s := range e.value {
		for _, value := range p.values(s, name) {
			raw := value
			if name == targetName {
				value = p.shown(raw, s.line)
			} else {
				p.check(name, value, s.line)
			}
			if slices.Contains(axis.Values, value) {
				p.add(s.line, "axis %s: %s is here twice", name, value)
				continue
			}
			switch name {
			case targetName:
				part.targets = append(part.targets, raw)
			case p.knee:
				p.rises(name, was, value, s.line)
				was = value
			}
			axis.Values = append(axis.Values, value)
		}
	}
	if len(e.value) == 0 {
		p.add(e.line, "axis %s has no values", name)
	}
	part.Axes = append(part.Axes, axis)
}
