package sweep

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
)

// form says what may stand under a key. An override may take anything away with nothing (key: ~).
type form func(p *planner, e entry, override bool)

type keyed struct {
	name string // as the documentation writes it
	form form
}

// The forms of the file, whether they are chosen or not: a typing error in the scale that nobody has run yet is one.

func planKeys() []keyed {
	return append(overrideKeys(),
		keyed{"name", oneValue}, keyed{"scales", scalesForm}, keyed{"schemes", schemesForm})
}

func overrideKeys() []keyed {
	keys := append([]keyed{}, partKeys()...)
	for _, name := range []string{targetName, "repeats", "warm_up", "settle", "limit", "budget", "knee", "order"} {
		keys = append(keys, keyed{name, oneValue})
	}
	return append(keys, keyed{"parts", partsForm})
}

func partKeys() []keyed {
	keys := []keyed{{"title", oneValue}, {"push", pushFlags}, {"methods", methodsForm}, {"axes", axesForm}, {"facts", factsForm}}
	for _, name := range sizes() {
		keys = append(keys, keyed{name, oneValue})
	}
	return keys
}

func (p *planner) shape(n *node, what string, keys []keyed, override bool) {
	for _, e := range n.entries {
		at := slices.IndexFunc(keys, func(k keyed) bool { return normal(k.name) == normal(e.key) })
		switch {
		case at < 0:
			var valid []string
			for _, k := range keys {
				valid = append(valid, k.name)
			}
			p.add(e.line, "%v", config.Unknown(what, e.key, valid))
		case override && e.value.kind == null:
		default:
			keys[at].form(p, e, override)
		}
	}
}

func oneValue(p *planner, e entry, _ bool) { p.expect(e.value, e.key, scalar) }

func pushFlags(p *planner, e entry, override bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, f := range e.value.entries {
		name := normal(f.key)
		switch {
		case name == targetName:
			p.add(f.line, "target is no flag: write it beside push, or make it an axis")
		case !p.isFlag(name):
			p.unknownFlag(f.line, f.key)
		case override && f.value.kind == null:
		case name == setFlag:
			if p.expect(f.value, f.key, scalar, list) {
				p.scalars(f.key, f.value)
			}
		default:
			p.expect(f.value, f.key, scalar)
		}
	}
}

func methodsForm(p *planner, e entry, override bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, method := range e.value.entries {
		if !override || method.value.kind != null {
			pushFlags(p, method, override)
		}
	}
}

func axesForm(p *planner, e entry, override bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, a := range e.value.entries {
		name := normal(a.key)
		switch {
		case name == setFlag:
			p.add(a.line, "axis set: write set.NAME for the session variable NAME")
		case name != targetName && !p.isFlag(name):
			p.unknownFlag(a.line, a.key)
		case override && a.value.kind == null:
		case p.expect(a.value, "axis "+a.key, scalar, list):
			p.scalars("axis "+a.key, a.value)
		}
	}
}

func (p *planner) isFlag(name string) bool {
	return slices.Contains(p.Flags, name) || strings.HasPrefix(name, setPrefix) && len(name) > len(setPrefix)
}

func (p *planner) scalars(what string, n *node) {
	for _, item := range n.items {
		p.expect(item, what, scalar)
	}
}

func partsForm(p *planner, e entry, override bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, part := range e.value.entries {
		if override && part.value.kind == null {
			continue
		}
		if p.expect(part.value, part.key, mapping) {
			p.shape(part.value, "key of a part", partKeys(), true) // over what stands above the parts
		}
	}
}

func scalesForm(p *planner, e entry, _ bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, scale := range e.value.entries {
		if p.expect(scale.value, scale.key, mapping) {
			p.shape(scale.value, "key of a scale", overrideKeys(), true)
		}
	}
}

func schemesForm(p *planner, e entry, _ bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, scheme := range e.value.entries {
		for _, name := range schemesOf(scheme.key) {
			if !slices.Contains(p.Schemes, name) {
				p.add(scheme.line, "%v", config.Unknown("target scheme", name, p.Schemes))
			}
		}
		if p.expect(scheme.value, scheme.key, mapping) {
			p.shape(scheme.value, "key of a scheme", append(overrideKeys(), keyed{"scales", scalesForm}), true)
		}
	}
}

func factsForm(p *planner, e entry, override bool) {
	if p.expect(e.value, e.key, mapping) {
		p.shape(e.value, "key of facts", []keyed{{"source", oneValue}, {"machine", oneValue}, {"note", oneValue}, {"points", pointsForm}}, override)
	}
}

func pointsForm(p *planner, e entry, _ bool) {
	if !p.expect(e.value, e.key, list) {
		return
	}
	keys := []keyed{{"at", atForm}}
	for _, name := range figures() {
		keys = append(keys, keyed{name, oneValue})
	}
	for _, item := range e.value.items {
		if p.expect(item, "a point", mapping) {
			p.shape(item, "key of a point", keys, false)
		}
	}
}

func atForm(p *planner, e entry, _ bool) {
	if !p.expect(e.value, e.key, mapping) {
		return
	}
	for _, axis := range e.value.entries {
		if name := normal(axis.key); name != targetName && !p.isFlag(name) {
			p.unknownFlag(axis.line, axis.key)
		}
		p.expect(axis.value, axis.key, scalar)
	}
}
