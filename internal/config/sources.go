package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/nearest"
	"github.com/terapush/terapush/pkg/loader"
)

const envPrefix = "TERAPUSH_"

// Complete fills the flags that were not given: from the environment (TERAPUSH_BATCH_ROWS for --batch-rows), then from
// the YAML file, whose keys are the flags' names. A key of the file that no flag has is an error.
func Complete(f *pflag.FlagSet, env func(string) (string, bool), file string) error {
	values, err := readFile(f, file)
	if err != nil {
		return err
	}
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		variable := envPrefix + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if flag.Changed || flag.Name == "help" {
			return
		}
		if text, ok := env(variable); ok {
			if err := f.Set(flag.Name, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", variable, err))
			}
			return
		}
		for _, text := range values[flag.Name] {
			if err := f.Set(flag.Name, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s: %w", file, flag.Name, err))
			}
		}
	})
	return errors.Join(problems...)
}

func readFile(f *pflag.FlagSet, path string) (map[string][]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	values := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if f.Lookup(name) == nil {
			return nil, fmt.Errorf("--config %s: %w", path, nearest.Unknown("key", name, flagNames(f)))
		}
		if list, ok := keys[name].([]any); ok {
			for _, v := range list {
				values[name] = append(values[name], fmt.Sprint(v))
			}
			continue
		}
		values[name] = []string{fmt.Sprint(keys[name])}
	}
	return values, nil
}

func flagNames(f *pflag.FlagSet) []string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// Given lists the flags that were set by any source, with their values, without those that belong to one process and
// not to the run.
func Given(f *pflag.FlagSet) map[string][]string {
	given := make(map[string][]string)
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(ofOneProcess, flag.Name) {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			given[flag.Name] = list.GetSlice()
			return
		}
		given[flag.Name] = []string{flag.Value.String()}
	})
	return given
}

// ofOneProcess are the flags that a resume does not take over.
var ofOneProcess = []string{
	"resume", "state-dir", "config", "password-file", "progress", "json", "dry-run", "metrics-addr", "metrics-linger", "help",
}

// Restore sets the flags of an earlier process that this one was not given.
func Restore(f *pflag.FlagSet, earlier map[string][]string) error {
	for name, values := range earlier {
		flag := f.Lookup(name)
		if flag == nil {
			return fmt.Errorf("the run was started with --%s, which this terapush does not have", name)
		}
		if flag.Changed {
			continue
		}
		for _, v := range values {
			if err := f.Set(name, v); err != nil {
				return fmt.Errorf("the run's --%s: %w", name, err)
			}
		}
	}
	return nil
}

// optionValue is the flag of a method's option.
type optionValue struct {
	into   map[string]string
	option loader.Option
}

func (v *optionValue) Set(text string) error {
	var err error
	switch v.option.Kind {
	case loader.BoolOption:
		_, err = strconv.ParseBool(text)
	case loader.IntOption:
		_, err = strconv.ParseInt(text, 10, 64)
	case loader.StringOption:
	}
	if err != nil {
		return fmt.Errorf("%q is not a valid %s", text, v.Type())
	}
	v.into[v.option.Name] = text
	return nil
}

func (v *optionValue) String() string {
	if v.into == nil {
		return ""
	}
	if text, ok := v.into[v.option.Name]; ok {
		return text
	}
	return v.option.Default
}

func (v *optionValue) Type() string {
	return [...]string{"string", "bool", "int"}[v.option.Kind]
}
