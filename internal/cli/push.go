package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

const pushHelp = `Fill a table with rows that terapush makes, as fast as possible, and prove that every row arrived exactly once. To send
files of your own, use terapush load.

TARGET is the usual URL of a database, such as postgres://user@host:5432/db; several hosts, separated by commas, share the
connections. Schemes:
  %s
s3 writes objects and fills no table; discard sends nothing and measures this machine alone. Others can see a password in
a URL: use TERAPUSH_PASSWORD or --password-file. Every flag is also a variable: TERAPUSH_BATCH_ROWS is --batch-rows.

Exit codes: 0 ok, 1 failed and can be resumed, 2 usage, 3 finished with rejected rows, 4 verification failed,
5 preflight failed: no row was sent, 6 slower than --fail-below, 7 the outcome of some batches is unknown,
9 another process has taken the run over, 129, 130 or 143 stopped by a signal and saved.`

func (a *app) push() *cobra.Command {
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "push TARGET [flags]",
		Short: "Fill a table as fast as possible, and prove that every row arrived exactly once",
		Long:  fmt.Sprintf(pushHelp, strings.Join(a.drivers.Schemes(), ", ")),
		Example: `  terapush push postgres://user@host/db --bytes 1TiB --workers 32
  terapush push mysql://user@host/db --like orders --table orders_copy --rows 100M --verify full
  terapush push postgres://user@host/db --resume last`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			explicit, err := a.restore(cmd.Context(), cmd.Flags(), &c, file)
			switch {
			case errors.As(err, new(*push.Error)): // the table of --like could not be read
				return err
			case err != nil:
				return usage(err)
			}
			switch {
			case c.Tables != nil && c.DryRun:
				return usage(a.dryRunTables(&c))
			case c.Tables != nil:
				return a.runTables(cmd, &c, file, explicit)
			case c.DryRun:
				return usage(a.dryRun(&c))
			}
			return a.runReported(cmd, &c, file, explicit)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	addConfig(cmd.Flags(), &file)
	return cmd
}

// runReported is runPush with all that is made of the report.
func (a *app) runReported(cmd *cobra.Command, c *config.Push, file string, explicit func(string) bool) error {
	if err := errors.Join(refuseOver("--report", c.Report, input{"--config", file}), canWrite(c.Report)); err != nil {
		return usage(err)
	}
	stop, release := a.stopping(cmd.Context())
	defer release()
	write, err := a.reportWriter(stop.hard, c.ReportTo, &c.Connect)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	r, err := a.runPush(stop, *c, cmd.Flags(), explicit)
	if line := next(cmd.Name(), r, foundBy(cmd.Flags())); line != "" {
		fmt.Fprintln(a.terminal, line)
	}
	if r != nil && c.Report != "" {
		err = errors.Join(err, writePage(c.Report, results.Tables, results.Of(*r)))
	}
	err = errors.Join(err, write(context.WithoutCancel(stop.hard), r, err))
	switch {
	case err != nil || c.FailBelow == 0 || r.Result.Attempts == 0: // a run that had nothing left to send was not slow
	case r.Unmeasured():
		return tooSlowError(fmt.Sprintf("nothing to compare with --fail-below: the push ended within --warm-up %s", c.WarmUp))
	default:
		return tooSlow(r.Result.BytesPerSecond, c)
	}
	return err
}

// tooSlow returns an error if a rate of payload is below --fail-below.
func tooSlow(rate float64, c *config.Push) error {
	if rate >= float64(c.FailBelow) {
		return nil
	}
	return tooSlowError(fmt.Sprintf("%s/s of payload is below --fail-below %s", units.Bytes(int64(rate)), &c.FailBelow))
}

// addConfig adds the flag of a file with flags.
func addConfig(f *pflag.FlagSet, file *string) {
	config.Group(f, config.GroupGlobal, func(f *pflag.FlagSet) {
		f.StringVar(file, "config", "", "YAML file with the names of flags as keys")
	})
}

// runPush pushes with progress and metrics, and prints the report.
func (a *app) runPush(s stop, c config.Push, f *pflag.FlagSet, explicit func(string) bool) (*report.Report, error) {
	j := push.Job{Config: c, Given: config.Given(f), Explicit: explicit}
	return a.execute(s, j, func(r *report.Report) error { return a.printRun(r, c.JSON) })
}

// execute is runPush for a job that says what is pushed, with another way to print the report.
func (a *app) execute(s stop, j push.Job, print func(*report.Report) error) (*report.Report, error) {
	c := &j.Config
	w, err := newWatcher(s.hard, c.Output, a.terminal)
	if err != nil {
		return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	defer w.close()

	j.Drivers, j.Drain, j.Log, j.Watch, j.Ceilings = a.drivers, s.drain, a.log(), w.watch, c.State
	j.StateStore, j.Buckets = a.stateStore(c.Shared, &c.Connect), files.Buckets{Open: a.openStore(&c.Connect)}
	r, err := push.Run(s.hard, j)
	a.folding.Close()
	outcome := push.OutcomeOf(err)
	if outcome == push.Usage {
		return nil, err
	}
	printed := print(r)
	w.linger(s)
	return r, errors.Join(err, printed)
}

// print prints a result.
func (a *app) print(r interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}, asJSON bool,
) error {
	if asJSON {
		return r.WriteJSON(a.Stdout)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		return err
	}
	_, err := a.Stdout.Write(a.colored(text.Bytes()))
	return err
}

// printRun prints the report of a run that has just ended. Its error is left to stderr, and so are its warnings if that
// is the same terminal or file, so that nobody reads them twice.
func (a *app) printRun(r *report.Report, asJSON bool) error {
	if !asJSON {
		shown := *r
		shown.Result.Error = ""
		if n := len(r.Warnings); n > 0 && a.together && a.log().Enabled(context.Background(), slog.LevelWarn) {
			shown.Warnings = []string{english.Plural(n, "line", "") + " of the log above"}
		}
		r = &shown
	}
	return a.print(r, asJSON)
}
