package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/loader"
)

const envPrefix = "TERAPUSH_"

// Complete fills the flags that were not given: from the environment (TERAPUSH_BATCH_ROWS for --batch-rows), then from
// the YAML file, whose keys are the flags' names. A key of the file that no flag has is an error.
func Complete(f *pflag.FlagSet, env func(string) (string, bool), file string) error {
	if file == "" {
		file, _ = env(envPrefix + "CONFIG")
	}
	values, err := readFile(f, file)
	if err != nil {
		return err
	}
	err = fill(f, func(name string) (string, []string) {
		variable := envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if text, _ := env(variable); text != "" {
			return variable, []string{text}
		}
		return "", nil
	})
	return errors.Join(err,
		fill(f, func(name string) (string, []string) { return file + ": " + name, values[name] }),
		refuseZero(f))
}

// Restore sets the flags of an earlier process that this one was not given. Every --set is a variable of its own: those of
// the earlier process hold as well, and where both set one this process's does.
func Restore(f *pflag.FlagSet, earlier map[string][]string) error {
	for name := range earlier {
		if f.Lookup(name) == nil {
			return fmt.Errorf("the run was started with --%s, which this terapush does not have", name)
		}
	}
	if set := f.Lookup("set"); set != nil && set.Changed {
		if list, ok := set.Value.(pflag.SliceValue); ok {
			if err := list.Replace(append(slices.Clone(earlier["set"]), list.GetSlice()...)); err != nil {
				return err
			}
		}
	}
	return fill(f, func(name string) (string, []string) { return "the run's --" + name, earlier[name] })
}

// fill sets the flags that are not set from one more source, which says where a value comes from. A flag stands for
// those it excludes: --rows on the command line is not contradicted by bytes in the file.
func fill(f *pflag.FlagSet, from func(flag string) (where string, values []string)) error {
	settled := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { settled[flag.Name] = true })
	for _, group := range exclusive() {
		if slices.ContainsFunc(group, func(name string) bool { return settled[name] }) {
			for _, name := range group {
				settled[name] = true
			}
		}
	}
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		if settled[flag.Name] || flag.Name == "help" {
			return
		}
		where, values := from(flag.Name)
		for _, text := range values {
			if err := f.Set(flag.Name, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", where, err))
			}
		}
	})
	return errors.Join(problems...)
}

// exclusive lists the flags of which one only may be given.
func exclusive() [][]string {
	return [][]string{{"rows", "bytes", "duration"}, {"batch-rows", "batch-bytes"}}
}

// refuseZero refuses a 0 where it would silently mean the default.
func refuseZero(f *pflag.FlagSet) error {
	var problems []error
	for _, name := range []string{"rows", "bytes", "duration", "batch-rows", "batch-bytes", "commit-batches", "memory", "workers", "batch-timeout"} {
		flag := f.Lookup(name)
		if flag != nil && flag.Changed && slices.Contains([]string{"", "0", "0s"}, flag.Value.String()) {
			problems = append(problems, fmt.Errorf("--%s 0: give more than 0, or leave it out for the default", name))
		}
	}
	return errors.Join(problems...)
}

func readFile(f *pflag.FlagSet, path string) (map[string][]string, error) {
	if path == "" {
		return nil, nil
	}
	text, err := file.Read(path, file.MaxSettings)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var keys map[string]any
	in := yaml.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&keys); err != nil && !errors.Is(err, io.EOF) { // of an empty file
		// Without the lines it speaks of, which may hold what is nobody's business.
		return nil, fmt.Errorf("--config %s: %s", path, yaml.FormatError(err, false, false))
	}
	if in.Decode(new(any)) == nil {
		return nil, fmt.Errorf("--config %s: it holds more than one document (---)", path)
	}
	values := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if valid := keyNames(f); !slices.Contains(valid, name) {
			return nil, fmt.Errorf("--config %s: %w", path, Unknown("key", name, valid))
		}
		list, ok := keys[name].([]any)
		if !ok {
			list = []any{keys[name]}
		} else if _, takes := f.Lookup(name).Value.(pflag.SliceValue); !takes {
			return nil, fmt.Errorf("--config %s: %s: write one value, not a list", path, name)
		}
		for _, v := range list {
			switch v.(type) {
			case nil, []any, map[string]any:
				return nil, fmt.Errorf("--config %s: %s: write one value, or a list of values", path, name)
			}
			values[name] = append(values[name], fmt.Sprint(v))
		}
	}
	return values, nil
}

// keyNames lists what may stand in a file: not the way to another file, which nobody would follow.
func keyNames(f *pflag.FlagSet) []string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "config" && flag.Name != "help" {
			names = append(names, flag.Name)
		}
	})
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
	"resume", "state-dir", "config", "password-file", "progress", "json", "dry-run", "report", "metrics-addr", "metrics-linger", "server-metrics", "prices", "help",
}

// optionValue is the flag of a method's option.
type optionValue struct {
	into   map[string]string
	option loader.Option
}

// Set keeps one spelling of each value, which a resume can compare.
func (v *optionValue) Set(text string) error {
	value, err := any(text), error(nil)
	switch v.option.Kind {
	case loader.BoolOption:
		value, err = strconv.ParseBool(text)
	case loader.IntOption:
		value, err = strconv.ParseInt(text, 10, 64)
	case loader.StringOption:
	}
	if err != nil {
		return fmt.Errorf("%q is not a valid %s", text, v.Type())
	}
	v.into[v.option.Name] = fmt.Sprint(value)
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
