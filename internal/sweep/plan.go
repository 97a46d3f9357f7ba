// Package sweep pushes the same rows in many ways, and finds by pushes the smallest setting that is enough.
//
// A plan is a YAML file, described in docs/SWEEPS.md. Every combination of its axes is a case, and every push of a case
// is a trial. ParsePlan reads a plan and says everything that is wrong with it at once; New makes the push of every case
// and checks all of them before anything runs; Run takes them in order and records each trial as it ends. A Search needs
// no plan: it decides what to try next by what it has seen. Trials makes the pushes of both.
package sweep

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/experiments"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
)

// Plan is a sweep to be done, at one scale and for one kind of target.
type Plan struct {
	Name, Title string
	Scale       string // DefaultScale where none was asked for; "" where the plan has no scales and none was asked for
	// Repeats is how often every case is measured, at least 1. WarmUp is how many pushes of a part's first case go before
	// it and count for nothing.
	Repeats, WarmUp int
	Settle          time.Duration // between two pushes
	Limit           time.Duration // of one push; 0 is none
	Budget          time.Duration // of the whole sweep; 0 is none: what has not begun by then is skipped
	// Knee is the axis along which a row of cases ends when two values in succession are no better than the best
	// before them; "" ends none. Its values are numbers, sizes or durations that rise. Parts without this axis have no rows
	// that end.
	Knee string
	// Interleaved shuffles the cases of every repeat, by a seed of its own, so that a drift of the server or the machine
	// does not look like an effect. A part with the knee's axis is the exception: it goes up that axis, with all repeats of
	// all rows at one value before the next value. A drift falls on all rows alike then, but it looks like an effect of that
	// axis, however many repeats there are. False takes the cases in their order.
	Interleaved bool
	Parts       []Part // at least one
}

// Part is one table of the sweep.
type Part struct {
	Name, Title string // Name is "" when the plan has one table only
	// Push holds the flags of every case by name, written with dashes. Two kinds of name are no flag: target is the URL as
	// it was given, which may hold a password, and set.NAME is the session variable NAME. A target that is an axis, or
	// that nobody gave, is missing.
	Push map[string][]string
	// Axes have no name that is in Push, and the values of an axis target are without secrets.
	Axes  []results.Axis
	Facts *results.Facts
	// Methods holds flags for the cases of one method alone, by the method's name. They stand for those of Push.
	Methods map[string]map[string][]string

	targets []string // the values of an axis target as they were given
}

// Case is one combination of the values of a part's axes.
type Case struct {
	Setup        // its push, once New has made it
	Part, Number int
	Settings     []results.Setting   // one for each axis of the part, fit for a record
	Push         map[string][]string // all flags as in Part.Push, those of the axes included; the case's own
}

// Count returns the number of cases of the part.
func (p *Part) Count() int {
	n := 1
	for _, a := range p.Axes {
		n *= len(a.Values)
	}
	return n
}

// Cases lists the cases of all parts, part by part, each in the order of its axes' values, the last axis fastest.
func (p Plan) Cases() []Case {
	var cases []Case
	for i := range p.Parts {
		for n := range p.Parts[i].Count() {
			cases = append(cases, p.Parts[i].caseAt(i, n))
		}
	}
	return cases
}

func (p *Part) caseAt(part, number int) Case {
	c := Case{Part: part, Number: number, Settings: make([]results.Setting, len(p.Axes)), Push: maps.Clone(p.Push)}
	if c.Push == nil {
		c.Push = make(map[string][]string)
	}
	for i, axis := range slices.Backward(p.Axes) {
		at := number % len(axis.Values)
		number /= len(axis.Values)
		value := axis.Values[at]
		c.Settings[i] = results.Setting{Axis: axis.Name, Value: value}
		if axis.Name == targetName && p.targets != nil {
			value = p.targets[at]
		}
		c.Push[axis.Name] = []string{value}
	}
	if method := c.Push[methodFlag]; len(method) == 1 {
		maps.Copy(c.Push, p.Methods[method[0]])
	}
	return c
}

// DefaultScale is what a plan says without any override. The presets' own is the size of the article they reproduce.
const DefaultScale = "cloud"

// Names that mean something in a plan. All but the method's are no flags.
const (
	targetName = "target"
	methodFlag = "method"
	setFlag    = "set"
	setPrefix  = "set."
)

// Options are what a plan is read and a sweep made with.
type Options struct {
	Sources
	// Scale names the override to lay over the plan; "" is DefaultScale.
	Scale string
	// Target is the command line's and stands for every target of the plan; "" leaves those.
	Target string
	// Push holds flags of the command line for every case, by name. They stand for those of the plan; one that is an axis
	// of the plan is refused. One that belongs to some methods holds for the cases whose method takes it.
	Push map[string][]string
	// Only names the part to do; "" is all.
	Only string
}

// planner turns a file into a plan.
type planner struct {
	problems
	Options
	flags     *pflag.FlagSet      // a scratch pad, which refuses values
	names     []string            // of the flags that a case may be given
	given     map[string][]string // on the command line; an entry of set as set.NAME
	exclusive [][]string          // groups of flags of which one only may be given
	knee      string
	used      map[string]bool // methods that a part has
}

// ParsePlan reads a plan. file is its name for errors. The error, if there is one, names every problem with file and
// line; the plan is of no use then.
func ParsePlan(file string, text []byte, o Options) (Plan, error) {
	p := &planner{
		problems: problems{file: file}, Options: o, exclusive: config.Exclusive(), given: maps.Clone(o.Push), used: map[string]bool{},
	}
	p.flags, p.names = Flags(o.Drivers)
	delete(p.given, setFlag)
	for _, text := range o.Push[setFlag] {
		name, value, _ := strings.Cut(text, "=")
		p.given[setPrefix+strings.TrimSpace(name)] = []string{strings.TrimSpace(value)}
	}
	root := p.read(text)
	if root == nil {
		return Plan{}, p.err()
	}
	var keys planKeys
	p.decode(root, &keys)
	for _, part := range keys.partsOf() {
		p.checkFlags(part)
	}
	schemes := o.Drivers.Schemes()
	for _, scheme := range keys.Schemes {
		for _, name := range schemesOf(scheme.key) {
			if !slices.Contains(schemes, name) {
				p.add(scheme.line, "%v", config.Unknown("target scheme", name, schemes))
			}
		}
	}
	if len(p.all) > 0 {
		return Plan{}, p.err() // more would be said of what is not understood
	}
	return p.plan(p.chosen(root, &keys), p.scaleOf(&keys)), p.err()
}

// chosen returns the plan with the overrides of scale and scheme laid over it.
func (p *planner) chosen(root *ast.MappingNode, keys *planKeys) *ast.MappingNode {
	found := p.Scale == "" || p.Scale == DefaultScale
	scale := func(scales entries[overrideKeys]) {
		for _, e := range scales {
			if e.key == p.Scale || p.Scale == "" && e.key == DefaultScale {
				root, found = p.merge(root, e.node), true
			}
		}
	}
	scale(keys.Scales)
	for _, scheme := range keys.Schemes {
		if p.isFor(scheme, root) {
			root = p.merge(root, scheme.node)
			scale(scheme.value.Scales)
		}
	}
	switch {
	case found:
	case len(keys.Scales) == 0:
		p.add(0, "the plan has no scales, so none can be %q", p.Scale)
	default:
		valid := []string{DefaultScale}
		for _, e := range keys.Scales {
			valid = append(valid, e.key)
		}
		p.add(keys.Scales[0].line, "%v", config.Unknown("scale", p.Scale, valid))
	}
	return root
}

// scaleOf returns the name of the plan's scale. A plan that has none has one size, which needs no name.
func (p *planner) scaleOf(keys *planKeys) string {
	has := len(keys.Scales) > 0 ||
		slices.ContainsFunc(keys.Schemes, func(e entry[schemeKeys]) bool { return len(e.value.Scales) > 0 })
	if p.Scale == "" && has {
		return DefaultScale
	}
	return p.Scale
}

// isFor reports whether the override of a scheme is for the plan's targets. It has to be for all of them or for none,
// since one table has the same axes for all.
func (p *planner) isFor(e entry[schemeKeys], root *ast.MappingNode) bool {
	var keys planKeys
	p.decode(root, &keys)
	yes, no := 0, 0
	for _, target := range p.targetsOf(keys.Override) {
		scheme, _, _ := strings.Cut(strings.ToLower(target), "://")
		if slices.Contains(schemesOf(e.key), scheme) {
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
func (p *planner) targetsOf(keys overrideKeys) []string {
	if p.Target != "" {
		return []string{p.Target}
	}
	given := append(scalars{keys.Target}, keys.Shared.Axes.named(targetName)...)
	for _, part := range keys.Parts {
		given = append(given, part.value.Axes.named(targetName)...)
	}
	var all []string
	for _, s := range given {
		if s.line > 0 {
			all = append(all, p.expand(s))
		}
	}
	return all
}

func (p *planner) plan(root *ast.MappingNode, scale string) Plan {
	shared := only(root, append(sizes(), "push", "methods", "axes", "facts")...)
	var keys planKeys
	p.decode(root, &keys)
	line := lineOf(root)
	for _, v := range root.Values {
		p.refuseNothing(v.Value)
	}
	plan := Plan{
		Name: p.name(keys.Name, line), Title: p.expand(keys.Override.Shared.Title), Scale: scale,
		Repeats: max(1, p.count(keys.Override.Repeats, "repeats", 1)), WarmUp: p.count(keys.Override.WarmUp, "warm_up", 0),
		Settle: p.duration(keys.Override.Settle, "settle"), Limit: p.duration(keys.Override.Limit, "limit"),
		Budget: p.duration(keys.Override.Budget, "budget"), Knee: normal(p.expand(keys.Override.Knee)),
		Interleaved: p.interleaved(keys.Override.Order),
	}
	p.knee = plan.Knee
	if plan.Title == "" {
		plan.Title = plan.Name
	}
	target := keys.Override.Target
	switch parts := keys.Override.Parts; {
	case parts == nil:
		plan.Parts = []Part{p.part("", plan.Title, target, shared, line)}
	case len(parts) == 0:
		p.add(lineOf(root.Values[index(root, "parts")].Value), "parts: at least one")
	default:
		for _, e := range parts {
			plan.Parts = append(plan.Parts, p.part(e.key, e.key, target, p.merge(shared, e.node), e.line))
		}
	}
	p.checkMethods(keys.Override)
	p.checkKnee(plan, keys.Override.Knee.line)
	p.checkSize(plan, line)
	return plan
}

// part reads one table: what stands above all parts, and what it says itself.
func (p *planner) part(name, title string, target scalar, n *ast.MappingNode, line int) Part {
	for _, null := range ast.Filter(ast.NullType, n) {
		p.refuseNothing(null)
	}
	var keys partKeys
	p.decode(n, &keys)
	part := Part{Name: name, Title: title, Push: p.push(keys)}
	if at := index(n, "facts"); at >= 0 {
		part.Facts = p.facts(keys.Facts, lineOf(n.Values[at].Value))
	}
	if keys.Title.line > 0 {
		part.Title = p.expand(keys.Title)
	}
	if len(keys.Axes) == 0 {
		where := ""
		if name != "" {
			where = name + ": "
		}
		p.add(line, "%sno axes: a sweep changes one thing at least", where)
	}
	for _, a := range keys.Axes {
		p.axis(&part, a)
	}
	p.methods(&part, keys.Methods)
	if part.targets == nil {
		p.target(&part, target)
	}
	return part
}

// target puts the target into the part's flags.
func (p *planner) target(part *Part, s scalar) {
	raw := p.Target
	if raw == "" {
		raw = p.expand(s)
	}
	if raw == "" {
		p.add(0, "no target: give TARGET on the command line, or target in the plan")
		return
	}
	p.shown(raw, s.line)
	part.Push[targetName] = []string{raw}
}

// shown returns a target without secrets.
func (p *planner) shown(target string, line int) string {
	text, err := ShownTarget(target)
	if err != nil {
		p.add(line, "target: %v", err)
	}
	return text
}

func (p *planner) checkKnee(plan Plan, line int) {
	var names []string
	for _, part := range plan.Parts {
		for _, a := range part.Axes {
			names = append(names, a.Name)
		}
	}
	if plan.Knee != "" && !slices.Contains(names, plan.Knee) {
		slices.Sort(names)
		p.add(line, "knee: %v", config.Unknown("axis", plan.Knee, slices.Compact(names)))
	}
}

func (p *planner) checkSize(plan Plan, line int) {
	total := 0
	for i := range plan.Parts {
		n := 1
		for _, a := range plan.Parts[i].Axes {
			n = min(n*len(a.Values), results.MaxCells+1)
		}
		total = min(total+n, results.MaxCells+1)
	}
	if total > results.MaxCells {
		p.add(line, "more than %d cells: leave values out, or make several plans of it", results.MaxCells)
	}
}

const presetSuffix = ".yaml"

// Presets lists the plans that come with terapush, in the order of their names.
func Presets() []string {
	files, err := fs.Glob(experiments.Files(), "*"+presetSuffix)
	if err != nil {
		return nil // of a pattern that is wrong, and this one is not
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], presetSuffix)
	}
	slices.Sort(files) // as files, a name stands behind those that it begins
	return files
}

// Preset returns the text of one of the plans that come with terapush, and the name of its file for errors.
func Preset(name string) (file string, text []byte, err error) {
	text, err = fs.ReadFile(experiments.Files(), name+presetSuffix)
	if err != nil {
		return "", nil, config.Unknown("preset", name, Presets())
	}
	return path.Join("experiments", name+presetSuffix), text, nil
}

// PresetTitle returns the line that says what a preset reproduces, "" when there is none of the name.
func PresetTitle(name string) string {
	var plan struct{ Title string }
	if _, text, err := Preset(name); err != nil || yaml.Unmarshal(text, &plan) != nil {
		return ""
	}
	return plan.Title
}
