package sweep

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
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
		p.claim(axis.Name, flag, line)
		flags[flag], shown[flag] = []string{text}, []string{shownValue(flag, text)}
	})
	if part.own == nil {
		part.own = map[results.Setting]map[string][]string{}
	}
	if axis.Settings == nil {
		axis.Settings = map[string]map[string][]string{}
	}
	part.own[results.Setting{Axis: axis.Name, Value: name}], axis.Settings[name] = flags, shown
}

// claim notes that an axis sets a flag, and refuses one that another axis sets, too.
func (p *planner) claim(axis, flag string, line int) {
	for _, other := range exclusiveWith(flag) {
		if by := p.setBy[other]; by != "" && by != axis {
			p.add(line, "axis %s sets %s, and axis %s sets %s: leave one out", by, other, axis, flag)
		}
	}
	p.setBy[flag] = axis
}

// methodNames lists the methods of the cases.
func (p *Part) methodNames() []string {
	names := slices.Clone(p.Push[methodFlag])
	for _, own := range p.own {
		names = append(names, own[methodFlag]...)
	}
	for _, a := range p.Axes {
		for _, value := range a.Values {
			if a.Name == methodFlag && p.own[results.Setting{Axis: a.Name, Value: value}][methodFlag] == nil {
				names = append(names, value)
			}
		}
	}
	return names
}

// choose reads include and exclude, and lists the combinations that are no cases: those of the axes as they are written
// that are excluded, and those of included values that are not included.
func (p *planner) choose(part *Part, t table) {
	if len(t.Exclude)+len(t.Include) == 0 {
		return
	}
	listed := len(part.Axes) == 0 // include alone has the cases
	written := map[string][]string{}
	for _, a := range part.Axes {
		written[a.Name] = slices.Clone(a.Values)
	}
	var excluded, included []map[string][]string
	for _, pick := range t.Exclude {
		excluded = append(excluded, p.pick(part, pick, "exclude"))
	}
	for _, pick := range t.Include {
		if listed {
			p.addAxes(part, t, pick)
		}
		included = append(included, p.pick(part, pick, "include"))
	}
	for i, pick := range included {
		for _, a := range part.Axes {
			if pick[a.Name] == nil {
				p.add(t.Include[i].line(),
					"include: this case has no %s; write it, and flags of one value as NAME: {flag: value}", a.Name)
			}
		}
	}

	total := results.Combinations(part.Axes)
	if total > results.MaxCells {
		return
	}
	for n := range total {
		settings := results.Combination(part.Axes, n)
		isCase := !listed && picked(settings, written) && !picked(settings, excluded...)
		if !isCase && !picked(settings, included...) {
			part.excluded = append(part.excluded, n)
		}
	}
	if len(t.Exclude) > 0 && len(part.excluded) == total {
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

// picked reports whether settings are among the values of one pick at least.
func picked(settings results.Settings, picks ...map[string][]string) bool {
	return slices.ContainsFunc(picks, func(pick map[string][]string) bool {
		for axis, values := range pick {
			if !slices.Contains(values, settings.Value(axis)) {
				return false
			}
		}
		return true
	})
}

// addAxes adds the axes of a listed case that part does not have.
func (p *planner) addAxes(part *Part, t table, pick mapping[list[choice]]) {
	for _, e := range pick {
		if !part.hasAxis(normal(e.key)) {
			p.newAxis(part, t, e)
		}
	}
}

// pick returns the values of axes that an entry of include or exclude names. Include may name new ones.
func (p *planner) pick(part *Part, pick mapping[list[choice]], what string) map[string][]string {
	all := map[string][]string{}
	for _, e := range pick {
		i := slices.IndexFunc(part.Axes, func(a results.Axis) bool { return a.Name == normal(e.key) })
		if i < 0 {
			var names []string
			for _, a := range part.Axes {
				names = append(names, a.Name)
			}
			p.add(e.line, "%s: %v", what, config.Unknown("axis", e.key, names))
			continue
		}
		axis := &part.Axes[i]
		for _, c := range e.value {
			for _, text := range p.values(c.value, axis.Name) {
				found := p.findValue(*axis, text)
				switch {
				case what == "include" && (found == "" || c.own != nil):
					p.addValue(part, axis, text, c)
					found = axis.Values[len(axis.Values)-1]
				case found == "":
					p.add(c.line, "%s: %v", what, config.Unknown("value of "+axis.Name, text, axis.Values))
				}
				all[axis.Name] = append(all[axis.Name], found)
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
	i := slices.IndexFunc(axis.Values, func(v string) bool { return results.SameValue(v, text) })
	if i < 0 {
		return ""
	}
	return axis.Values[i]
}
