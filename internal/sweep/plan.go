// Package sweep pushes the same rows in many ways, and finds by trials the smallest setting that is enough.
//
// A plan is a YAML file, described in docs/SWEEPS.md. Every combination of its axes is a case, and every push of a case
// is a trial. ParsePlan reads a plan; New makes the push of every case and checks all of them before anything runs; Run
// makes the trials in order and records each as it ends. A Search needs no plan: the trials so far decide what is tried
// next. Trials makes the pushes of both.
package sweep

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/terapush/terapush/experiments"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
)

// Plan is a sweep at one scale and for one kind of target.
type Plan struct {
	Name, Title string
	Scale       string        // DefaultScale if none was given; "" if the plan has no scales and none was given
	Repeats     int           // trials of every case, at least 1; with Precision at most
	Precision   float64       // of a case's median, after which it has no more trials; 0 makes them all
	WarmUp      int           // trials of a part's first case that come before it and do not count
	Settle      time.Duration // between two trials
	Limit       time.Duration // of one trial; 0 is none
	Budget      time.Duration // of the whole sweep, after which the rest is skipped; 0 is none
	// Knee is the axis along which a row of cases ends when two values in succession are no better than the best before
	// them; "" ends none. Its values are numbers, sizes or durations that rise. In parts without this axis no row ends.
	Knee string
	// Interleaved shuffles the cases of every repeat, so that a drift of the server or the machine does not look like
	// an effect. A part with the knee's axis goes up that axis instead, with all repeats of all rows at one value
	// before the next: a drift falls on all rows alike, but looks like an effect of that axis. False keeps the cases in
	// order.
	Interleaved bool
	Parts       []Part // at least one
}

// Auto is what takes the place of a number of repeats: as many as Precision needs, but no more than mostRepeats.
const Auto = "auto"

const (
	mostRepeats      = 50
	defaultPrecision = 0.05
)

// SetRepeats takes a number of repeats, Auto, or "" for those that are set; and a precision, 0 for the one that is set,
// which implies Auto. The error begins with the name of the one that is wrong.
func (p *Plan) SetRepeats(repeats string, precision float64) error {
	n, err := count(repeats, 1)
	switch {
	case repeats == Auto || repeats == "" && precision > 0:
		p.Repeats, p.Precision = mostRepeats, cmp.Or(precision, p.Precision, defaultPrecision)
		return nil
	case repeats == "":
		return nil
	case err != nil:
		return fmt.Errorf("repeats %s: %w, or %s", repeats, err, Auto)
	case precision > 0:
		return fmt.Errorf("precision is for repeats %s, and they are %s", Auto, repeats)
	}
	p.Repeats, p.Precision = n, 0
	return nil
}

// FailBelow adds what --fail-below means to the thresholds of every part: so many bytes of payload a second.
func (p *Plan) FailBelow(rate float64) {
	for i := range p.Parts {
		t := results.Threshold{Metric: "bytes_per_second", Is: ">=", Limit: rate}
		p.Parts[i].Thresholds = append(p.Parts[i].Thresholds, t)
	}
}

// Part is one table of the sweep.
type Part struct {
	Name, Title string // Name is "" if the plan has one table only
	// Push holds the flags of every case by name, written with dashes. Some names are no flags: target is the URL as it
	// was given, password included, set.NAME is the session variable NAME, and param.NAME the dataset's parameter NAME.
	// target is missing if it is an axis.
	Push       map[string][]string
	Axes       []results.Axis // none is in Push; the values of an axis target have no secrets
	Facts      *results.Facts
	Thresholds []results.Threshold
	// Methods holds flags for the cases of one method, by the method's name. They replace those of Push.
	Methods map[string]map[string][]string

	targets []string // the values of an axis target as they were given
	folder  string   // that files of datasets are relative to; "" is the process's
	// own holds the flags that values of axes bring. They replace those of Push and Methods.
	own      map[results.Setting]map[string][]string
	free     []string // the axes that are no flags: all their values bring some
	excluded []int    // the combinations that are no cases, rising
}

// Case is one combination of the values of a part's axes.
type Case struct {
	Setup        // its push, once New has made it
	Part, Number int
	Settings     results.Settings    // one for each axis of the part, without secrets
	Push         map[string][]string // all flags as in Part.Push, including those of the axes; not shared

	own map[string][]string // the flags of Push that values of its axes bring
}

// Cases lists the cases of all parts, part by part, each in the order of its axes' values, the last axis fastest.
func (p Plan) Cases() []Case {
	var cases []Case
	for i := range p.Parts {
		for n := range results.Combinations(p.Parts[i].Axes) {
			if _, excluded := slices.BinarySearch(p.Parts[i].excluded, n); excluded {
				continue
			}
			cases = append(cases, p.Parts[i].caseAt(i, n))
		}
	}
	return cases
}

func (p *Part) caseAt(part, number int) Case {
	c := Case{
		Part: part, Number: number, Settings: results.Combination(p.Axes, number),
		Push: map[string][]string{}, own: map[string][]string{},
	}
	maps.Copy(c.Push, p.Push)
	for i, s := range c.Settings {
		maps.Copy(c.own, p.own[s])
		if slices.Contains(p.free, s.Axis) {
			continue
		}
		if s.Axis == targetName && p.targets != nil {
			s.Value = p.targets[slices.Index(p.Axes[i].Values, s.Value)]
		}
		c.Push[s.Axis] = []string{s.Value}
	}
	replace(c.Push, c.own)
	if method := c.Push[methodFlag]; len(method) == 1 {
		maps.Copy(c.Push, p.Methods[method[0]])
		replace(c.Push, c.own)
	}
	if name := c.Push[datasetFlag]; len(name) == 1 {
		c.Push[datasetFlag] = []string{config.DatasetIn(p.folder, name[0])}
	}
	return c
}

// replace sets flags, and removes those that they exclude.
func replace(flags, by map[string][]string) {
	for name := range by {
		for _, other := range exclusiveWith(name) {
			delete(flags, other)
		}
	}
	maps.Copy(flags, by)
}

func (p *Part) hasAxis(name string) bool {
	return slices.ContainsFunc(p.Axes, func(a results.Axis) bool { return a.Name == name })
}

// DefaultScale is the plan without any override. A preset's is the size of the article that it reproduces.
const DefaultScale = "cloud"

// Names with a meaning of their own in a plan. All but targetName are flags.
const (
	targetName  = "target"
	methodFlag  = "method"
	datasetFlag = "dataset"
)

// isEntry reports whether a name is that of an entry of a flag, as set.NAME.
func isEntry(name string) bool {
	_, _, is := config.Entry(name)
	return is
}

// Options are what a plan is read and a sweep made with.
type Options struct {
	Sources
	// Scale names the override to apply; "" is DefaultScale.
	Scale string
	// Target is the command line's and replaces every target of the plan; "" leaves those.
	Target string
	// Push holds flags of the command line for every case, by name. They replace those of the plan; one that is an axis
	// of the plan is refused. A flag of some methods holds for the cases with such a method.
	Push map[string][]string
	// Only names the one part to do; "" is all.
	Only string
}

const presetSuffix = ".yaml"

// Presets lists the plans that come with terapush, in the order of their names.
func Presets() []string {
	files, _ := fs.Glob(experiments.Files(), "*"+presetSuffix) // an error is of the pattern
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], presetSuffix)
	}
	slices.Sort(files) // with its suffix a name sorts after the names that it is a prefix of
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

// PresetTitle returns the line that says what a preset reproduces, "" for an unknown name.
func PresetTitle(name string) string {
	var plan struct{ Title string }
	if _, text, err := Preset(name); err != nil || yaml.Unmarshal(text, &plan) != nil {
		return ""
	}
	return plan.Title
}
