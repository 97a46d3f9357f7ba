package sweep

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/loader"
)

// Sources are where a trial's flags come from, in addition to those that it is given.
type Sources struct {
	Drivers   *loader.Registry
	LookupEnv func(string) (string, bool) // nil finds none
	File      string                      // YAML with flags' names as keys; "" is none
}

// Setup is one configuration to be measured.
type Setup struct {
	Config config.Push
	Given  map[string][]string // flags that were set by any source, by name, without the target
	Plan   run.Plan            // before a server changes it; zero before Outline

	secrets []loader.Secret // values of --set
}

// Setup returns the push of flags by name, as config.FromValues takes them. Unless the flags forbid it, the table is
// made anew, so that every trial begins without rows.
func (s Sources) Setup(values map[string][]string) (Setup, error) {
	var one Setup
	var err error
	one.Config, one.Given, err = config.FromValues(values, s.Drivers, s.LookupEnv, s.File)
	if err != nil {
		return one, err
	}
	p := &one.Config
	p.State, p.Progress, p.MetricsAddr, p.MetricsLinger = "", "", "", 0
	for _, name := range ofProcess() {
		delete(one.Given, name)
	}
	if _, chosen := one.Given["create"]; !chosen && !p.Append && hasTables(&p.Database, s.Drivers) {
		p.Create = string(loader.CreateRecreate)
		one.Given["create"] = []string{p.Create}
	}
	for _, variable := range p.Set {
		if loader.IsSecret(variable.Name) {
			one.secrets = append(one.secrets, loader.Secret(variable.Value))
		}
	}
	return one, nil
}

// hasTables reports whether the target has tables. In an object store every run has a folder of its own.
func hasTables(d *config.Database, drivers *loader.Registry) bool {
	driver, _, err := config.FindTarget(d.Target, d.Connect, drivers)
	return err != nil || !slices.ContainsFunc(driver.Methods(), func(m loader.Method) bool { return m.Caps.Objects })
}

// Outline plans the push as far as that is possible without a server.
func (s *Setup) Outline(drivers *loader.Registry) error {
	o, err := push.NewOutline(&s.Config, drivers)
	s.Plan = o.Plan
	return err
}

// FlagNames lists the flags of push that a trial may have: not those that are for one process.
func FlagNames(drivers *loader.Registry) (names []string) {
	all := pflag.NewFlagSet("trial", pflag.ContinueOnError)
	new(config.Push).Flags(all, drivers)
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(ofProcess(), f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// OfOnePush lists the flags of a single push: a sweep is continued by its own command, and neither waits for a time nor
// lingers between trials.
func OfOnePush() []string {
	return []string{"resume", "run-id", "shard", "start-at", "metrics-linger", "report-to"}
}

// ofProcess lists the flags that are for one process and not for a trial.
func ofProcess() []string {
	return append(OfOnePush(), "state-dir", "config", "progress", "json", "dry-run", "metrics-addr", "report", "fail-below")
}

// ShownSetting returns an entry of --set without a secret value.
func ShownSetting(text string) string {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return text
	}
	return name + "=" + shownValue("set."+name, value)
}

// shownValue returns the value of a flag or of an entry as set.NAME, without a secret.
func shownValue(name, text string) string {
	if flag, variable, _ := config.Entry(name); flag == "set" && loader.IsSecret(variable) {
		return loader.Secret(text).String()
	}
	return text
}

// ShownTarget returns a target without secrets. Its error shows none either.
func ShownTarget(text string) (string, error) {
	t, err := loader.ParseTarget(text)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// withoutSecrets removes secret values of --set from the report.
func (s *Setup) withoutSecrets(r *report.Report) *report.Report {
	if r == nil {
		return nil
	}
	r.Schema = report.Schema
	hidden := func(text string) string { return loader.Redact(text, s.secrets...) }
	for name, value := range r.Target.Settings {
		if loader.IsSecret(name) {
			value = loader.Secret(value).String()
		}
		r.Target.Settings[name] = hidden(value)
	}
	for name, value := range r.Plan.Options {
		r.Plan.Options[name] = hidden(value)
	}
	r.Result.Error = hidden(r.Result.Error)
	for i, f := range r.Result.Failures {
		r.Result.Failures[i].Error = hidden(f.Error)
	}
	for i, text := range r.Warnings {
		r.Warnings[i] = hidden(text)
	}
	return r
}
