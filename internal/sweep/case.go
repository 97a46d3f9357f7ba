package sweep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Sweep is a plan whose cases are all valid pushes.
type Sweep struct {
	Plan  Plan
	Cases []Case         // of the chosen parts
	Parts []results.Part // all of the plan's, as a record has them: without secrets
}

// New makes the push of every case without connecting to anything. The error names everything that is wrong, each
// problem once with the cases that have it.
func New(p Plan, o Options) (*Sweep, error) {
	s := &Sweep{Plan: p}
	var names []string
	for _, part := range p.Parts {
		names = append(names, part.Name)
	}
	if o.Only != "" && len(names) == 1 && names[0] == "" {
		return nil, fmt.Errorf("--only %q: the plan has one part only, without a name", o.Only)
	}
	if o.Only != "" && !slices.Contains(names, o.Only) {
		return nil, fmt.Errorf("--only: %w", config.Unknown("part", o.Only, names))
	}
	all := make([][]Case, len(p.Parts))
	taken := map[string]bool{}
	var methods, texts []string
	wrong := map[string][]string{} // the cases that have a problem
	for _, c := range p.Cases() {
		method, err := o.setUp(&c)
		all[c.Part] = append(all[c.Part], c)
		if o.Only != "" && names[c.Part] != o.Only {
			continue
		}
		for name := range c.Push {
			taken[name] = true
		}
		if method != "" && !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
		if err == nil {
			err = c.Outline(o.Drivers)
		}
		for _, problem := range loader.Problems(err) {
			text := loader.Explain(problem)
			if wrong[text] == nil {
				texts = append(texts, text)
			}
			wrong[text] = append(wrong[text], s.describe(c.Part, c.Settings))
		}
		s.Cases = append(s.Cases, c)
	}
	var problems []error
	for _, text := range texts {
		cases := wrong[text][0]
		if more := len(wrong[text]) - 1; more > 0 {
			cases += " and " + english.Plural(more, "more case", "")
		}
		problems = append(problems, fmt.Errorf("%s: %s", cases, text))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Push)) {
		if !taken[name] && !slices.Contains(config.Entries(), name) {
			problems = append(problems, fmt.Errorf("--%s: no case's method takes it; they are %s", name, strings.Join(methods, ", ")))
		}
	}
	for i, part := range p.Parts {
		recorded := partOf(part, all[i])
		if part.hasAxis(p.Knee) {
			recorded.Knee = p.Knee
		}
		s.Parts = append(s.Parts, recorded)
	}
	return s, errors.Join(problems...)
}

// describe names a case within the plan.
func (s *Sweep) describe(part int, settings results.Settings) string {
	return units.Join(": ", s.Plan.Parts[part].Name, settings.String())
}

// setUp makes the push of a case, without those flags of the command line that its method does not take. method is ""
// if it is unknown, which the case's Outline reports.
func (o *Options) setUp(c *Case) (method string, err error) {
	if c.Setup, err = o.Setup(c.Push); err != nil {
		return "", err
	}
	driver, _, err := config.FindTarget(c.Config.Target, c.Config.Connect, o.Drivers)
	if err != nil {
		return "", nil //nolint:nilerr // Outline reports it together with all other problems
	}
	m, known := loader.FindMethod(driver, c.Config.Method)
	if !known {
		return "", nil
	}
	flags := len(c.Push)
	maps.DeleteFunc(c.Push, func(name string, _ []string) bool {
		return o.Push[name] != nil && !slices.Contains(config.Entries(), name) && !config.Takes(m, name, o.Drivers)
	})
	if len(c.Push) < flags {
		c.Setup, err = o.Setup(c.Push)
	}
	return m.Name, err
}

// partOf returns a part as the record has it: with the flags that all its cases share, and those that all cases of one
// method share, without secrets.
func partOf(p Part, cases []Case) results.Part {
	part := results.Part{
		Name: p.Name, Title: p.Title, Axes: p.Axes, Cells: results.Combinations(p.Axes), Excluded: p.excluded,
		Facts: p.Facts, Thresholds: p.Thresholds,
	}
	if part.Name == "" {
		part.Title = "" // the sweep has it
	}
	byMethod := map[string][]flags{}
	var all []flags
	for _, c := range cases {
		one := flags{recorded(c.Given, p.Axes), c.own}
		method := strings.Join(c.Push[methodFlag], "")
		all, byMethod[method] = append(all, one), append(byMethod[method], one)
	}
	part.Push = common(all)
	for method, ofMethod := range byMethod {
		own := common(ofMethod)
		maps.DeleteFunc(own, func(name string, _ []string) bool { return part.Push[name] != nil })
		if len(own) > 0 {
			if part.Methods == nil {
				part.Methods = map[string]map[string][]string{}
			}
			part.Methods[method] = byFlag(own)
		}
	}
	part.Push = byFlag(part.Push)
	if target := p.Push[targetName]; target != nil {
		shown, _ := ShownTarget(target[0]) // ParsePlan has refused others
		part.Push[targetName] = []string{shown}
	}
	return part
}

// recorded returns flags without axes and secrets, those with entries as set.NAME.
func recorded(given map[string][]string, axes []results.Axis) map[string][]string {
	isAxis := (&Part{Axes: axes}).hasAxis
	push := map[string][]string{}
	for name, values := range given {
		if !slices.Contains(config.Entries(), name) && !isAxis(name) {
			push[name] = values
		}
	}
	for _, flag := range config.Entries() {
		for _, text := range given[flag] {
			name, _, _ := strings.Cut(text, "=")
			if name = flag + "." + name; !isAxis(name) {
				push[name] = []string{ShownSetting(text)}
			}
		}
	}
	return push
}

// byFlag returns flags with the entries of one flag together.
func byFlag(flags map[string][]string) map[string][]string {
	all := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		flag, _, isEntry := config.Entry(name)
		if !isEntry {
			flag = name
		}
		all[flag] = append(all[flag], flags[name]...)
	}
	return all
}

// flags are those of a case as the record has them. own come from values of its axes, which are recorded with the axes.
type flags struct{ push, own map[string][]string }

// common returns the flags that are the same in all that have them from elsewhere than their axes.
func common(all []flags) map[string][]string {
	same := map[string][]string{}
	for _, one := range all {
		for name, values := range one.push {
			if one.own[name] == nil {
				same[name] = values
			}
		}
	}
	for _, one := range all {
		maps.DeleteFunc(same, func(name string, values []string) bool {
			return one.own[name] == nil && !slices.Equal(values, one.push[name])
		})
	}
	return same
}
