package sweep

import (
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// choice is a value of an axis. It may bring flags of its own, as in NAME: {flag: value}.
type choice struct {
	value
	own mapping[list[value]] // nil without any
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (c *choice) UnmarshalYAML(n ast.Node) error {
	named, ok := n.(*ast.MappingNode)
	if !ok {
		return c.value.UnmarshalYAML(n)
	}
	if len(named.Values) != 1 || named.Values[0].Value.Type() != ast.MappingType {
		return unexpected(n, "a value, or one with flags of its own as NAME: {flag: value}, belongs")
	}

	only := named.Values[0]
	c.value = value{text: keyOf(only), line: lineOf(only.Key), quoted: true}
	return c.own.UnmarshalYAML(only.Value)
}

// bring reads the flags that a value of an axis brings.
func (p *planner) bring(part *Part, axis *results.Axis, name string, c choice) {
	if c.own == nil {
		return
	}

	flags, shown := map[string][]string{}, map[string][]string{}
	p.readFlags(c.own, func(flag string, line int, text string) {
		if slices.ContainsFunc(exclusiveWith(flag), func(other string) bool { return p.given[other] != nil }) {
			p.add(line, "%s is set twice: by %s %s and on the command line; leave one out", flag, axis.Name, name)
		}
		flags[flag], shown[flag] = []string{text}, []string{shownValue(flag, text)}
	})
	if part.own == nil {
		part.own = map[string]map[string]map[string][]string{}
	}
	if part.own[axis.Name] == nil {
		part.own[axis.Name], axis.Settings = map[string]map[string][]string{}, map[string]map[string][]string{}
	}
	part.own[axis.Name][name], axis.Settings[name] = flags, shown
}

// shownValue returns the value of a flag or of an entry as set.NAME, without a secret.
func shownValue(name, text string) string {
	flag, variable, _ := config.Entry(name)
	if flag != "set" {
		return text
	}
	return strings.TrimPrefix(ShownSetting(variable+"="+text), variable+"=")
}

// checkBrought refuses a flag that two axes set.
func (p *planner) checkBrought(part *Part, t table) {
	for _, a := range part.Axes {
		line := lineOfAxis(t, a.Name)
		for _, other := range part.Axes {
			if other.Name == a.Name {
				continue
			}
			for _, flag := range slices.Sorted(maps.Keys(part.brought(a.Name))) {
				if slices.Contains(exclusiveWith(flag), other.Name) {
					p.add(line, "axis %s: its values bring %s, and %s is an axis", a.Name, flag, other.Name)
				}
				if a.Name < other.Name && part.brought(other.Name)[flag] {
					p.add(line, "axes %s and %s: the values of both bring %s", a.Name, other.Name, flag)
				}
			}
		}
	}
}

// lineOfAxis returns the line of an axis, 0 for one that only include has.
func lineOfAxis(t table, name string) int {
	at := t.Axes.find(name)
	if at < 0 {
		return 0
	}
	return t.Axes[at].line
}

// brought returns the flags that values of an axis bring.
func (p *Part) brought(axis string) map[string]bool {
	flags := map[string]bool{}
	for _, own := range p.own[axis] {
		for name := range own {
			flags[name] = true
		}
	}
	return flags
}

// methodNames lists the methods of the cases.
func (p *Part) methodNames() []string {
	names := slices.Clone(p.Push[methodFlag])
	for _, a := range p.Axes {
		for _, value := range a.Values {
			if own := p.own[a.Name][value][methodFlag]; own != nil {
				names = append(names, own...)
			} else if a.Name == methodFlag {
				names = append(names, value)
			}
		}
	}
	return names
}

// choose reads include and exclude, and lists the combinations that are no cases: those of the axes as they are written
// that are excluded, and those of included values that are not included.
func (p *planner) choose(part *Part, t table) {
	listed := len(part.Axes) == 0
	written := make([]int, len(part.Axes))
	for i, a := range part.Axes {
		written[i] = len(a.Values)
	}
	var excluded, included []map[string][]string
	for _, pick := range t.Exclude {
		excluded = append(excluded, p.pick(part, pick, "exclude"))
	}
	for _, pick := range t.Include {
		included = append(included, p.include(part, t, pick, listed))
	}
	for i, pick := range included {
		for _, a := range part.Axes {
			if pick[a.Name] == nil {
				p.add(t.Include[i].line(), "include: this case has no %s; write it, and flags of one value as NAME: {flag: value}", a.Name)
			}
		}
	}

	total := results.Combinations(part.Axes)
	if len(excluded)+len(included) == 0 || total > results.MaxCells {
		return
	}
	for n := range total {
		settings := results.Combination(part.Axes, n)
		isCase := !listed && inProduct(part.Axes, written, settings) && !picked(excluded, settings)
		if !isCase && !picked(included, settings) {
			part.excluded = append(part.excluded, n)
		}
	}
	if len(part.excluded) == total {
		p.add(t.Exclude[0].line(), "exclude: no case is left")
	}
}

// line returns the line of the first key.
func (m mapping[T]) line() int {
	if len(m) == 0 {
		return 0
	}
	return m[0].line
}

// inProduct reports whether all settings are among the first values of their axes, of which written has the numbers.
func inProduct(axes []results.Axis, written []int, settings results.Settings) bool {
	for i, s := range settings {
		if i >= len(written) || slices.Index(axes[i].Values, s.Value) >= written[i] {
			return false
		}
	}
	return true
}

func picked(all []map[string][]string, settings results.Settings) bool {
	return slices.ContainsFunc(all, func(pick map[string][]string) bool {
		for axis, values := range pick {
			if !slices.Contains(values, settings.Value(axis)) {
				return false
			}
		}
		return true
	})
}

// include returns a pick whose values are added to the axes that do not have them.
func (p *planner) include(part *Part, t table, pick mapping[list[choice]], listed bool) map[string][]string {
	for _, e := range pick {
		i := slices.IndexFunc(part.Axes, func(a results.Axis) bool { return a.Name == normal(e.key) })
		if i < 0 && !listed {
			continue // pick refuses it
		}
		if i < 0 {
			p.axis(part, t, e)
			continue
		}
		axis := &part.Axes[i]
		for _, c := range e.value {
			for _, text := range p.values(c.value, axis.Name) {
				if c.own != nil || p.findValue(*axis, text) == "" {
					p.addValue(part, axis, text, c)
				}
			}
		}
	}
	return p.pick(part, pick, "include")
}

// pick returns the values of axes that an entry of include or exclude names.
func (p *planner) pick(part *Part, pick mapping[list[choice]], what string) map[string][]string {
	names := make([]string, len(part.Axes))
	for i, a := range part.Axes {
		names[i] = a.Name
	}

	all := map[string][]string{}
	for _, e := range pick {
		i := slices.Index(names, normal(e.key))
		if i < 0 {
			p.add(e.line, "%s: %v", what, config.Unknown("axis", e.key, names))
			continue
		}
		for _, c := range e.value {
			for _, text := range p.values(c.value, names[i]) {
				found := p.findValue(part.Axes[i], text)
				if found == "" {
					p.add(c.line, "%s: %v", what, config.Unknown("value of "+names[i], text, part.Axes[i].Values))
				}
				all[names[i]] = append(all[names[i]], found)
			}
		}
	}
	if len(all) == 0 {
		p.add(pick.line(), "%s: an entry names at least one axis and its value", what)
	}
	return all
}

// findValue returns the value of an axis that a text is, perhaps written otherwise; "" without one.
func (p *planner) findValue(axis results.Axis, text string) string {
	if axis.Name == targetName {
		text = p.shown(text, 0)
	}
	if slices.Contains(axis.Values, text) {
		return text
	}
	i := slices.IndexFunc(axis.Values, func(v string) bool {
		a, isTime, ok := units.Parse(v)
		b, wasTime, ok2 := units.Parse(text)
		return ok && ok2 && isTime == wasTime && a == b
	})
	if i < 0 {
		return ""
	}
	return axis.Values[i]
}
