package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

const sweepHelp = `Push the same rows in many ways, one after the other, and print a table of what each brought.

A plan is a YAML file with axes (method, batch-rows, workers, any flag of push, set.NAME, target); every combination of
their values is a cell, and every cell is a push of its own, proven like any other. The plans that come with terapush
are presets (terapush list presets), each in the size of the article it reproduces and in smaller scales.

TARGET takes the place of the plan's target. Flags of push hold for all cells and take the place of the plan's; one that
is an axis of the plan is refused. One that belongs to some methods only (--via, --commit-batches, options of methods)
holds for the cells whose method takes it, and is refused if none does. What neither the command line nor the plan says
comes from the environment (TERAPUSH_SEED) and then from --config. Tables are made anew for every cell (--create
recreate) unless something says otherwise; only tables that terapush made are dropped.

What ended is in the record (--record), on disk before the next push begins. After a kill, a signal or a failure the same
command goes on where it was. A cell that fails is recorded and the sweep goes on; --retry-failed does such pushes again,
and the newer one counts. The sweep ends when the server's disk is full and when the target cannot be reached three times
in succession.

Exit codes: 0 ok, 1 ended early, some pushes failed or nothing was measured, 2 usage or a cell that cannot be,
4 a verification failed, 5 nothing could be reached, 129, 130 or 143 stopped by a signal.`

// sweepFlags are the flags that only sweep has.
type sweepFlags struct {
	planFile, preset, scale string
	record                  string
	byDefault               bool // the record lies in the state folder, since nobody said where
	restart, retryFailed    bool
	repeats                 int
	budget                  time.Duration
	only                    string
	html                    string
}

func (o *sweepFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&o.planFile, "plan", "", "YAML file with the cells")
	f.StringVar(&o.preset, "preset", "", "plan that comes with terapush: "+strings.Join(sweep.Presets(), ", "))
	f.StringVar(&o.scale, "scale", "", "size of the plan: cloud is the article's own, laptop takes minutes, ci less than two (default cloud, where the plan has scales)")
	f.StringVar(&o.record, "record", "", "file that the sweep is kept in (default sweeps/NAME-SCALE.sweep.jsonl in the state folder, NAME.sweep.jsonl without scales)")
	f.BoolVar(&o.restart, "restart", false, "begin anew and forget what is in the record")
	f.BoolVar(&o.retryFailed, "retry-failed", false, "do pushes again that the record has as failed")
	f.IntVar(&o.repeats, "repeats", 0, "how often every cell is measured (default: the plan's)")
	f.DurationVar(&o.budget, "budget", 0, "time for the whole sweep: what has not begun by then is skipped (default: the plan's)")
	f.StringVar(&o.only, "only", "", "part of the plan to do")
	f.StringVar(&o.html, "report", "", "write the tables with charts to this HTML file as well")
}

// sweeper is a sweep of one command line.
type sweeper struct {
	*app
	sweepFlags
	*sweep.Sweep
	target  string              // of the command line, "" without one
	flags   *pflag.FlagSet      // of the command
	given   map[string][]string // flags on the command line
	file    string              // --config
	process config.Push         // for what concerns this process and no cell
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
			if err := s.read(args, &c, &own); err != nil {
				return usage(err)
			}
			was, refused := s.look()
			if c.DryRun {
				return errors.Join(s.Explain(s.Stdout, s.record, was.Entries), usage(refused))
			}
			if refused != nil {
				return usage(refused)
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
	cmd.Flags().Lookup("create").DefValue = string(loader.CreateRecreate)
	for _, name := range sweep.OfOnePush() {
		cmd.Flags().Lookup(name).Hidden = true
	}
	cmd.Flags().SortFlags = false
	return cmd
}

// read takes everything that says what is to be done. What the environment says comes last: it may say how this process
// works, but to a cell only what neither plan nor command line says.
func (s *sweeper) read(args []string, c *config.Push, own *sweepFlags) error {
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
	name, text, err := s.text()
	if err != nil {
		return err
	}
	from := sweep.Options{Sources: s.sources(), Scale: s.scale, Target: s.target, Push: push, Only: s.only}
	work, err := sweep.ParsePlan(name, text, from)
	if err != nil {
		return err
	}
	if s.repeats > 0 {
		work.Repeats = s.repeats
	}
	if s.budget > 0 {
		work.Budget = s.budget
	}
	if s.record == "" {
		name := work.Name
		if work.Scale != "" {
			name += "-" + work.Scale
		}
		s.record = filepath.Join(s.process.State, "sweeps", name+".sweep.jsonl")
		s.byDefault = true
	}
	if err := s.apart(); err != nil {
		return err
	}
	s.Sweep, err = sweep.New(work, from)
	return err
}

// sources is where flags come from that neither plan nor command line has.
func (s *sweeper) sources() sweep.Sources {
	return sweep.Sources{Drivers: s.drivers, LookupEnv: s.LookupEnv, File: s.file}
}

// text is the plan's, and its name for errors.
func (s *sweeper) text() (name string, text []byte, err error) {
	switch {
	case s.flags.Changed("repeats") && s.repeats < 1:
		return "", nil, fmt.Errorf("--repeats %d: at least 1", s.repeats)
	case s.budget < 0:
		return "", nil, errors.New("--budget: a duration cannot be negative")
	case s.planFile != "" && s.preset != "":
		return "", nil, errors.New("--plan and --preset exclude each other")
	case s.preset != "":
		return sweep.Preset(s.preset)
	case s.planFile == "":
		return "", nil, errors.New("a plan is needed: --plan FILE, or --preset NAME of terapush list presets")
	}
	text, err = file.Read(s.planFile, file.MaxSettings)
	if err != nil {
		return "", nil, fmt.Errorf("--plan: %w", err)
	}
	return s.planFile, text, nil
}

// overrides are the flags on the command line that cells are given.
func (s *sweeper) overrides() (map[string][]string, error) {
	_, cells := sweep.Flags(s.drivers)
	push := map[string][]string{}
	var problems []error
	s.flags.Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains(sweep.OfOnePush(), f.Name):
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

// command is what goes on with the sweep, with one switch more if it has a name.
func (s *sweeper) command(more string) string {
	words := []string{"terapush sweep"}
	if shown, err := sweep.ShownTarget(s.target); err == nil {
		words = append(words, quote(shown))
	}
	for _, name := range slices.Sorted(maps.Keys(s.given)) {
		for _, value := range s.given[name] {
			if name == "set" {
				value = sweep.ShownSetting(value)
			}
			words = append(words, "--"+name+"="+quote(value))
		}
	}
	if _, given := s.given[more]; more != "" && !given {
		words = append(words, "--"+more)
	}
	return strings.Join(words, " ")
}

// run does the sweep, or goes on with it, and prints what there is at its end, whatever that was.
func (s *sweeper) run(ctx context.Context) error {
	if s.html != "" {
		if err := canWrite(s.html); err != nil {
			return usage(err)
		}
	}
	if s.byDefault {
		if err := os.MkdirAll(filepath.Dir(s.record), 0o700); err != nil {
			return &push.Error{Outcome: report.PreflightFailed, Err: fmt.Errorf("making the folder of the record: %w", err)}
		}
	}
	file, err := results.Open(s.record)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	if err = s.begin(file); err != nil {
		return errors.Join(err, file.Close())
	}
	stop, release := s.stopping(ctx)
	defer release()
	swept := s.sweepCells(stop, file)
	if err := file.Close(); err != nil {
		return errors.Join(swept, err)
	}
	r, err := results.Read(s.record)
	if err == nil && len(r.Entries) > 0 {
		err = s.show(r)
		if s.byDefault {
			fmt.Fprintf(s.terminal, "record: %s\n", s.record)
		}
	}
	if swept != nil {
		fmt.Fprintf(s.terminal, "to go on: %s\n", s.command(""))
		return errors.Join(s.outcome(swept, r), err)
	}
	failed := failures(r)
	if failed != nil {
		fmt.Fprintf(s.terminal, "to do what failed again: %s\n", s.command("retry-failed"))
	}
	if failed == nil && err == nil {
		return unmeasured(r)
	}
	return errors.Join(failed, err)
}

func (s *sweeper) sweepCells(stop stop, file *results.File) error {
	path, err := filepath.Abs(s.record)
	if err != nil {
		path = s.record
	}
	trials := s.trials(s.sources(), sweep.StateFor(s.process.State, "sweep", path), s.Targets(), s.process)
	trials.Clear(stop.hard) // what a killed process left
	err = sweep.Run(stop.hard, sweep.Job{
		Plan: s.Plan, Cases: s.Cases, Digest: results.Digest(s.Parts, s.Plan.Limit), Done: file.Record().Entries, Keep: file.Append,
		RetryFailed: s.retryFailed,
		Push: func(ctx context.Context, c sweep.Case, drain <-chan struct{}, begun func(func() bool)) (*report.Report, error) {
			return trials.Push(ctx, c.Setup, drain, begun)
		},
		Drain: stop.drain, End: s.tell,
	})
	s.leave(trials)
	return err
}

// outcome says how a sweep ended that did not come to its end.
func (s *sweeper) outcome(err error, r results.Record) error {
	reached := slices.ContainsFunc(r.Entries, func(e results.Entry) bool {
		return e.Status == results.Measured || e.Status == results.Limited
	})
	switch {
	case errors.Is(err, sweep.ErrStopped):
		return &push.Error{Outcome: report.Interrupted, Err: err}
	case errors.Is(err, sweep.ErrUnreachable) && !reached:
		return &push.Error{Outcome: report.PreflightFailed, Err: errors.New(err.Error())}
	default:
		return &push.Error{Outcome: report.Failed, Err: errors.New(err.Error())} // whatever the outcome of one push was
	}
}

// failures is the error of a sweep that came to its end, in which pushes failed.
func failures(r results.Record) error {
	failed, outcome := 0, report.Failed
	for _, e := range r.Entries {
		if e.Status != results.Failed || e.WarmUp {
			continue
		}
		failed++
		if e.Report != nil && e.Report.Result.Outcome == report.VerificationFailed {
			outcome = report.VerificationFailed
		}
	}
	if failed == 0 {
		return nil
	}
	pushes := slices.DeleteFunc(slices.Clone(r.Entries), func(e results.Entry) bool { return e.WarmUp })
	return &push.Error{Outcome: outcome, Err: fmt.Errorf("%d of %s failed", failed, english.Plural(len(pushes), "push", "pushes"))}
}

// unmeasured is the error of a sweep that came to its end, in which no row was measured: its time was up before.
func unmeasured(r results.Record) error {
	why := "the record has no pushes"
	for _, e := range r.Entries {
		if e.Report != nil && e.Report.Result.Rows > 0 && !e.WarmUp {
			return nil
		}
		why = cmp.Or(e.Error, string(e.Status))
	}
	return &push.Error{Outcome: report.Failed, Err: fmt.Errorf("nothing was measured: %s", why)}
}

// tell prints a line about a push that ended.
func (s *sweeper) tell(p sweep.Progress, e results.Entry) {
	if s.process.Progress != string(live.None) {
		fmt.Fprintln(s.terminal, printable(s.Line(p, e)))
	}
}

// show writes the page, and prints the tables: what reads them may have ended, and with it this process.
func (s *sweeper) show(r results.Record) (err error) {
	tables := results.Tables([]results.Record{r})
	if s.html != "" {
		err = writePage(s.html, r)
	}
	format := results.Text
	if s.process.JSON {
		format = results.JSON
	}
	return errors.Join(err, format.Write(s.Stdout, tables))
}
