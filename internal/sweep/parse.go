package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

type planner struct {
	Options
	file  string
	all   []problem
	names []string            // of the flags that a case may have
	given map[string][]string // flags of the command line, with set.NAME for the entries of set
	knee  string
	flags *pflag.FlagSet // of a push that is never made: it tells which values are wrong
}

// ParsePlan reads a plan. file is its name for errors. The error lists the problems with file and line; the plan is
// useless then. Values that contradict each other are left to New.
func ParsePlan(file string, text []byte, o Options) (Plan, error) {
	p := &planner{Options: o, file: file, names: FlagNames(o.Drivers), given: map[string][]string{}}
	p.flags = pflag.NewFlagSet("plan", pflag.ContinueOnError)
	new(config.Push).Flags(p.flags, o.Drivers)
	maps.Copy(p.given, o.Push)
	delete(p.given, setFlag)
	for _, text := range o.Push[setFlag] {
		name, value, _ := strings.Cut(text, "=")
		p.given[setPrefix+strings.TrimSpace(name)] = []string{strings.TrimSpace(value)}
	}
	root := p.read(text)
	if len(p.all) > 0 {
		return Plan{}, p.err()
	}
	root, scaled := p.override(root)
	if len(p.all) > 0 {
		return Plan{}, p.err()
	}
	plan := p.plan(root)
	if plan.Scale = p.Scale; scaled {
		plan.Scale = cmp.Or(p.Scale, DefaultScale)
	}
	return plan, p.err()
}

var planName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

func (p *planner) plan(root *ast.MappingNode) Plan {
	var keys planKeys
	p.decode(root, &keys)
	plan := Plan{
		Name:    p.expand(keys.Name),
		Repeats: p.count(keys.Repeats, "repeats", 1), WarmUp: p.count(keys.WarmUp, "warm_up", 0),
		Settle: p.duration(keys.Settle, "settle"), Limit: p.duration(keys.Limit, "limit"),
		Budget: p.duration(keys.Budget, "budget"), Knee: normal(p.expand(keys.Knee)), Interleaved: true,
	}
	plan.Title = cmp.Or(p.expand(keys.Shared.Title), plan.Name)
	p.knee = plan.Knee
	if !planName.MatchString(plan.Name) {
		p.add(max(keys.Name.line, 1), "name: a plan needs one, of letters, digits, -, _ and ., "+
			"and no . first, since files are named after it")
	}
	switch order := normal(p.expand(keys.Order)); order {
	case "", "interleaved":
	case "in-order":
		plan.Interleaved = false
	default:
		p.add(keys.Order.line, "order: %v", config.Unknown("value", order, []string{"interleaved", "in-order"}))
	}
	if keys.Parts == nil {
		plan.Parts = []Part{p.part("", plan.Title, keys.Target, root, 1)}
	}
	methods := slices.Clone(keys.Shared.Methods)
	for _, e := range keys.Parts {
		var own partKeys
		p.decode(e.node, &own, yaml.Strict())
		title := cmp.Or(p.expand(own.Title), e.key)
		plan.Parts = append(plan.Parts, p.part(e.key, title, keys.Target, merge(root, e.node), e.line))
		methods = append(methods, own.Methods...)
	}
	if len(plan.Parts) == 0 {
		p.add(0, "parts: at least one")
	}
	for _, e := range methods { // most likely a misspelled name
		if !slices.ContainsFunc(plan.Parts, func(one Part) bool { return one.Methods[e.key] != nil }) {
			p.add(e.line, "methods: no case has the method %s", e.key)
		}
	}
	p.checkAxes(plan, keys.Knee.line)
	return plan
}

// checkAxes refuses a knee that is no axis, and too many cases.
func (p *planner) checkAxes(plan Plan, kneeLine int) {
	var names []string
	total := 0
	for _, part := range plan.Parts {
		total += results.Combinations(part.Axes)
		for _, a := range part.Axes {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); plan.Knee != "" && !slices.Contains(names, plan.Knee) {
		p.add(kneeLine, "knee: %v", config.Unknown("axis", plan.Knee, names))
	}
	if total > results.MaxCells {
		p.add(0, "more than %d cases: leave values out, or split the plan", results.MaxCells)
	}
}

// part reads one table from the keys of the plan with its own merged in.
func (p *planner) part(name, title string, target scalar, n *ast.MappingNode, line int) Part {
	var keys partKeys
	p.decode(n, &keys)
	part := Part{Name: name, Title: title, Push: map[string][]string{}, Facts: p.facts(keys.Facts)}
	p.readFlags(keys.Push, func(name string, _ scalar, value string) { part.Push[name] = []string{value} })
	for i, s := range []scalar{keys.Rows, keys.Bytes, keys.Duration} {
		if s.line > 0 {
			part.Push[sizes()[i]] = []string{p.expand(s)}
			p.check(sizes()[i], p.expand(s), s.line)
		}
	}
	for name := range p.given {
		for _, other := range exclusiveWith(name) {
			delete(part.Push, other)
		}
	}
	maps.Copy(part.Push, p.given) // New refuses two that exclude each other
	if len(keys.Axes) == 0 {
		p.add(line, "%sno axes: a sweep changes one thing at least", strings.TrimPrefix(name+": ", ": "))
	}
	for _, e := range keys.Axes {
		p.axis(&part, keys, e)
	}
	p.methods(&part, keys.Methods)
	if part.hasAxis(targetName) {
		return part
	}
	if p.Target != "" {
		target = scalar{text: p.Target, line: target.line}
	} else if target.text = p.expand(target); target.text == "" {
		p.add(0, "no target: give TARGET on the command line, or target in the plan")
		return part
	}
	p.shown(target.text, target.line)
	part.Push[targetName] = []string{target.text}
	return part
}

// shown returns a target without secrets.
func (p *planner) shown(target string, line int) string {
	text, err := ShownTarget(target)
	if err != nil {
		p.add(line, "target: %v", err)
	}
	return text
}

// sizes lists the flags that may also stand outside of push.
func sizes() []string { return []string{"rows", "bytes", "duration"} }

// exclusiveWith lists the flags of which only one may be given, name being one of them.
func exclusiveWith(name string) []string {
	for _, group := range config.Exclusive() {
		if slices.Contains(group, name) {
			return group
		}
	}
	return []string{name}
}

// isFlag reports whether a case may have the flag, and adds a problem if not.
func (p *planner) isFlag(key string, line int) bool {
	name := normal(key)
	removed := config.Removed("--" + name)
	switch {
	case removed != nil:
		p.add(line, "%v", removed)
	case slices.Contains(p.names, name) || strings.HasPrefix(name, setPrefix):
		return true
	case name == targetName:
		p.add(line, "target is not a flag: write it next to push, or make it an axis")
	case slices.Contains(ofProcess(), name):
		p.add(line, "--%s cannot be set in a plan: give it on the command line", name)
	default:
		hint := "terapush push --help lists them"
		if guess := config.Suggest(name, p.names); guess != "" {
			hint = fmt.Sprintf("did you mean %q?", guess)
		}
		p.add(line, "flag %q does not exist; %s", key, hint)
	}
	return false
}

// readFlags calls put for every flag, and for every entry of set as the flag set.NAME.
func (p *planner) readFlags(flags entries, put func(name string, s scalar, value string)) {
	for _, e := range flags {
		name := normal(e.key)
		if !p.isFlag(e.key, e.line) {
			continue
		}
		values := p.scalars(e.node)
		if name != setFlag && len(values) > 1 {
			p.add(e.line, "%s: a list is here, one value belongs", e.key)
		}
		for _, s := range values {
			if name != setFlag {
				value := p.expand(s)
				p.check(name, value, s.line)
				put(name, s, value)
				continue
			}
			variable, value, found := strings.Cut(p.expand(s), "=")
			if variable = strings.TrimSpace(variable); !found || variable == "" {
				p.add(s.line, "set: write it as name=value")
			}
			put(setPrefix+variable, s, strings.TrimSpace(value))
		}
	}
}

// check adds a problem if a flag does not take a value.
func (p *planner) check(name, value string, line int) {
	if value == "" || p.flags.Lookup(name) == nil { // set.NAME and target are no flags
		return
	}
	if err := p.flags.Set(name, value); err != nil {
		p.add(line, "%s: %v", name, config.PlainError(err))
	}
}

// methods reads the flags of those methods that the part has.
func (p *planner) methods(part *Part, methods entries) {
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
		own := map[string][]string{}
		var flags entries
		p.decode(e.node, &flags)
		p.readFlags(flags, func(name string, s scalar, value string) {
			if slices.ContainsFunc(exclusiveWith(name), func(other string) bool { return p.given[other] != nil }) {
				return // the command line's value holds for all cases
			}
			if part.hasAxis(name) {
				p.add(s.line, "%s: %s is an axis", name, name)
			}
			own[name] = []string{value}
		})
		if part.Methods == nil {
			part.Methods = map[string]map[string][]string{}
		}
		part.Methods[e.key] = own
	}
}

func (p *planner) axis(part *Part, keys partKeys, e entry) {
	axis := results.Axis{Name: normal(e.key)}
	isTarget := axis.Name == targetName
	switch {
	case axis.Name == setFlag:
		p.add(e.line, "axis set: write set.NAME for the session variable NAME")
	case !isTarget:
		p.isFlag(e.key, e.line)
	case p.knee == targetName:
		p.add(e.line, "knee: targets have no order")
	}
	if part.Push[axis.Name] != nil || part.hasAxis(axis.Name) {
		where := "in push"
		switch {
		case part.hasAxis(axis.Name):
			where = "as another axis"
		case p.given[axis.Name] != nil:
			where = "on the command line"
		case slices.Contains(sizes(), axis.Name) && !slices.ContainsFunc(keys.Push, func(of entry) bool { return normal(of.key) == axis.Name }):
			where = "beside push"
		}
		p.add(e.line, "%s is set twice: as an axis and %s; leave one out", axis.Name, where)
	}
	items := p.scalars(e.node)
	if isTarget && p.Target != "" {
		items = []scalar{{text: strings.ReplaceAll(p.Target, "${", "$${"), line: e.line}}
	}
	for _, s := range items {
		for _, value := range p.values(s, axis.Name) {
			if isTarget {
				part.targets = append(part.targets, value)
				value = p.shown(value, s.line)
			}
			p.check(axis.Name, value, s.line)
			if slices.Contains(axis.Values, value) {
				p.add(s.line, "axis %s: %s is here twice", axis.Name, value)
			}
			if n := len(axis.Values); axis.Name == p.knee && n > 0 && !less(axis.Values[n-1], value) {
				p.add(s.line, "knee: %s comes after %s: the values of %s have to be numbers, sizes or durations that rise",
					value, axis.Values[n-1], axis.Name)
			}
			axis.Values = append(axis.Values, value)
		}
	}
	if len(axis.Values) == 0 {
		p.add(e.line, "axis %s has no values", axis.Name)
	}
	part.Axes = append(part.Axes, axis)
}

// count reads a number from least to 1000; least if the key is missing.
func (p *planner) count(s scalar, what string, least int) int {
	const most = 1000
	if s.line == 0 {
		return least
	}
	n, ok := units.Whole(p.expand(s))
	if !ok || !n.IsInt64() || n.Int64() < int64(least) || n.Int64() > most {
		p.add(s.line, "%s: write a number from %d to %d", what, least, most)
		return least
	}
	return int(n.Int64())
}

func (p *planner) duration(s scalar, what string) time.Duration {
	if s.line == 0 {
		return 0
	}
	d, err := config.ParseDuration(p.expand(s))
	if err != nil || d < 0 {
		p.add(s.line, "%s: write a time as 90s, 10m or 1h30m", what)
	}
	return d
}
