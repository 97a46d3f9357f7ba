package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/loader"
)

const envPrefix = "TERAPUSH_"

// variableOf returns the name of a flag's variable, without the prefix.
func variableOf(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// Complete sets the flags that were not given: from the environment (TERAPUSH_BATCH_ROWS for --batch-rows), then from
// the YAML file, whose keys are the flags' names. Unknown keys are an error.
func Complete(f *pflag.FlagSet, env func(string) (string, bool), file string) error {
	if file == "" {
		file, _ = env(envPrefix + "CONFIG")
	}
	values, err := readFile(f, file)
	if err != nil {
		return err
	}
	err = fill(f, func(flag *pflag.Flag) (string, []string) {
		variable := envPrefix + variableOf(flag.Name)
		if text, _ := env(variable); text != "" {
			return variable, []string{text}
		}
		return "", nil
	})
	return errors.Join(err,
		fill(f, func(flag *pflag.Flag) (string, []string) { return file + ": " + flag.Name, values[flag.Name] }),
		refuseZero(f))
}

// Restore sets the flags of an earlier process that this one was not given. Entries of --set are merged: where both set
// one variable this process's value holds.
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
	return fill(f, func(flag *pflag.Flag) (string, []string) { return "the run's --" + flag.Name, earlier[flag.Name] })
}

// fill sets the flags that are not set from one more source, which names the origin of a value for errors. A flag that
// is set excludes others of its group: --rows on the command line does not contradict bytes in the file.
func fill(f *pflag.FlagSet, from func(*pflag.Flag) (where string, values []string)) error {
	settled := map[string]bool{"help": true}
	f.Visit(func(flag *pflag.Flag) { settled[flag.Name] = true })
	for _, group := range Exclusive() {
		if slices.ContainsFunc(group, func(name string) bool { return settled[name] }) {
			for _, name := range group {
				settled[name] = true
			}
		}
	}
	var problems []error
	f.VisitAll(func(flag *pflag.Flag) {
		if settled[flag.Name] {
			return
		}
		where, values := from(flag)
		for _, text := range values {
			if err := f.Set(flag.Name, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", where, PlainError(err)))
			}
		}
	})
	return errors.Join(problems...)
}

// Exclusive lists groups of flags of which only one may be given.
func Exclusive() [][]string {
	return [][]string{{"rows", "bytes", "times", "duration"}, {"batch-rows", "batch-bytes"}, {"dataset", "like"}}
}

// refuseZero refuses a 0 that would silently mean the default.
func refuseZero(f *pflag.FlagSet) error {
	var problems []error
	for _, name := range []string{"rows", "bytes", "times", "duration", "batch-rows", "batch-bytes", "commit-batches", "memory", "workers", "batch-timeout"} {
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
		// Without the lines that it quotes, which may contain a password.
		return nil, fmt.Errorf("--config %s: %s", path, yaml.FormatError(err, false, false))
	}
	if in.Decode(new(any)) == nil {
		return nil, fmt.Errorf("--config %s: it holds more than one document (---)", path)
	}
	var valid []string
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "config" && flag.Name != "help" {
			valid = append(valid, flag.Name)
		}
	})
	values := make(map[string][]string)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := cmp.Or(Removed("--"+key), known("key", key, valid)); err != nil {
			return nil, fmt.Errorf("--config %s: %w", path, err)
		}

		list, ok := keys[key].([]any)
		if _, takes := f.Lookup(key).Value.(pflag.SliceValue); !takes || !ok {
			list = []any{keys[key]}
		}
		for _, v := range list {
			switch v.(type) {
			case nil, []any, map[string]any:
				return nil, fmt.Errorf("--config %s: %s: write one value, or a list if the flag is repeatable", path, key)
			}
			values[key] = append(values[key], fmt.Sprint(v))
		}
	}
	return values, nil
}

// Given lists the flags that were set by any source, with their values, without those that concern one process and not
// the run.
func Given(f *pflag.FlagSet) map[string][]string {
	given := make(map[string][]string)
	f.Visit(func(flag *pflag.Flag) {
		if isProcessFlag(flag) {
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

// isProcessFlag reports whether a flag concerns one process, so that a resume does not take it over.
func isProcessFlag(flag *pflag.Flag) bool {
	return slices.Contains([]string{GroupRuns, GroupOutput, GroupGlobal}, GroupOf(flag)) || flag.Name == "password-file"
}

// ofOnePush are the flags that a trial never has.
var ofOnePush = []string{"resume", "run-id", "shard", "start-at", "dry-run", "json"}

// Entries are the flags that hold entries of the form name=value. In plans each entry is a flag of its own, as set.NAME.
func Entries() []string { return []string{"set", "param"} }

// Entry divides set.NAME and the like into flag and name.
func Entry(name string) (flag, entry string, ok bool) {
	flag, entry, ok = strings.Cut(name, ".")
	return flag, entry, ok && slices.Contains(Entries(), flag)
}

// FromValues returns the push of a trial: what the command line would make of these flags, completed as by Complete;
// file may be "". Some names are no flags: target is TARGET, and set.NAME is --set NAME=…, which replaces an entry of
// that variable in set, as param.NAME is --param NAME=…. given are the flags that were set by any source, as Given lists them, without the target, which
// may contain a password. The flags resume, dry-run and json are ignored in every source.
func FromValues(
	values map[string][]string, drivers *loader.Registry, env func(string) (string, bool), file string,
) (c Push, given map[string][]string, err error) {
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	new(Log).Flags(f) // a file may have its keys
	c.Target = strings.Join(values["target"], "")
	var problems []error
	set := func(name string, values ...string) {
		for _, text := range values {
			problems = append(problems, f.Set(name, text))
		}
	}
	for _, flag := range Entries() {
		for _, text := range values[flag] {
			name, _, _ := strings.Cut(text, "=")
			if _, replaced := values[flag+"."+strings.TrimSpace(name)]; !replaced {
				set(flag, text)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		flag, entry, isEntry := Entry(name)
		switch {
		case isEntry:
			set(flag, entry+"="+strings.Join(values[name], ""))
		case name != "target" && !slices.Contains(Entries(), name):
			set(name, values[name]...)
		}
	}
	c.Connect.LookupEnv = env
	problems = append(problems, Complete(f, env, file))
	problems = append(problems, c.ReadSpec())
	for _, name := range ofOnePush {
		set(name, f.Lookup(name).DefValue)
	}
	return c, Given(f), errors.Join(problems...)
}
