// Package trial makes pushes that are there to be measured: of one configuration after the other, in this process. A
// trial leaves its rows and its report, and nothing else: no run to go on with, no claims, and no secret in what is
// recorded. What an error of one trial means for those behind it is said by its kind.
package trial

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/loader"
)

// Sources is where a trial's flags come from besides those that it is given.
type Sources struct {
	Drivers   *loader.Registry
	LookupEnv func(string) (string, bool)
	File      string // YAML, with flags' names as keys; "" is none
}

// Setup is one configuration to be measured.
type Setup struct {
	Config config.Push
	Given  map[string][]string // flags that were set by any source, by name; the target is not among them
	Plan   config.Plan         // without what a server may change about it; zero before Outline

	secrets []loader.Secret // values of --set that nobody may see
}

// Setup is the push of flags by name, as config.FromValues takes them. A table that trials may make anew is, so that the
// next trial finds what this one found: no rows.
func (s Sources) Setup(values map[string][]string) (Setup, error) {
	var one Setup
	var err error
	one.Config, one.Given, err = config.FromValues(values, s.Drivers, s.LookupEnv, s.File)
	if err != nil {
		return one, err
	}
	p := &one.Config
	p.State, p.Progress, p.MetricsAddr, p.MetricsLinger = "", "", "", 0
	for _, name := range append(ofTheProcess(), OfOnePush()...) {
		delete(one.Given, name)
	}
	if _, chosen := one.Given["create"]; !chosen && !p.Append && HasTables(p.Target) {
		p.Create = string(loader.CreateRecreate)
		one.Given["create"] = []string{p.Create}
	}
	for _, text := range p.Set {
		if name, value, found := strings.Cut(text, "="); found && loader.IsSecret(name) {
			one.secrets = append(one.secrets, loader.Secret(strings.TrimSpace(value)))
		}
	}
	return one, nil
}

// Outline plans the push as far as that is possible without a server, and refuses what no server could make good.
func (s *Setup) Outline(drivers *loader.Registry) error {
	var err error
	s.Plan, _, err = push.Outline(&s.Config, drivers)
	return err
}

// HasTables tells whether there is anything to make anew: in a bucket every run has a folder of its own.
func HasTables(target string) bool {
	t, err := loader.ParseTarget(target)
	return err != nil || t.Scheme != "s3"
}

// Flags are the flags of push as a scratch pad, and the names of those that a trial may be given: not those that tell one
// process what to do.
func Flags(drivers *loader.Registry) (all *pflag.FlagSet, names []string) {
	all = pflag.NewFlagSet("trial", pflag.ContinueOnError)
	new(config.Push).Flags(all, drivers)
	process := append(OfOnePush(), ofTheProcess()...)
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(process, f.Name) {
			names = append(names, f.Name)
		}
	})
	return all, names
}

// OfOnePush are flags of a push that is none of many: what goes on goes on by its own command, and between two trials
// nobody lingers.
func OfOnePush() []string { return []string{"resume", "metrics-linger"} }

// NotOfTrials are all flags of a push that no trial is given.
func NotOfTrials() []string { return append(append(OfOnePush(), ofTheProcess()...), "report") }

func ofTheProcess() []string {
	return []string{"state-dir", "config", "progress", "json", "dry-run", "metrics-addr"}
}
