package sweep

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/record"
)

// DefaultScale is what a plan says without any override. The presets' own is the size of the article they reproduce.
const DefaultScale = "cloud"

// Names that mean something here. All but the method's are no flags.
const (
	targetName = "target"
	methodFlag = "method"
	setFlag    = "set"
	setPrefix  = "set."
)

// PlanOptions are what a plan is read with: what the caller knows and this package does not.
type PlanOptions struct {
	// Scale names the override to lay over the plan; "" is DefaultScale.
	Scale string
	// Target is the command line's and stands for every target of the plan; "" leaves those.
	Target string
	// Push holds flags of the command line for every cell, by name. They stand for those of the plan; one that is an axis
	// of the plan is refused.
	Push map[string][]string
	// Flags are the names of all flags that a cell may be given, with dashes, and Exclusive groups of which one only may be.
	Flags     []string
	Exclusive [][]string
	// Others are flags of push that no cell is given.
	Others []string
	// Schemes are the target schemes that exist.
	Schemes []string
	// Check refuses a flag's value; nil takes all.
	Check func(flag, value string) error
	// Show is a target without anything secret, or an error that shows nothing secret either, when it is none.
	Show func(target string) (string, error)
	// LookupEnv finds the variables of ${NAME}; nil finds none.
	LookupEnv func(string) (string, bool)
}

// Parse reads a plan. file is its name for errors. The error, if there is one, names every problem with file and line;
// the plan is of no use then.
func ParsePlan(file string, text []byte, o PlanOptions) (Plan, error) {
	p := &planner{problems: problems{file: file}, PlanOptions: o, used: make(map[string]bool)}
	root := reader{&p.problems}.read(text)
	if root == nil || !p.expect(root, "the plan", mapping) {
		return Plan{}, p.err()
	}
	p.shape(root, "key", planKeys(), false)
	if len(p.all) > 0 {
		return Plan{}, p.err() // more would be said of what is not understood
	}
	plan := p.plan(p.chosen(root))
	if err := p.err(); err != nil {
		return Plan{}, err
	}
	return plan, nil
}

// planner turns nodes into a plan.
type planner struct {
	problems
	PlanOptions
	used map[string]bool // methods that a part has
	knee string
}

// inherited are the keys above the parts that hold for each of them.
func inherited() []string { return append([]string{"push", "methods", "axes", "facts"}, sizes()...) }

// sizes are flags that may stand outside of push, since a plan without one says little.
func sizes() []string { return []string{"rows", "bytes", "duration"} }

func (p *planner) plan(n *node) Plan {
	plan := Plan{
		Name: p.name(n), Title: p.text(n.named("title")), Scale: p.scaleOf(n),
		Repeats: p.count(n.named("repeats"), "repeats", 1, 1), WarmUp: p.count(n.named("warm_up"), "warm_up", 0, 0),
		Settle: p.duration(n.named("settle"), "settle"), Limit: p.duration(n.named("limit"), "limit"),
		Budget: p.duration(n.named("budget"), "budget"), Knee: normal(p.text(n.named("knee"))),
		Interleaved: p.interleaved(n.named("order")),
	}
	p.knee = plan.Knee
	if plan.Title == "" {
		plan.Title = plan.Name
	}
	if n.named("parts") == nil {
		plan.Parts = append(plan.Parts, p.part(n, entry{line: n.line, value: &node{kind: mapping, line: n.line}}, plan.Title))
	}
	for _, e := range n.named("parts").pairs() {
		plan.Parts = append(plan.Parts, p.part(n, e, e.key))
	}
	if len(plan.Parts) == 0 {
		p.add(n.named("parts").line, "parts: at least one")
	}
	p.checkMethods(n)
	p.checkKnee(plan, n)
	p.checkSize(plan, n.line)
	return plan
}

// part reads one table: what stands above all parts, and what it says itself.
func (p *planner) part(plan *node, e entry, title string) Part {
	own := plan.only(inherited()).over(e.value, p.Exclusive)
	part := Part{Name: e.key, Title: title, Push: p.push(own), Facts: p.facts(own.named("facts"))}
	if t := own.named("title"); t != nil {
		part.Title = p.text(t)
	}
	axes := own.named("axes")
	if len(axes.pairs()) == 0 {
		p.add(e.line, "%sno axes: a sweep changes one thing at least", prefix(e.key))
	}
	for _, a := range axes.pairs() {
		p.axis(&part, a)
	}
	p.methods(&part, own.named("methods"))
	p.target(&part, plan.named(targetName), e.line)
	return part
}

func prefix(part string) string {
	if part == "" {
		return ""
	}
	return part + ": "
}

// target puts the target into the part's flags, unless it is an axis.
func (p *planner) target(part *Part, n *node, line int) {
	if part.targets != nil {
		return
	}
	raw := p.Target
	if raw == "" && n != nil {
		raw, line = p.expand(n), n.line
	}
	if raw == "" {
		p.add(0, "no target: give TARGET on the command line, or target in the plan")
		return
	}
	p.show(raw, line)
	part.Push[targetName] = []string{raw}
}

// show is a target without secrets.
func (p *planner) show(target string, line int) string {
	shown, err := p.Show(target)
	if err != nil {
		p.add(line, "target: %v", err)
	}
	return shown
}

func (p *planner) checkSize(plan Plan, line int) {
	total := 0
	for i := range plan.Parts {
		n := 1
		for _, a := range plan.Parts[i].Axes {
			n = min(n*len(a.Values), record.MaxCells+1)
		}
		total = min(total+n, record.MaxCells+1)
	}
	if total > record.MaxCells {
		p.add(line, "more than %d cells: leave values out, or make several plans of it", record.MaxCells)
	}
}

func (p *planner) name(n *node) string {
	e := n.named("name")
	if e == nil {
		p.add(n.line, "name: a plan needs one")
		return ""
	}
	name := p.text(e)
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if name == "" || name[0] == '.' || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		p.add(e.line, "name: letters, digits, -, _ and . only, and no . first, since files are named after it")
	}
	return name
}

func (p *planner) interleaved(n *node) bool {
	const shuffled, straight = "interleaved", "in-order"
	switch order := normal(p.text(n)); order {
	case "", shuffled:
		return true
	case straight:
	default:
		p.add(n.line, "order: %v", config.Unknown("value", order, []string{shuffled, straight}))
	}
	return false
}

// expect refuses a node of another kind.
func (p *planner) expect(n *node, what string, kinds ...kind) bool {
	if slices.Contains(kinds, n.kind) {
		return true
	}
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = k.String()
	}
	p.add(n.line, "%s: %s is here, %s belongs", what, n.kind, strings.Join(words, " or "))
	return false
}

// pairs are the entries of a mapping; nothing has none.
func (n *node) pairs() []entry {
	if n == nil {
		return nil
	}
	return n.entries
}

// each are the items of a list, or the one value.
func (n *node) each() []*node {
	switch {
	case n == nil || n.kind == null:
		return nil
	case n.kind == list:
		return n.items
	}
	return []*node{n}
}

func (n *node) without(key string) *node {
	rest := *n
	rest.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return normal(e.key) == key })
	return &rest
}

func (n *node) only(keys []string) *node {
	rest := *n
	rest.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool { return !slices.Contains(keys, normal(e.key)) })
	return &rest
}
