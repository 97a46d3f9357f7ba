package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// trialsCommand makes many pushes, one after the other: it is what sweep and tune share.
type trialsCommand struct {
	*app
	target  string // of the command line, "" without one
	flags   *pflag.FlagSet
	given   map[string][]string // flags on the command line
	file    string              // --config
	process config.Push         // for what concerns this process and not the trials
}

// pushFlags adds the flags of push.
func (t *trialsCommand) pushFlags(f *pflag.FlagSet, dryRun, json, progress string, defaults map[string]string) {
	t.flags = f
	t.process.Flags(f, t.drivers)
	addConfig(f, &t.file)
	f.Lookup("dry-run").Usage, f.Lookup("json").Usage = dryRun, json
	f.Lookup("state-dir").Usage = "folder of the journals (default: the user's state folder)"
	f.Lookup("progress").Usage = "progress on stderr; auto is a bar on a terminal, and a line for every " + progress
	for name, value := range defaults {
		f.Lookup(name).DefValue = value
	}
	for _, name := range sweep.OfOnePush() {
		f.Lookup(name).Hidden = true
	}
}

// read returns the trials' flags on the command line, before it completes those of this process from the environment: a
// trial takes from there only what nothing else sets. hint ends the error about flags of a single push.
func (t *trialsCommand) read(target, hint string) (trial map[string][]string, err error) {
	t.target, t.given, trial = target, map[string][]string{}, map[string][]string{}
	names := sweep.FlagNames(t.drivers)
	var problems []error
	t.flags.Visit(func(f *pflag.Flag) {
		t.given[f.Name] = valuesOf(f)
		switch {
		case slices.Contains(sweep.OfOnePush(), f.Name):
			problems = append(problems, fmt.Errorf("--%s is for a single push%s", f.Name, hint))
		case slices.Contains(names, f.Name):
			trial[f.Name] = t.given[f.Name]
		}
	})
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	t.process.Target = target
	if err = t.complete(t.flags, &t.process, t.file); err == nil {
		err = needFolder(t.process.Shared)
	}
	return trial, err
}

func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// sources returns where trials take flags from that the command line does not have.
func (t *trialsCommand) sources() sweep.Sources {
	return sweep.Sources{Drivers: t.drivers, LookupEnv: t.LookupEnv, File: t.file}
}

// arguments returns flags as words for a shell, without secrets. format joins a name and its value.
func arguments(format string, flags map[string][]string, names []string) (words []string) {
	for _, name := range names {
		for _, value := range flags[name] {
			if name == "set" {
				value = sweep.ShownSetting(value)
			}
			words = append(words, fmt.Sprintf(format, name, units.ShellWord(value)))
		}
	}
	return words
}

// trials returns what makes the pushes, with progress on this terminal.
func (t *trialsCommand) trials(state string) *sweep.Trials {
	process := t.process
	if process.Progress == string(live.Auto) && !t.terminal.Interactive() {
		process.Progress = string(live.None) // a log file gets one line a push
	}
	return &sweep.Trials{
		Sources: t.sources(), State: state, Process: process, Log: sweep.Once(t.log()),
		Watch: func(ctx context.Context, o config.Output) (func(push.Watched) (func(), error), func(), error) {
			w, err := newWatcher(ctx, o, t.terminal)
			if err != nil {
				return nil, nil, err
			}
			w.passing = true
			return w.watch, w.close, nil
		},
	}
}

// job returns the part of a sweep that makes the pushes.
func (t *trialsCommand) job(trials *sweep.Trials, drain <-chan struct{}) sweep.Job {
	return sweep.Job{
		Drain: drain,
		Push: func(
			ctx context.Context, c sweep.Case, drain <-chan struct{}, begun func(func() bool),
		) (*report.Report, error) {
			return trials.Push(ctx, c.Setup, drain, begun)
		},
	}
}

// closeTrials warns of runs that could not be forgotten.
func (t *trialsCommand) closeTrials(ctx context.Context, trials *sweep.Trials, cases []sweep.Case) {
	if err := trials.Close(ctx, cases); err != nil {
		t.log().Warn(loader.Explain(err))
	}
}

// tell prints a line about a completed push.
func (t *trialsCommand) tell(line string) {
	if t.process.Progress != string(live.None) {
		fmt.Fprintln(t.terminal, units.Printable(line))
	}
}

// endedEarly returns the error of trials that were not completed. reached reports whether the target was reached.
func endedEarly(err error, reached bool) error {
	switch {
	case errors.Is(err, sweep.ErrStopped):
		return &push.Error{Outcome: report.Interrupted, Err: err}
	case errors.Is(err, sweep.ErrUnreachable) && !reached:
		return &push.Error{Outcome: report.PreflightFailed, Err: errors.New(loader.Explain(err))}
	}
	return &push.Error{Outcome: report.Failed, Err: errors.New(loader.Explain(err))} // without the outcome of a single push
}
