package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/record"
)

// push reads the flags of all cells of a part.
func (p *planner) push(n *node) map[string][]string {
	push, lines := make(map[string][]string), make(map[string]int)
	put := func(name string, line int, value string) {
		for _, other := range p.excludedBy(name) {
			if at, ok := lines[other]; ok {
				p.add(line, "%s: line %d has %s, and one of them only may be given", name, at, other)
			}
		}
		push[name], lines[name] = []string{value}, line
	}
	for _, name := range sizes() {
		if size := n.named(name); size != nil {
			put(name, size.line, p.checked(name, size))
		}
	}
	p.flags(n.named("push"), put)
	p.fromCommandLine(push)
	return push
}

// flags reads a mapping of flags.
func (p *planner) flags(n *node, put func(name string, line int, value string)) {
	for _, e := range n.pairs() {
		name := normal(e.key)
		if name == setFlag {
			for _, item := range e.value.each() {
				p.setting(item, put)
			}
			continue
		}
		put(name, e.line, p.checked(name, e.value))
	}
}

// methods reads the flags of single methods, as far as the part has them.
func (p *planner) methods(part *Part, n *node) {
	has := part.Push[methodFlag]
	for _, a := range part.Axes {
		if a.Name == methodFlag {
			has = a.Values
		}
	}
	for _, e := range n.pairs() {
		if !slices.Contains(has, e.key) {
			continue
		}
		p.used[e.key] = true
		own := make(map[string][]string)
		p.flags(e.value, func(name string, line int, value string) {
			if p.onCommandLine(name) {
				return
			}
			for _, other := range p.excludedBy(name) {
				if slices.ContainsFunc(part.Axes, func(a record.Axis) bool { return a.Name == other }) {
					p.add(line, "%s: %s is an axis, and a cell takes one of them only", name, other)
				}
				if _, both := part.Push[other]; both && other != name {
					p.add(line, "%s: push has %s, and a cell takes one of them only", name, other)
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

// checkMethods refuses flags of a method that no part has: most likely its name is wrong.
func (p *planner) checkMethods(n *node) {
	all := n.named("methods").pairs()
	for _, part := range n.named("parts").pairs() {
		all = append(slices.Clip(all), part.value.named("methods").pairs()...)
	}
	for _, e := range all {
		if !p.used[e.key] {
			p.add(e.line, "methods: no cell has the method %s", e.key)
		}
	}
}

// setting reads an entry of set, as --set has it.
func (p *planner) setting(n *node, put func(name string, line int, value string)) {
	name, value, found := strings.Cut(p.expand(n), "=")
	if name = strings.TrimSpace(name); !found || name == "" {
		p.add(n.line, "set: write it as name=value")
		return
	}
	put(setPrefix+name, n.line, strings.TrimSpace(value))
}

func (p *planner) fromCommandLine(push map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(p.Push)) {
		for _, other := range p.excludedBy(name) {
			delete(push, other)
		}
		if name != setFlag {
			push[name] = p.Push[name]
			continue
		}
		for _, text := range p.Push[name] {
			variable, value, _ := strings.Cut(text, "=")
			push[setPrefix+strings.TrimSpace(variable)] = []string{strings.TrimSpace(value)}
		}
	}
}

// onCommandLine tells whether the command line says of all cells what a method says of its own.
func (p *planner) onCommandLine(name string) bool {
	if variable, isSet := strings.CutPrefix(name, setPrefix); isSet {
		return slices.ContainsFunc(p.Push[setFlag], func(text string) bool {
			given, _, _ := strings.Cut(text, "=")
			return strings.TrimSpace(given) == variable
		})
	}
	return slices.ContainsFunc(p.excludedBy(name), func(other string) bool { return p.Push[other] != nil })
}

// excludedBy lists the flags that may not be given beside name, itself included.
func (p *planner) excludedBy(name string) []string {
	for _, group := range p.Exclusive {
		if slices.Contains(group, name) {
			return group
		}
	}
	return []string{name}
}

func (p *planner) unknownFlag(line int, name string) {
	if slices.Contains(p.Others, normal(name)) {
		p.add(line, "--%s cannot be set in a plan: give it on the command line", normal(name))
		return
	}
	hint := "terapush push --help lists them"
	if guess := config.Suggest(name, append([]string{targetName}, p.Flags...)); guess != "" {
		hint = fmt.Sprintf("did you mean %q?", guess)
	}
	p.add(line, "flag %q does not exist; %s", name, hint)
}
