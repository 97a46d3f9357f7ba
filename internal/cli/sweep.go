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
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

const sweepHelp = `Push the same rows in many ways, one after the other, and print a table of the results.

A plan is a YAML file with axes: method, batch-rows, workers, any other flag of push, set.NAME, param.NAME, target. Every
combination of their values is a case, and every case is a verified push. A value may bring flags of its own, exclude and
include change the list of cases, and thresholds say what every case has to reach (docs/SWEEPS.md). terapush has plans of
its own, the presets: published experiments at full size and in smaller scales (terapush list presets).

TARGET replaces the target of the plan. Flags of push apply to all cases and override the plan. A flag that is an axis of
the plan is an error. A flag that only some methods have, such as --staging, applies to the cases with such a method, and
is an error if there are none. Other flags come from the plan, the environment (TERAPUSH_SEED) and --config, in this order.
By default every case gets a new table (--create recreate). terapush drops no table that it did not create.

Every completed push is on disk (--record) before the next one begins. After a crash, a signal or a failure, the same
command continues the sweep. A failed case is recorded, and the sweep goes on; --retry-failed repeats failed pushes. The
sweep ends when the server's disk is full, or when the target cannot be reached three times in a row.

Exit codes: 0 ok, 1 ended early, some pushes failed or nothing was measured, 2 usage or an impossible case,
4 a verification failed, 5 nothing could be reached, 6 a case misses --fail-below or a threshold of the plan,
129, 130 or 143 stopped by a signal.`

type sweeper struct {
	trialsCommand
	*sweep.Sweep
	planFile, preset, scale string
	record                  string
	byDefault               bool // no --record: it is in the state folder
	restart, retryFailed    bool
	repeats                 string
	precision               config.Share
	budget                  time.Duration
	only                    string
}

func (s *sweeper) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.planFile, "plan", "", "YAML file with the plan")
	f.StringVar(&s.preset, "preset", "", "a plan that comes with terapush (see terapush list presets)")
	f.StringVar(&s.scale, "scale", "", "size of a plan with scales: cloud is the article's, laptop takes minutes, ci less than two (default cloud)")
	f.StringVar(&s.record, "record", "", "file for the results (default: sweeps/NAME-SCALE.sweep.jsonl in the state folder)")
	f.BoolVar(&s.restart, "restart", false, "discard the record and start over")
	f.BoolVar(&s.retryFailed, "retry-failed", false, "repeat the failed pushes of the record")
	f.StringVar(&s.repeats, "repeats", "",
		"pushes of every case, or auto: until the median is known to --precision (default: the plan's)")
	f.Var(&s.precision, "precision",
		"with --repeats auto, how far a 95 % interval may reach from its median (default 5%)")
	f.Var(config.Duration(&s.budget, 0), "budget", "time after which no push begins (default: the plan's)")
	f.StringVar(&s.only, "only", "", "part of the plan to run")
	s.pushFlags(f, "print all cases and an estimate, and connect to nothing", "print the tables as one JSON object", "push",
		map[string]string{"create": string(loader.CreateRecreate)})
}

func (a *app) sweep() *cobra.Command {
	s := &sweeper{trialsCommand: trialsCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "sweep [TARGET] --plan FILE | --preset NAME [flags]",
		Short: "Push in many ways and compare: methods, batch sizes, workers",
		Long:  sweepHelp,
		Example: `  terapush sweep postgres://user@host/db --preset yugabyte-rows-per-transaction --scale laptop
  terapush sweep mysql://user@host/db --plan mine.yaml --repeats 3 --report mine.html
  terapush sweep --plan mine.yaml --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.read(args); err != nil {
				return usage(err)
			}
			was, refused := s.look()
			if s.process.DryRun {
				return errors.Join(s.Explain(s.Stdout, s.record, was.Entries), usage(refused))
			}
			if refused != nil {
				return usage(refused)
			}
			return s.run(cmd.Context())
		},
	}
	s.addFlags(cmd.Flags())
	return cmd
}

// read makes the sweep from flags and plan.
func (s *sweeper) read(args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("sweep takes at most one TARGET: %d arguments given", len(args))
	}
	push, err := s.trialsCommand.read(strings.Join(args, ""), "; the same sweep command continues a sweep")
	if err != nil {
		return err
	}
	delete(s.given, "restart")
	name, text, err := s.plan()
	if err != nil {
		return err
	}
	from := sweep.Options{Sources: s.sources(), Scale: s.scale, Target: s.target, Push: push, Only: s.only}
	plan, err := sweep.ParsePlan(name, text, from)
	if err != nil {
		return err
	}
	if err := plan.SetRepeats(s.repeats, float64(s.precision)); err != nil {
		return fmt.Errorf("--%w", err)
	}
	plan.Budget = cmp.Or(s.budget, plan.Budget)
	if s.given["fail-below"] != nil { // one in the configuration file is for pushes
		plan.FailBelow(float64(s.process.FailBelow))
	}
	if s.byDefault = s.record == ""; s.byDefault {
		name := plan.Name
		if plan.Scale != "" {
			name += "-" + plan.Scale
		}
		s.record = filepath.Join(s.process.State, "sweeps", name+".sweep.jsonl")
	}
	planFile, config := input{"--plan", s.planFile}, input{"--config", s.file}
	err = errors.Join(refuseOver("--report", s.process.Report, input{"the record", s.record}, planFile, config),
		refuseOver("--record", s.record, planFile, config))
	if err != nil {
		return err
	}
	s.Sweep, err = sweep.New(plan, from)
	return err
}

// plan returns the plan's text, and its name for errors.
func (s *sweeper) plan() (name string, text []byte, err error) {
	switch {
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

// tellCommand prints the command that continues the sweep.
func (s *sweeper) tellCommand(what, more string) {
	words := []string{"terapush sweep"}
	if shown, err := sweep.ShownTarget(s.target); err == nil {
		words = append(words, units.ShellWord(shown))
	}
	words = append(words, arguments("--%s=%s", s.given, slices.Sorted(maps.Keys(s.given)))...)
	if _, given := s.given[more]; more != "" && !given {
		words = append(words, "--"+more)
	}
	fmt.Fprintf(s.terminal, "%s: %s\n", what, strings.Join(words, " "))
}

// run begins or continues the sweep, and prints the results however it ends.
func (s *sweeper) run(ctx context.Context) error {
	if err := canWrite(s.process.Report); err != nil {
		return usage(err)
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
	swept := s.sweepCases(stop, file)
	if err := file.Close(); err != nil {
		return errors.Join(swept, err)
	}
	r, err := results.Read(s.record)
	if err == nil && len(r.Entries) > 0 {
		err = s.show(r)
		if s.byDefault {
			s.note("record: %s\n", s.record)
		}
	}
	if swept != nil {
		s.tellCommand("to continue", "")
		reached := slices.ContainsFunc(r.Entries, func(e results.Entry) bool {
			return e.Status == results.Measured || e.Status == results.Limited
		})
		return errors.Join(endedEarly(swept, reached), err)
	}
	if failed := failures(r); failed != nil {
		s.tellCommand("to repeat the failed pushes", "retry-failed")
		return errors.Join(failed, err)
	}
	if err = cmp.Or(err, unmeasured(r)); err != nil {
		return err
	}
	if missed := results.Missed(results.Tables([]results.Record{r})); len(missed) > 0 {
		return tooSlowError(strings.Join(missed, "; "))
	}
	return nil
}

// speedTime is how long the machine's speed is measured: long beside a time slice of the cores, short beside a push
// that is worth measuring.
var speedTime = 50 * time.Millisecond

func (s *sweeper) sweepCases(stop stop, file *results.File) error {
	path, err := filepath.Abs(s.record)
	if err != nil {
		path = s.record
	}
	trials := s.trials(sweep.StateFor(s.process.State, "sweep", path))

	job := s.job(trials, stop.drain)
	job.Plan, job.Cases, job.Digest = s.Plan, s.Cases, results.Digest(s.Parts, s.Plan.Limit)
	job.Done, job.RetryFailed, job.Keep = file.Record().Entries, s.retryFailed, file.Append
	job.End = func(p sweep.Progress, e results.Entry) { s.tell(s.Line(p, e)) }
	job.Speed = func() float64 { return host.MeasureSpeed(speedTime) }
	err = sweep.Run(stop.hard, job)
	s.closeTrials(stop.hard, trials, s.Cases)
	return err
}

// failures returns the error of a complete sweep in which pushes failed.
func failures(r results.Record) error {
	failed, all, outcome := 0, 0, report.Failed
	for _, e := range r.Entries {
		if e.WarmUp {
			continue
		}
		all++
		if e.Status != results.Failed {
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
	return &push.Error{Outcome: outcome, Err: fmt.Errorf("%d of %s failed", failed, english.Plural(all, "push", "pushes"))}
}

// unmeasured returns the error of a complete sweep that measured no row, since its time was up before.
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

// show writes the page before it prints the tables, since the reader of stdout may have gone.
func (s *sweeper) show(r results.Record) (err error) {
	if s.process.Report != "" {
		err = writePage(s.process.Report, results.Tables, r)
	}
	tables := results.Tables([]results.Record{r})
	if s.process.JSON {
		return errors.Join(err, results.JSON.Write(s.Stdout, tables))
	}
	return errors.Join(err, results.WriteText(s.Stdout, tables, s.columns))
}

// look reads the record without locking it, and returns an error if the sweep cannot continue it.
func (s *sweeper) look() (results.Record, error) {
	was, err := results.Look(s.record)
	if err != nil {
		return results.Record{}, fmt.Errorf("--record: %w", err)
	}
	if s.restart {
		return results.Record{}, nil
	}
	if was.Head.Schema == "" {
		return was, nil
	}
	if d := was.Head.Difference(s.head()); d != "" {
		return results.Record{}, fmt.Errorf("%s holds another sweep: %s; give another --record, or --restart to start over", s.record, d)
	}
	return was, nil
}

func (s *sweeper) head() results.Head {
	return results.Head{
		Schema: results.Schema, Name: s.Plan.Name, Title: s.Plan.Title, Scale: s.Plan.Scale, Digest: results.Digest(s.Parts, s.Plan.Limit),
		Started: time.Now(), Version: buildVersion().Version, Machine: host.ThisMachine(), Repeats: s.Plan.Repeats,
		Precision: s.Plan.Precision,
		Limit:     s.Plan.Limit.Seconds(), Parts: s.Parts,
	}
}

// begin writes the head of a new record, or continues one.
func (s *sweeper) begin(file *results.File) error {
	if s.restart {
		if err := file.Reset(); err != nil {
			return err
		}
	}
	warnings, err := sweep.Begin(file, s.head())
	if err != nil {
		return err
	}
	if n := len(file.Record().Entries); n > 0 {
		s.note("continuing %s, which has %s\n", s.record, english.Plural(n, "push", "pushes"))
	}
	for _, text := range warnings {
		s.log().Warn(text)
	}
	return nil
}
