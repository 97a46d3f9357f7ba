package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/spelling"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

type planner struct {
	Options
	file  string
	all   []problem
	names []string            // of the flags that a case may have
	given map[string][]string // flags of the command line, with set.NAME for the entries of set
	knee  string
	setBy map[string]string // the axes of a part by the flags that they set
	flags *pflag.FlagSet    // of a push that is never made: it tells which values are wrong
}

// ParsePlan reads a plan. file is its name for errors. The error lists the problems with file and line; the plan is
// useless then. Values that contradict each other are left to New.
func ParsePlan(file string, text []byte, o Options) (Plan, error) {
	p := &planner{Options: o, file: file, names: FlagNames(o.Drivers), given: map[string][]string{}}
	p.flags = pflag.NewFlagSet("plan", pflag.ContinueOnError)
	new(config.Push).Flags(p.flags, o.Drivers)
	maps.Copy(p.given, o.Push)
	for _, flag := range config.Entries() {
		delete(p.given, flag)
		for _, text := range o.Push[flag] {
			name, value, _ := strings.Cut(text, "=")
			p.given[flag+"."+strings.TrimSpace(name)] = []string{strings.TrimSpace(value)}
		}
	}
	root := p.read(text)
	if len(p.all) > 0 {
		return Plan{}, p.err()
	}
	root, scaled := p.override(root)
	d, tables := p.document(root), p.tables(root)
	if len(p.all) > 0 {
		return Plan{}, p.err()
	}

	plan := p.plan(d, tables)
	if plan.Scale = p.Scale; scaled {
		plan.Scale = cmp.Or(p.Scale, DefaultScale)
	}
	return plan, p.err()
}

var planName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

func (p *planner) plan(d document, tables []entry[table]) Plan {
	plan := Plan{
		Name: p.expand(d.Name), Repeats: 1,
		WarmUp: read(p, "warm_up", d.WarmUp, warmUps), Settle: read(p, "settle", d.Settle, duration),
		Limit: read(p, "limit", d.Limit, duration), Budget: read(p, "budget", d.Budget, duration),
		Knee: normal(p.expand(d.Knee)), Interleaved: !read(p, "order", d.Order, inOrder),
	}
	if err := plan.SetRepeats(p.expand(d.Repeats), read(p, "precision", d.Precision, share)); err != nil {
		p.add(cmp.Or(d.Repeats.line, d.Precision.line), "%v", err)
	}
	plan.Title = cmp.Or(p.expand(d.Shared.Title), plan.Name)
	p.knee = plan.Knee
	if !planName.MatchString(plan.Name) {
		p.add(max(d.Name.line, 1), "name: a plan needs one, of letters, digits, -, _ and ., "+
			"and no . first, since files are named after it")
	}

	for _, e := range tables {
		title := cmp.Or(p.expand(e.value.Title), e.key, plan.Title)
		plan.Parts = append(plan.Parts, p.part(e, title, d.Target))
	}
	if len(plan.Parts) == 0 {
		p.add(0, "parts: at least one")
	}
	for _, e := range append(tables, entry[table]{value: d.Shared}) {
		p.checkMethods(plan, e.value.Methods)
	}
	p.checkAxes(plan, d.Knee.line)
	return plan
}

// read returns what a function makes of a value, and adds its error as a problem; zero if the key is missing.
func read[T any](p *planner, key string, v value, of func(string) (T, error)) (result T) {
	if v.line == 0 {
		return result
	}
	result, err := of(p.expand(v))
	if err != nil {
		p.add(v.line, "%s: %v", key, err)
	}
	return result
}

func inOrder(text string) (bool, error) {
	switch order := normal(text); order {
	case "in-order":
		return true, nil
	case "interleaved":
		return false, nil
	default:
		return false, config.Unknown("value", order, []string{"interleaved", "in-order"})
	}
}

func duration(text string) (time.Duration, error) {
	d, err := config.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("write a time as 90s, 10m or 1h30m")
	}
	return d, nil
}

func share(text string) (float64, error) {
	var s config.Share
	err := s.Set(text)
	return float64(s), err
}

func warmUps(text string) (int, error) { return count(text, 0) }

// checkMethods refuses the flags of a method that no case has: most likely its name is misspelled.
func (p *planner) checkMethods(plan Plan, methods mapping[mapping[list[value]]]) {
	for _, e := range methods {
		if !slices.ContainsFunc(plan.Parts, func(one Part) bool { return one.Methods[e.key] != nil }) {
			p.add(e.line, "methods: no case has the method %s", e.key)
		}
	}
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

// part reads one table. target is the plan's.
func (p *planner) part(e entry[table], title string, target value) Part {
	t := e.value
	p.setBy = map[string]string{}
	part := Part{
		Name: e.key, Title: title, Push: map[string][]string{}, Facts: p.facts(t.Facts), Thresholds: p.thresholds(t.Thresholds),
	}
	if folder := filepath.Dir(p.file); folder != "." && p.given[datasetFlag] == nil { // the command line's is where the user stands
		part.folder = folder
	}
	p.readFlags(t.Push, func(name string, _ int, text string) { part.Push[name] = []string{text} })
	for i, size := range []value{t.Rows, t.Bytes, t.Duration} {
		if size.line > 0 {
			part.Push[sizes()[i]] = []string{p.expand(size)}
			p.check(sizes()[i], p.expand(size), size.line)
		}
	}
	replace(part.Push, p.given) // New refuses two that exclude each other

	if len(t.Axes)+len(t.Include) == 0 {
		p.add(e.line, "%sno axes: a sweep changes one thing at least", strings.TrimPrefix(e.key+": ", ": "))
	}
	for _, axis := range t.Axes {
		p.axis(&part, t, axis)
	}
	p.choose(&part, t)
	p.methods(&part, t.Methods)
	if part.hasAxis(targetName) {
		return part
	}

	text := p.Target
	if text == "" {
		text = p.expand(target)
	}
	if text == "" {
		p.add(0, "no target: give TARGET on the command line, or target in the plan")
		return part
	}
	p.shown(text, target.line)
	part.Push[targetName] = []string{text}
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
	case slices.Contains(p.names, name) || isEntry(name):
		return true
	case name == targetName:
		p.add(line, "target is not a flag: write it next to push, or make it an axis")
	case slices.Contains(ofProcess(), name):
		p.add(line, "--%s cannot be set in a plan: give it on the command line", name)
	default:
		hint := "terapush push --help lists them"
		if guess := spelling.Nearest(name, p.names); guess != "" {
			hint = fmt.Sprintf("did you mean %q?", guess)
		}
		p.add(line, "flag %q does not exist; %s", key, hint)
	}
	return false
}

// readFlags calls put for every flag, and for every entry of set as the flag set.NAME.
func (p *planner) readFlags(flags mapping[list[value]], put func(name string, line int, text string)) {
	for _, e := range flags {
		name := normal(e.key)
		if !p.isFlag(e.key, e.line) {
			continue
		}
		hasEntries := slices.Contains(config.Entries(), name)
		if !hasEntries && len(e.value) > 1 {
			p.add(e.line, "%s: a list is here, one value belongs", e.key)
		}

		for _, v := range e.value {
			text := p.expand(v)
			if !hasEntries {
				p.check(name, text, v.line)
				put(name, v.line, text)
				continue
			}
			variable, value, found := strings.Cut(text, "=")
			if variable = strings.TrimSpace(variable); !found || variable == "" {
				p.add(v.line, "%s: write it as name=value", name)
			}
			put(name+"."+variable, v.line, strings.TrimSpace(value))
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
func (p *planner) methods(part *Part, methods mapping[mapping[list[value]]]) {
	has := part.methodNames()
	for _, e := range methods {
		if !slices.Contains(has, e.key) {
			continue
		}

		own := map[string][]string{}
		p.readFlags(e.value, func(name string, line int, text string) {
			if slices.ContainsFunc(exclusiveWith(name), func(other string) bool { return p.given[other] != nil }) {
				return // the command line's value holds for all cases
			}
			if part.hasAxis(name) {
				p.add(line, "%s: %s is an axis", name, name)
			}
			own[name] = []string{text}
		})
		if part.Methods == nil {
			part.Methods = map[string]map[string][]string{}
		}
		part.Methods[e.key] = own
	}
}

func (p *planner) axis(part *Part, t table, e entry[list[choice]]) {
	axis := p.newAxis(part, t, e)
	items := e.value
	if axis.Name == targetName && p.Target != "" {
		items = list[choice]{{value: value{text: strings.ReplaceAll(p.Target, "${", "$${"), line: e.line}}}
	}
	for _, c := range items {
		for _, text := range p.values(c.value, axis.Name) {
			p.addValue(part, axis, text, c)
		}
	}
	if len(axis.Values) == 0 {
		p.add(e.line, "axis %s has no values", axis.Name)
	}
}

// newAxis adds an axis without values.
func (p *planner) newAxis(part *Part, t table, e entry[list[choice]]) *results.Axis {
	name := normal(e.key)
	bringsNone := func(c choice) bool { return c.own == nil }
	allBring := len(e.value) > 0 && !slices.ContainsFunc(e.value, bringsNone)
	isFree := !slices.Contains(p.names, name) && !isEntry(name) && allBring
	switch {
	case name == "set":
		p.add(e.line, "axis set: write set.NAME for the session variable NAME")
	case name == "param":
		p.add(e.line, "axis param: write param.NAME for the parameter NAME of the dataset")
	case name == targetName && p.knee == targetName:
		p.add(e.line, "knee: targets have no order")
	case name == targetName:
	case isFree && name == "record":
		p.add(e.line, "axis record: tables have such an axis for records side by side; call it otherwise")
	case isFree: // it need be no flag, since all its values bring some
		part.free = append(part.free, name)
	case p.isFlag(e.key, e.line):
		p.claim(name, name, e.line)
	}
	if flag, variable, _ := config.Entry(name); flag == "set" && loader.IsSecret(variable) {
		p.add(e.line, "axis %s looks like a secret, and the values of an axis are in every table", name)
	}
	if part.Push[name] != nil {
		p.add(e.line, "%s is set twice: as an axis and %s; leave one out", name, p.whereSet(name, t.Push))
	}
	part.Axes = append(part.Axes, results.Axis{Name: name})
	return &part.Axes[len(part.Axes)-1]
}

// addValue adds a value to an axis, with what it brings.
func (p *planner) addValue(part *Part, axis *results.Axis, text string, c choice) {
	if axis.Name == targetName {
		part.targets = append(part.targets, text)
		text = p.shown(text, c.line)
	}
	if slices.Contains(axis.Values, text) {
		p.add(c.line, "axis %s: %s is here twice; a value with flags of its own may have any name, as in "+
			"%[2]s 2: {%[1]s: %[2]s, flag: value}", axis.Name, text)
	}
	isFree := slices.Contains(part.free, axis.Name)
	if isFree && c.own == nil {
		p.add(c.line, "axis %s: %s brings no flags, as the other values do; write it as %[2]s: {flag: value}", axis.Name, text)
	}
	p.bring(part, axis, text, c)
	if own := part.own[results.Setting{Axis: axis.Name, Value: text}]; own[axis.Name] == nil && !isFree {
		p.check(axis.Name, text, c.line)
	}
	if n := len(axis.Values); axis.Name == p.knee && n > 0 && !less(axis.Values[n-1], text) {
		p.add(c.line, "knee: %s comes after %s: the values of %s have to be numbers, sizes or durations that rise",
			text, axis.Values[n-1], axis.Name)
	}
	axis.Values = append(axis.Values, text)
}

// thresholds reads what the cases are judged by.
func (p *planner) thresholds(all mapping[list[value]]) (list []results.Threshold) {
	for _, e := range all {
		metric := strings.ReplaceAll(e.key, "-", "_")
		if !slices.Contains(results.Quantities(), metric) {
			p.add(e.line, "thresholds: %v", config.Unknown("metric", e.key, results.Quantities()))
			continue
		}
		for _, v := range e.value {
			t, err := results.ParseThreshold(metric, p.expand(v))
			if err != nil {
				p.add(v.line, "thresholds: %v", err)
			}
			list = append(list, t)
		}
	}
	return list
}

// whereSet says where a flag is set that is an axis as well.
func (p *planner) whereSet(name string, push mapping[list[value]]) string {
	switch {
	case p.given[name] != nil:
		return "on the command line"
	case slices.Contains(sizes(), name) && push.find(name) < 0:
		return "beside push"
	}
	return "in push"
}

// maxCount is the most of what a plan counts.
const maxCount = 1000

// count reads a number from least to maxCount.
func count(text string, least int64) (int, error) {
	n, ok := units.Whole(text)
	if !ok || !n.IsInt64() || n.Int64() < least || n.Int64() > maxCount {
		return 0, fmt.Errorf("write a number from %d to %d", least, maxCount)
	}
	return int(n.Int64()), nil
}
