package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/pkg/loader"
)

// Names in a cell's values that are no flags.
const (
	targetValue = "target"
	setValue    = "set."
)

// FromValues is the push of a sweep's cell: what the command line would make of these flags, completed from the
// environment and the YAML file as Complete does; file may be "". Two names are no flags: target is TARGET, and set.NAME
// is --set NAME=…, which stands for an entry of the same variable in set. given are the flags that were set by any
// source, as Given lists them; the target is not among them, since it may hold a password.
//
// What tells one process what to do, and no cell, is left out even where the environment or the file has it: resume,
// dry-run and json.
func FromValues(values map[string][]string, drivers *loader.Registry, env func(string) (string, bool), file string) (c Push, given map[string][]string, err error) {
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case name == targetValue && len(values[name]) == 1:
			c.Target = values[name][0]
		case name == targetValue:
			problems = append(problems, errors.New("a cell has one target"))
		case name != "set" && !strings.HasPrefix(name, setValue):
			problems = append(problems, setFlag(f, name, values[name]))
		}
	}
	problems = append(problems, setFlag(f, "set", variables(values)))
	c.Connect.LookupEnv = env
	problems = append(problems, Complete(f, env, file))
	for _, name := range ofOnePush {
		flag := f.Lookup(name)
		problems = append(problems, flag.Value.Set(flag.DefValue))
	}
	return c, Given(f), errors.Join(problems...)
}

// ofOnePush are the flags that no cell is given.
var ofOnePush = []string{"resume", "dry-run", "json"}

// Exclusive lists groups of flags of which one only may be given.
func Exclusive() [][]string { return exclusive() }

func setFlag(f *pflag.FlagSet, name string, values []string) error {
	for _, text := range values {
		if err := f.Set(name, text); err != nil {
			return err
		}
	}
	return nil
}

// variables are the entries of --set: those of set, as far as no set.NAME stands for them, and the latter by name.
func variables(values map[string][]string) []string {
	var all []string
	for _, text := range values["set"] {
		name, _, _ := strings.Cut(text, "=")
		if _, other := values[setValue+strings.TrimSpace(name)]; !other {
			all = append(all, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		variable, isSet := strings.CutPrefix(name, setValue)
		if isSet {
			for _, value := range values[name] {
				all = append(all, variable+"="+value)
			}
		}
	}
	return all
}
