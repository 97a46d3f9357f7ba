package sweep

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
)

// chosen is the plan with the overrides of scale and scheme laid over it.
func (p *planner) chosen(root *node) *node {
	scale, found := p.scaled(root, root)
	for _, e := range scale.named("schemes").pairs() {
		if !p.isFor(e, scale) {
			continue
		}
		var its bool
		own := e.value.without("scales")
		scale = scale.over(own, p.Exclusive)
		if scale, its = p.scaled(scale, e.value); its {
			found = true
		}
	}
	if !found && p.Scale != "" && p.Scale != DefaultScale {
		p.noScale(root)
	}
	return scale
}

// scaled lays the wanted scale of those that n has over base.
func (p *planner) scaled(base, n *node) (*node, bool) {
	wanted := p.Scale
	if wanted == "" {
		wanted = DefaultScale
	}
	for _, e := range n.named("scales").pairs() {
		if e.key == wanted {
			return base.over(e.value, p.Exclusive), true
		}
	}
	return base, false
}

// scaleOf is the name of the plan's scale. A plan that has none has one size, which needs no name.
func (p *planner) scaleOf(root *node) string {
	if p.Scale != "" {
		return p.Scale
	}
	has := len(root.named("scales").pairs()) > 0
	for _, e := range root.named("schemes").pairs() {
		has = has || len(e.value.named("scales").pairs()) > 0
	}
	if has {
		return DefaultScale
	}
	return ""
}

func (p *planner) noScale(root *node) {
	scales := root.named("scales")
	if scales == nil {
		p.add(0, "the plan has no scales, so none can be %q", p.Scale)
		return
	}
	valid := []string{DefaultScale}
	for _, e := range scales.pairs() {
		valid = append(valid, e.key)
	}
	p.add(scales.line, "%v", config.Unknown("scale", p.Scale, valid))
}

// isFor tells whether the override of a scheme is for the plan's targets. It has to be for all of them or for none,
// since one table has the same axes for all.
func (p *planner) isFor(e entry, plan *node) bool {
	wanted := schemesOf(e.key)
	yes, no := 0, 0
	for _, target := range p.targetsOf(plan) {
		scheme, _, _ := strings.Cut(strings.ToLower(target), "://")
		if slices.Contains(wanted, scheme) {
			yes++
		} else {
			no++
		}
	}
	if yes > 0 && no > 0 {
		p.add(e.line, "%s: the plan's targets are of several schemes, of which only some are meant here: sweep them apart", e.key)
	}
	return yes > 0
}

// schemesOf reads a key of schemes: one, or several with commas between them.
func schemesOf(key string) []string {
	all := strings.Split(key, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// targetsOf lists all targets of the plan.
func (p *planner) targetsOf(plan *node) []string {
	if p.Target != "" {
		return []string{p.Target}
	}
	nodes := []*node{plan.named(targetName), plan.named("axes").named(targetName)}
	for _, part := range plan.named("parts").pairs() {
		nodes = append(nodes, part.value.named("axes").named(targetName))
	}
	var all []string
	for _, n := range nodes {
		for _, item := range n.each() {
			all = append(all, p.expand(item))
		}
	}
	return all
}
