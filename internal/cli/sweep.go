package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/experiment"
	"github.com/terapush/terapush/internal/nearest"
	"github.com/terapush/terapush/pkg/loader"
)

const sweepHelp = `Push the same rows in many ways, one after the other, and print a table of what each brought.

A plan is a YAML file with axes (method, batch-rows, workers, any flag of push, set.NAME, target); every combination of
their values is a cell, and every cell is a push of its own, proven like any other. The plans that come with terapush
are presets (terapush list presets), each in the size of the article it reproduces and in smaller scales.

TARGET stands for the plan's. Every flag of push holds for all cells and stands for the plan's own; one that is an axis
of the plan is refused. Of the environment and --config comes what neither says. Tables are made anew for every cell
(--create recreate) unless the plan or a flag says otherwise; only tables that terapush made are dropped.

What ended is in the record (--record), on disk before the next push begins. After a kill, a signal or a failure the same
command goes on where it was. A cell that fails is recorded and the sweep goes on. It ends when the server's disk is full
and when the target cannot be reached three times in succession.

Exit codes: 0 ok, 1 ended early or some pushes failed, 2 usage or a cell that cannot be, 4 a verification failed,
5 nothing could be reached, 130 or 143 stopped by a signal.`

// sweepFlags are the flags that only sweep has.
type sweepFlags struct {
	planFile, preset, scale string
	record                  string
	restart                 bool
	repeats                 int
	budget                  time.Duration
	only                    string
	html                    string
}

func (o *sweepFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&o.planFile, "plan", "", "YAML file with the cells")
	f.StringVar(&o.preset, "preset", "", "plan that comes with terapush: "+strings.Join(experiment.Presets(), ", "))
	f.StringVar(&o.scale, "scale", "", "size of the plan: cloud is the article's own, laptop takes minutes, ci less than two")
	f.StringVar(&o.record, "record", "", "file that the sweep is kept in (default NAME-SCALE.sweep.jsonl)")
	f.BoolVar(&o.restart, "restart", false, "begin anew and forget what is in the record")
	f.IntVar(&o.repeats, "repeats", 0, "how often every cell is measured (default: the plan's)")
	f.DurationVar(&o.budget, "budget", 0, "time for the whole sweep: what has not begun by then is skipped (default: the plan's)")
	f.StringVar(&o.only, "only", "", "part of the plan to do")
	f.StringVar(&o.html, "report", "", "write the tables with charts to this HTML file as well")
}

func (a *app) sweep() *cobra.Command {
	var own sweepFlags
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "sweep [TARGET] --plan FILE | --preset NAME [flags]",
		Short: "Push in many ways and compare: methods, batch sizes, workers",
		Long:  sweepHelp,
		Example: `  terapush sweep postgres://user@host/db --preset yugabyte-rows-per-transaction --scale laptop
  terapush sweep mysql://user@host/db --plan mine.yaml --repeats 3 --report mine.html
  terapush sweep --plan mine.yaml --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := &sweeper{app: a, flags: cmd.Flags(), file: file}
			if err := s.plan(args, &c, &own); err != nil {
				return usage(err)
			}
			if c.DryRun {
				return s.explain()
			}
			return s.run(cmd.Context())
		},
	}
	own.flags(cmd.Flags())
	c.Flags(cmd.Flags(), a.drivers)
	cmd.Flags().StringVar(&file, "config", "", "YAML file with flags' names as keys")
	cmd.Flags().Lookup("dry-run").Usage = "print all cells and the estimate, and connect to nothing"
	cmd.Flags().Lookup("json").Usage = "print the tables as one JSON object"
	cmd.Flags().Lookup("progress").Usage = "how to show progress on stderr: a bar on a terminal and a line for every push that ended"
	for _, name := range notForCells() {
		cmd.Flags().Lookup(name).Hidden = true
	}
	cmd.Flags().SortFlags = false
	return cmd
}

// cellFlags are the flags of push as a scratch pad, and the names of those that a cell may be given: not those that tell
// one process what to do.
func cellFlags(drivers *loader.Registry) (all *pflag.FlagSet, names []string) {
	all = pflag.NewFlagSet("cell", pflag.ContinueOnError)
	new(config.Push).Flags(all, drivers)
	process := append(notForCells(), "state-dir", "config", "progress", "json", "dry-run", "metrics-addr")
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(process, f.Name) {
			names = append(names, f.Name)
		}
	})
	return all, names
}

// shownTarget is a target without anything that may be secret.
func shownTarget(text string) (string, error) {
	t, err := loader.ParseTarget(text)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// notForCells are flags of a single push: a sweep goes on by its record, and between two cells nobody lingers.
func notForCells() []string { return []string{"resume", "metrics-linger"} }

// plan reads everything that says what is to be done. What the environment says comes last: it may say how this process
// works, but to a cell only what neither plan nor command line says.
func (s *sweeper) plan(args []string, c *config.Push, own *sweepFlags) error {
	if len(args) > 1 {
		return fmt.Errorf("sweep takes at most one TARGET: %d arguments given", len(args))
	}
	if len(args) == 1 {
		s.target = args[0]
	}
	if config.PasswordInArguments(s.target) {
		s.log().Warn("the password on the command line can be read by every user of this machine: use TERAPUSH_PASSWORD or --password-file")
	}
	push, err := s.overrides()
	s.given = map[string][]string{}
	s.flags.Visit(func(f *pflag.Flag) { s.given[f.Name] = valuesOf(f) })
	delete(s.given, "restart")
	if err == nil {
		err = config.Complete(s.flags, s.LookupEnv, s.file)
	}
	if err == nil && c.State == "" {
		c.State, err = s.stateDir()
	}
	if err != nil {
		return err
	}
	s.process, s.sweepFlags = *c, *own
	if err := s.parse(push); err != nil {
		return err
	}
	if s.repeats > 0 {
		s.work.Repeats = s.repeats
	}
	if s.budget > 0 {
		s.work.Budget = s.budget
	}
	if s.record == "" {
		s.record = fmt.Sprintf("%s-%s.sweep.jsonl", s.work.Name, s.work.Scale)
	}
	return s.lay()
}

func (s *sweeper) parse(push map[string][]string) error {
	name, text, err := s.read()
	if err != nil {
		return err
	}
	all, names := cellFlags(s.drivers)
	s.work, err = experiment.Parse(name, text, experiment.Options{
		Scale: s.scale, Target: s.target, Push: push,
		Flags: names, Exclusive: config.Exclusive(), Schemes: s.drivers.Schemes(),
		Check: all.Set, Show: shownTarget, LookupEnv: s.LookupEnv,
	})
	return err
}

// read finds the plan's text.
func (s *sweeper) read() (name string, text []byte, err error) {
	switch {
	case s.flags.Changed("repeats") && s.repeats < 1:
		return "", nil, fmt.Errorf("--repeats %d: at least 1", s.repeats)
	case s.budget < 0:
		return "", nil, errors.New("--budget: a duration cannot be negative")
	case s.planFile != "" && s.preset != "":
		return "", nil, errors.New("--plan and --preset exclude each other")
	case s.preset != "":
		return experiment.Preset(s.preset)
	case s.planFile == "":
		return "", nil, errors.New("a plan is needed: --plan FILE, or --preset NAME of terapush list presets")
	}
	text, err = os.ReadFile(s.planFile)
	if err != nil {
		return "", nil, fmt.Errorf("--plan: %w", err)
	}
	return s.planFile, text, nil
}

// overrides are the flags on the command line that cells are given.
func (s *sweeper) overrides() (map[string][]string, error) {
	_, cells := cellFlags(s.drivers)
	push := map[string][]string{}
	var problems []error
	s.flags.Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains(notForCells(), f.Name):
			problems = append(problems, fmt.Errorf("--%s is for a single push; a sweep is gone on with by its own command", f.Name))
		case slices.Contains(cells, f.Name):
			push[f.Name] = valuesOf(f)
		}
	})
	_, err := (&config.Push{Set: push["set"]}).Settings()
	return push, errors.Join(append(problems, err)...)
}

func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// chosen are the parts to do.
func (s *sweeper) chosen() (map[int]bool, error) {
	parts := map[int]bool{}
	var names []string
	for i, p := range s.work.Parts {
		names = append(names, p.Name)
		if s.only == "" || s.only == p.Name {
			parts[i] = true
		}
	}
	if len(parts) > 0 {
		return parts, nil
	}
	if len(names) == 1 && names[0] == "" {
		return nil, fmt.Errorf("--only %q: the plan has one part only, without a name", s.only)
	}
	return nil, fmt.Errorf("--only: %w", nearest.Unknown("part", s.only, names))
}

// command is what goes on with the sweep.
func (s *sweeper) command() string {
	words := []string{"terapush sweep"}
	if shown, err := shownTarget(s.target); err == nil {
		words = append(words, quote(shown))
	}
	for _, name := range slices.Sorted(maps.Keys(s.given)) {
		for _, value := range s.given[name] {
			if name == "set" {
				value = maskSetting(value)
			}
			words = append(words, "--"+name+"="+quote(value))
		}
	}
	return strings.Join(words, " ")
}
