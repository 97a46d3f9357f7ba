package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
)

const tuneHelp = `Find the smallest number of workers and batch size that reach nearly the best rate, and print the command to push with.
Where the noise is too large to choose, it says so and prints no command.

A trial is a push that lasts for --trial, or one of --rows or --bytes. The first one is a warm-up and does not count.
tune is a sweep that chooses its cases by what it has measured. It begins with the defaults of push, and doubles workers
and batch size until two values lie beyond the knee, which is the first value within --tolerance of the best. Then it
halves them while the rate stays that close. Settings that decide the choice are measured three times, in mixed order. At
the end only six trials in turns decide between the choice and its rival, the best or second best. --workers, --batch-bytes
or --batch-rows fix one of the two. Rows per transaction and commit groups are not varied.

Some defaults differ from push's: --verify ack; --distinct-bytes 64MiB, so that filling buffers does not take longer than
the trial; and --create recreate, which works for tables that terapush created. The last trial's rows stay in the table, so
the printed command has --create recreate as well.

Doubling stops at a setting that the server refuses or that this machine lacks the memory for, or where a trial is too
short for one batch per worker: to search further, use a longer --trial. The search ends when the server is full or gone.
When --budget is used up, the running trial is the last one, and there may be better settings.

Exit codes: 0 ok, 1 ended early, 2 usage, 4 a verification failed, 5 nothing could be reached, 129, 130 or 143 stopped by a
signal.`

type tuner struct {
	trialsCommand
	sweep.Bounds
	near   config.Share
	most   config.Bytes
	record string
	pushed map[string][]string // flags of push on the command line
	search *sweep.Search
}

func (t *tuner) addFlags(f *pflag.FlagSet) {
	t.near = 0.05
	f.Var(config.Duration(&t.Trial, 5*time.Second), "trial", "length of a trial, unless --rows, --bytes or --duration is given")
	f.Var(config.Duration(&t.Budget, 10*time.Minute), "budget", "time for all trials, after which no trial begins")
	f.Var(&t.near, "tolerance", "share of the best rate to give up for a smaller setting")
	f.Var(config.Count(&t.MaxWorkers, 256), "max-workers", "most workers to try")
	f.Var(&t.most, "max-batch-bytes", "largest batch to try (default: what the method takes, at most 256MiB)")
	f.StringVar(&t.record, "record", "", "new file for the results of all trials, for terapush report")
	t.pushFlags(f, "print the start and the bounds of the search, and connect to nothing", "print the result as one JSON object",
		"trial", sweep.Defaults())
	f.Lookup("report").Hidden, f.Lookup("fail-below").Hidden = true, true
}

func (a *app) tune() *cobra.Command {
	t := &tuner{trialsCommand: trialsCommand{app: a}}
	cmd := &cobra.Command{
		Use:   "tune TARGET [flags]",
		Short: "Find the workers and batch size to push with",
		Long:  tuneHelp,
		Example: `  terapush tune postgres://user@host/db --method copy
  terapush tune mysql://user@host/db --trial 20s --budget 1h --payload-bytes 200
  terapush tune databend://user@host/db --workers 8`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.read(args[0]); err != nil {
				return usage(err)
			}
			return t.run(cmd.Context())
		},
	}
	t.addFlags(cmd.Flags())
	return cmd
}

func (t *tuner) read(target string) (err error) {
	if t.pushed, err = t.trialsCommand.read(target, ""); err != nil {
		return err
	}
	if t.given["report"] != nil {
		return errors.New("--report is for push and sweep: give --record, and then terapush report makes the page")
	}
	if t.given["fail-below"] != nil {
		return errors.New("--fail-below is for push and sweep: a search tries slow settings on purpose")
	}
	t.Near, t.MaxBatchBytes, t.TrialGiven = float64(t.near), int64(t.most), t.flags.Changed("trial")
	push := maps.Clone(t.pushed)
	push["target"] = []string{target}
	t.search, err = sweep.NewSearch(push, t.sources(), t.Bounds)
	return err
}

func (t *tuner) run(ctx context.Context) error {
	if t.process.DryRun {
		return t.search.Explain(t.Stdout)
	}
	var file *results.File
	if t.record != "" {
		was, err := results.Look(t.record)
		switch {
		case err != nil:
			return usage(fmt.Errorf("--record: %w", err))
		case was.Head.Schema != "":
			return usage(fmt.Errorf("%s holds a record already: give a new file", t.record))
		}
		if file, err = results.Open(t.record); err != nil {
			return &push.Error{Outcome: report.PreflightFailed, Err: err}
		}
	}
	stop, release := t.stopping(ctx)
	defer release()
	found, err := t.find(stop, file)
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	tried := len(found.Trials) > 0
	// A search that fails before its first trial fails as that push did.
	early := tried && push.OutcomeOf(err) != report.VerificationFailed ||
		errors.Is(err, sweep.ErrStopped) || errors.Is(err, sweep.ErrUnreachable)
	if err != nil && early {
		err = endedEarly(err, tried)
	}
	if tried {
		err = errors.Join(err, t.print(found, t.process.JSON))
	}
	return err
}

// find searches by trials in a folder of their own, named after the table: two searches of a table would disturb each
// other. file may be nil.
func (t *tuner) find(stop stop, file *results.File) (sweep.Found, error) {
	shown, err := sweep.ShownTarget(t.target)
	if err != nil {
		return sweep.Found{}, err
	}
	trials := t.trials(sweep.StateFor(t.process.State, "tune", shown+" "+t.search.Table()))
	err = trials.Lock()
	if errors.Is(err, sweep.ErrTaken) {
		err = fmt.Errorf("%w, or give another --table", err)
	}
	if err != nil {
		return sweep.Found{}, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}

	job := t.job(trials, stop.drain)
	if file != nil {
		job.Keep = t.keepIn(file)
	}
	found, err := t.search.Find(stop.hard, job, t.tell)
	t.closeTrials(stop.hard, trials, nil) // whatever is left, the next search frees: it has the same target
	if found.Decided {
		found.Command = t.command(shown, found.Use)
	}
	return found, err
}

// keepIn returns what writes trials to the record. The first of them begins it.
func (t *tuner) keepIn(file *results.File) func(results.Entry) error {
	return func(e results.Entry) error {
		if file.Record().Head.Schema != "" {
			return file.Append(e)
		}
		head := t.search.Head()
		head.Version, head.Machine = buildVersion().Version, host.ThisMachine()
		return errors.Join(file.Begin(head), file.Append(e))
	}
}

// command returns the push with the flags that were found, without those that only the trials needed.
func (t *tuner) command(shown string, use map[string][]string) string {
	push := maps.Clone(t.pushed)
	for _, name := range []string{"rows", "bytes", "duration", "warm-up", "workers", "batch-bytes", "batch-rows"} {
		delete(push, name)
	}
	maps.Copy(push, use)
	for _, name := range []string{"state-dir", "config"} {
		if f := t.flags.Lookup(name); f.Changed {
			push[name] = valuesOf(f)
		}
	}
	first := []string{"method", "workers", "batch-bytes", "batch-rows"}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(push)), func(name string) bool { return slices.Contains(first, name) })
	words := append([]string{"terapush push", units.ShellWord(shown)}, arguments("--%s %s", push, first)...)
	return strings.Join(append(words, arguments("--%s %s", push, rest)...), " ")
}
