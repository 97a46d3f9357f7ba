package cli

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/experiment"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// sweeper is a sweep of one command line.
type sweeper struct {
	*app
	sweepFlags
	target  string              // of the command line, "" without one
	flags   *pflag.FlagSet      // of the command
	given   map[string][]string // flags on the command line
	file    string              // --config
	process config.Push         // for what concerns this process and no cell
	work    experiment.Plan
	cells   []sweepCell   // of the chosen parts
	parts   []record.Part // all of them, as the record has them
}

// sweepCell is a cell with all that its pushes are told.
type sweepCell struct {
	experiment.Cell
	config config.Push
	given  map[string][]string
	plan   plan.Plan // without what a server may change about it
	// secrets are values of --set that nobody may see.
	secrets []loader.Secret
}

// lay makes a push of every cell, and checks all of them before anything runs.
func (s *sweeper) lay() error {
	chosen, err := s.chosen()
	if err != nil {
		return err
	}
	first := map[int]map[string][]string{}
	var wrong complaints
	for _, c := range s.work.Cells() {
		one, err := s.cell(c)
		if first[c.Part] == nil {
			first[c.Part] = one.given
		}
		if !chosen[c.Part] {
			continue
		}
		if err == nil {
			one.plan, _, err = push.Outline(&one.config, s.drivers)
		}
		if err != nil {
			wrong.add(s.describe(c), err)
		}
		s.cells = append(s.cells, one)
	}
	for i, p := range s.work.Parts {
		part, err := partOf(p, first[i])
		if err != nil {
			return err
		}
		s.parts = append(s.parts, part)
	}
	return wrong.err()
}

func (s *sweeper) cell(c experiment.Cell) (sweepCell, error) {
	one := sweepCell{Cell: c}
	var err error
	one.config, one.given, err = config.FromValues(c.Push, s.drivers, s.LookupEnv, s.file)
	if err != nil {
		return one, err
	}
	p := &one.config
	p.State, p.Progress, p.MetricsAddr, p.MetricsLinger = "", s.process.Progress, s.process.MetricsAddr, 0
	if _, chosen := one.given["create"]; !chosen && !p.Append && hasTables(p.Target) {
		// The next cell is to find what this one found: no rows.
		p.Create = string(loader.CreateRecreate)
		one.given["create"] = []string{p.Create}
	}
	for _, text := range p.Set {
		if name, value, found := strings.Cut(text, "="); found && isSecret(name) {
			one.secrets = append(one.secrets, loader.Secret(strings.TrimSpace(value)))
		}
	}
	return one, nil
}

// hasTables tells whether there is anything to make anew: in a bucket every run has a folder of its own.
func hasTables(target string) bool {
	t, err := loader.ParseTarget(target)
	return err != nil || t.Scheme != "s3"
}

// partOf is a part as the record has it: with the flags of its first cell that are no axes, and without secrets.
func partOf(p experiment.Part, given map[string][]string) (record.Part, error) {
	part := record.Part{Name: p.Name, Title: p.Title, Axes: p.Axes, Facts: p.Facts, Cells: p.Count(), Push: maps.Clone(given)}
	if part.Name == "" {
		part.Title = "" // it is the sweep's
	}
	if part.Push == nil {
		part.Push = map[string][]string{}
	}
	if target, ok := p.Push["target"]; ok {
		shown, err := shownTarget(target[0])
		if err != nil {
			return part, err
		}
		part.Push["target"] = []string{shown}
	}
	var set []string
	for _, text := range given["set"] {
		name, _, _ := strings.Cut(text, "=")
		if !slices.ContainsFunc(p.Axes, func(a record.Axis) bool { return a.Name == "set."+name }) {
			set = append(set, maskSetting(text))
		}
	}
	delete(part.Push, "set")
	if len(set) > 0 {
		part.Push["set"] = set
	}
	for _, a := range p.Axes {
		delete(part.Push, a.Name)
		if variable, isSet := strings.CutPrefix(a.Name, "set."); isSet && isSecret(variable) {
			return part, fmt.Errorf("axis %s: the values of an axis are in every table, and this looks like a secret", a.Name)
		}
	}
	return part, nil
}

// secretNames are session variables whose values are nobody's business.
var secretNames = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|private|(api|access|encryption).?key`)

func isSecret(variable string) bool { return secretNames.MatchString(variable) }

// maskSetting is an entry of --set as it may be shown.
func maskSetting(text string) string {
	name, value, found := strings.Cut(text, "=")
	if !found || !isSecret(name) {
		return text
	}
	return name + "=" + loader.Secret(value).String()
}

// describe names a cell within the plan.
func (s *sweeper) describe(c experiment.Cell) string {
	text := sweep.Describe(c.Settings)
	if name := s.work.Parts[c.Part].Name; name != "" {
		text = name + ": " + text
	}
	return text
}

// complaints are what is wrong with cells, each problem once with the cells that have it.
type complaints struct {
	texts []string // in the order in which they were found
	cells map[string][]string
}

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
