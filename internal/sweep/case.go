// Package cells lays out the plan of a sweep: it makes a push of every cell, checks all of them before anything runs, and
// tells what the sweep will take. It connects to nothing.
package sweep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/pkg/loader"
)

// Sweep is a plan whose cells are pushes that can be.
type Sweep struct {
	Plan  Plan
	Cases []Case        // of the chosen parts
	Parts []record.Part // all of the plan's, as a record has them: without secrets
}

// Lay makes a push of every cell. The error names everything that is wrong, each problem once with the cells that have it.
func New(p Plan, o Options) (*Sweep, error) {
	s := &Sweep{Plan: p}
	chosen, err := s.chosen(o.Only)
	if err != nil {
		return nil, err
	}
	all := make([][]Case, len(p.Parts))
	taken := map[string]bool{}
	var methods []string
	var wrong complaints
	for _, c := range p.Cases() {
		one, method, err := o.cell(c)
		all[c.Part] = append(all[c.Part], one)
		if !chosen[c.Part] {
			continue
		}
		for name := range one.Push {
			taken[name] = true
		}
		if method != "" && !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
		if err == nil {
			err = one.Outline(o.Drivers)
		}
		if err != nil {
			wrong.add(s.Describe(c), err)
		}
		s.Cases = append(s.Cases, one)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Push)) {
		if !taken[name] && name != setFlag {
			wrong.say(fmt.Sprintf("--%s: no cell's method takes it; they are %s", name, strings.Join(methods, ", ")))
		}
	}
	for i, part := range p.Parts {
		recorded, err := partOf(part, all[i])
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(part.Axes, func(a record.Axis) bool { return a.Name == p.Knee }) {
			recorded.Knee = p.Knee
		}
		s.Parts = append(s.Parts, recorded)
	}
	return s, wrong.err()
}

// chosen are the parts to do.
func (s *Sweep) chosen(only string) (map[int]bool, error) {
	parts := map[int]bool{}
	var names []string
	for i, p := range s.Plan.Parts {
		names = append(names, p.Name)
		if only == "" || only == p.Name {
			parts[i] = true
		}
	}
	if len(parts) > 0 {
		return parts, nil
	}
	if len(names) == 1 && names[0] == "" {
		return nil, fmt.Errorf("--only %q: the plan has one part only, without a name", only)
	}
	return nil, fmt.Errorf("--only: %w", config.Unknown("part", only, names))
}

// Describe names a cell within the plan.
func (s *Sweep) Describe(c Case) string {
	text := record.Settings(c.Settings).String()
	if name := s.Plan.Parts[c.Part].Name; name != "" {
		text = name + ": " + text
	}
	return text
}

// Targets are those of the cells as they were given, each once.
func (s *Sweep) Targets() []string {
	var all []string
	for _, c := range s.Cases {
		if !slices.Contains(all, c.Config.Target) {
			all = append(all, c.Config.Target)
		}
	}
	return all
}

// cell makes the push of a cell, without the flags of the command line that its method does not take. method is "" where
// there is none of the name, as the cell's own check will say.
func (o *Options) cell(c Case) (one Case, method string, err error) {
	one = c
	if one.Setup, err = o.Setup(c.Push); err != nil {
		return one, "", err
	}
	driver, _, err := config.FindTarget(one.Config.Target, one.Config.Connect, o.Drivers)
	if err != nil {
		return one, "", nil //nolint:nilerr // Outline says the same, with all else that is wrong
	}
	m, known := loader.FindMethod(driver, one.Config.Method)
	if !known {
		return one, "", nil
	}
	one.Push = maps.Clone(c.Push)
	for name := range o.Push {
		if name != setFlag && !config.Takes(m, name, o.Drivers) {
			delete(one.Push, name)
		}
	}
	if len(one.Push) == len(c.Push) {
		return one, m.Name, nil
	}
	one.Setup, err = o.Setup(one.Push)
	return one, m.Name, err
}

// partOf is a part as the record has it: with the flags that its cells have in common, and without secrets.
func partOf(p Part, cells []Case) (record.Part, error) {
	part := record.Part{Name: p.Name, Title: p.Title, Axes: p.Axes, Facts: p.Facts, Cells: p.Count()}
	if part.Name == "" {
		part.Title = "" // it is the sweep's
	}
	for _, a := range p.Axes {
		if variable, isSet := strings.CutPrefix(a.Name, "set."); isSet && loader.IsSecret(variable) {
			return part, fmt.Errorf("axis %s: the values of an axis are in every table, and this looks like a secret", a.Name)
		}
	}
	ofMethods := map[string][]map[string][]string{}
	var ofAll []map[string][]string
	for _, c := range cells {
		push := recorded(c.Given, p.Axes)
		method := strings.Join(c.Push["method"], "")
		ofAll, ofMethods[method] = append(ofAll, push), append(ofMethods[method], push)
	}
	part.Push = common(ofAll)
	for method, pushes := range ofMethods {
		own := common(pushes)
		maps.DeleteFunc(own, func(name string, _ []string) bool { _, shared := part.Push[name]; return shared })
		if len(own) == 0 {
			continue
		}
		if part.Methods == nil {
			part.Methods = map[string]map[string][]string{}
		}
		part.Methods[method] = own
	}
	if target, ok := p.Push["target"]; ok {
		shown, err := ShownTarget(target[0])
		if err != nil {
			return part, err
		}
		part.Push["target"] = []string{shown}
	}
	return part, nil
}

// recorded are flags without axes and secrets.
func recorded(given map[string][]string, axes []record.Axis) map[string][]string {
	push := maps.Clone(given)
	if push == nil {
		push = map[string][]string{}
	}
	var set []string
	for _, text := range given["set"] {
		name, _, _ := strings.Cut(text, "=")
		if !slices.ContainsFunc(axes, func(a record.Axis) bool { return a.Name == "set."+name }) {
			set = append(set, ShownSetting(text))
		}
	}
	delete(push, "set")
	if len(set) > 0 {
		push["set"] = set
	}
	for _, a := range axes {
		delete(push, a.Name)
	}
	return push
}

// common are the flags that are the same in all.
func common(all []map[string][]string) map[string][]string {
	same := map[string][]string{}
	if len(all) > 0 {
		same = maps.Clone(all[0])
	}
	for _, one := range all {
		maps.DeleteFunc(same, func(name string, values []string) bool { return !slices.Equal(values, one[name]) })
	}
	return same
}

// complaints are what is wrong with cells, each problem once with the cells that have it.
type complaints struct {
	texts []string            // in the order in which they were found
	cells map[string][]string // none for what is wrong with all of them
}

func (c *complaints) say(text string) { c.texts = append(c.texts, text) }

func (c *complaints) add(cell string, err error) {
	if c.cells == nil {
		c.cells = map[string][]string{}
	}
	said := map[string]bool{}
	for text := range strings.Lines(err.Error()) {
		if text = strings.TrimSpace(text); text == "" || said[text] {
			continue
		}
		said[text] = true
		if c.cells[text] == nil {
			c.texts = append(c.texts, text)
		}
		c.cells[text] = append(c.cells[text], cell)
	}
}

func (c *complaints) err() error {
	var all []error
	for _, text := range c.texts {
		cells := c.cells[text]
		if len(cells) == 0 {
			all = append(all, errors.New(text))
			continue
		}
		where := cells[0]
		switch more := len(cells) - 1; more {
		case 0:
		case 1:
			where += " and 1 more cell"
		default:
			where += fmt.Sprintf(" and %d more cells", more)
		}
		all = append(all, fmt.Errorf("%s: %s", where, text))
	}
	return errors.Join(all...)
}
