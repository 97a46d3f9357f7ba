package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/verify"
)

const verifyHelp = `Verify the rows of an earlier run again. The run's journal has all that is needed: seed, keys and table. A run of several
processes is verified as a whole, with --run-id NAME and the flags of the push.

Exit codes: 0 ok, 1 failed, 2 usage, 4 verification failed, ` + moreCodes

const forgetHelp = `Remove the claims and the journal of a run, which cannot be resumed or verified afterwards. The rows stay in the table, and
the table is free for another run. A process that still works on the run, on another machine, stores nothing more.

TARGET defaults to the run's own. If the state folder does not have the run, forget removes only its claims, and needs
TARGET and --table. With --older-than it removes the claims of all runs that were proven at least that long ago; claims of
unproven runs stay.

Exit codes: 0 ok, 1 failed, 2 usage, ` + moreCodes

const prepareHelp = `Create the table of a run that several processes will push, with --create recreate or truncate. Without those the first shard
creates the table, and prepare is not needed. Give it the flags of the shards, except --shard. A second prepare of the same
run changes nothing.

Exit codes: 0 ok, 1 failed, 2 usage, ` + moreCodes

const moreCodes = "5 preflight failed, 9 another process has the run or has forgotten it,\n129, 130 or 143 stopped by a signal."

func (a *app) verify() *cobra.Command {
	shown := []string{"verify", "verify-rows", "verify-workers", "retries", "retry-for", "progress", "json", "run-id"}
	var c config.Push
	verify := func(ctx context.Context, j push.Job) (*report.Report, error) {
		w := watcher{output: j.Config.Output, terminal: a.terminal}
		j.Watch = w.watch
		return push.Verify(ctx, j)
	}
	cmd := a.again(&c, "verify", "Verify the rows of an earlier run again", verifyHelp, shown, verify)
	cmd.Flags().Lookup("verify").Usage = "how to scan the table: `count|full`; full also compares rows byte for byte"
	return cmd
}

// prepare has the flags of push, which decide about the run's rows and batches.
func (a *app) prepare() *cobra.Command {
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "prepare TARGET --run-id NAME",
		Short: "Create the table of a run that several processes will push",
		Long:  prepareHelp,
		Args:  oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			if err := a.complete(cmd.Flags(), &c, file); err != nil {
				return usage(err)
			}
			if err := c.ReadSpec(); err != nil {
				return usage(err)
			}
			if c.RunID == "" || !c.Shard.Whole() || c.DryRun {
				return usage(errors.New("prepare needs --run-id NAME, and neither --shard nor --dry-run"))
			}
			stop, release := a.stopping(cmd.Context())
			defer release()
			one := func(c *config.Push) error {
				return push.Prepare(stop.hard, push.Job{
					Config: *c, Drivers: a.drivers, Drain: stop.drain, Log: a.log(), StateStore: a.stateStore(c.Shared, &c.Connect),
				})
			}
			if c.Tables != nil {
				return a.prepareTables(&c, one)
			}
			return one(&c)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	ofAllShards(cmd.Flags())
	unused := []string{"duration", "warm-up", "workers", "max-rate", "verify", "verify-rows", "verify-workers", "batch-timeout", "resume", "start-at"}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { // they are taken, since the shards' flags are
		f.Hidden = f.Hidden || config.GroupOf(f) == config.GroupOutput || slices.Contains(unused, f.Name)
	})
	addConfig(cmd.Flags(), &file)
	return cmd
}

func (a *app) forget() *cobra.Command {
	var c config.Push
	var older elapsed
	shown := []string{"table", "run-id"}
	forget := func(ctx context.Context, j push.Job) (*report.Report, error) { return nil, push.Forget(ctx, j) }
	cmd := a.again(&c, "forget", "Remove the claims and the journal of a run", forgetHelp, shown, forget)
	cmd.Use = "forget [TARGET] --run ID | --run-id NAME | --older-than AGE"
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return oneTarget(cmd, args)
	}
	one := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if older == 0 {
			return one(cmd, args)
		}
		if err := a.complete(cmd.Flags(), &c, ""); err != nil {
			return usage(err)
		}
		if len(args) == 0 || c.Resume != "" || c.RunID != "" {
			return usage(errors.New("forget --older-than needs TARGET, and neither --run nor --run-id"))
		}
		c.Target = args[0]
		stop, release := a.stopping(cmd.Context())
		defer release()
		return push.ForgetOlder(stop.hard, push.Job{Config: c, Drivers: a.drivers, Drain: stop.drain, Log: a.log()}, time.Duration(older))
	}
	cmd.Flags().Var(&older, "older-than", "forget all runs that were proven at least so long ago: 7d, 12h")
	return cmd
}

// elapsed is a time above 0, which may be in days.
type elapsed time.Duration

// Set implements pflag.Value.
func (e *elapsed) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n := 0
		n, err = strconv.Atoi(days)
		d = time.Duration(min(n, 100*365)) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return errors.New("write it as 7d or 12h")
	}
	*e = elapsed(d)
	return nil
}

// String implements pflag.Value.
func (e *elapsed) String() string {
	if *e == 0 {
		return ""
	}
	return time.Duration(*e).String()
}

// Type implements pflag.Value.
func (*elapsed) Type() string { return "AGE" }

// addressOf returns the target of a run that was named without it, from the record of one of its processes in a state
// folder.
func addressOf(run, state string) (target string, err error) {
	records, err := runlog.Records(state)
	for _, r := range records {
		if r.Run == run || r.Run == config.ChildOf(run, 0) {
			return r.Target, nil
		}
	}
	missing := fmt.Errorf("%w %q in %s: give the TARGET that it was pushed into", runlog.ErrNoRun, run, state)
	return "", errors.Join(missing, err)
}

// again makes a command on an earlier run, whose record has everything about it. shown are the flags in its help,
// in addition to those that find the run and connect.
func (a *app) again(
	c *config.Push, name, short, long string, shown []string, do func(context.Context, push.Job) (*report.Report, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name + " TARGET --run ID | --run-id NAME",
		Short: short,
		Long:  long,
		Args:  oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.Target = args[0]
			}
			if mode := verify.Mode(c.Verify); name == "verify" && mode.Scans() == 0 { // on the command line: a variable or record is push's
				return usage(fmt.Errorf("verify --verify %s: an earlier run is verified by count or full", mode))
			}
			typed := changed(cmd.Flags())
			if err := a.complete(cmd.Flags(), c, ""); err != nil {
				return usage(err)
			}
			explicit := changed(cmd.Flags())
			c.Resume, c.RunID = cmp.Or(c.Resume, c.RunID), ""
			switch {
			case c.DryRun:
				return usage(fmt.Errorf("%s has no --dry-run", name))
			case !c.Shard.Whole():
				return usage(fmt.Errorf("%s works on the whole run: leave out --shard", name))
			case c.Resume == "":
				return usage(errors.New("--run is needed: the id or name of a run (see terapush runs)"))
			}
			err := a.readRecord(cmd.Flags(), c, typed)
			if name == "forget" {
				err = errors.Join(a.refusePart(c), err)
			}
			named := config.IsRunName(c.Resume)
			if err != nil && (c.Resume == "" || !errors.Is(err, runlog.ErrNoRun) || !named && name != "forget") {
				return usage(err)
			}
			if c.Own == nil && c.Tables == nil { // no process has left a record here
				if err := c.ReadSpec(); err != nil {
					return usage(err)
				}
			}
			if c.Target == "" {
				if c.Target, err = addressOf(c.Resume, c.State); err != nil {
					return usage(err)
				}
			}
			if named && name == "verify" {
				c.Resume, c.RunID = "", c.Resume
			}
			stop, release := a.stopping(cmd.Context())
			defer release()
			one := func(c *config.Push) (*report.Report, error) {
				return do(stop.hard, push.Job{
					Config: *c, Drivers: a.drivers, Explicit: explicit, Drain: stop.drain, Log: a.log(),
					StateStore: a.stateStore(c.Shared, &c.Connect),
				})
			}
			if c.Tables != nil {
				return a.eachAgain(c, name == "forget", one)
			}
			r, err := one(c)
			if r == nil || push.OutcomeOf(err) == push.Usage {
				return err
			}
			return errors.Join(err, a.printRun(r, c.JSON))
		},
	}
	// All flags of push are declared, since those of the run are restored.
	c.Flags(cmd.Flags(), a.drivers)
	ofAllShards(cmd.Flags())
	shown = append(shown, "staging", "set", "state-dir", "password-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name")
	showOnly(cmd.Flags(), shown...)
	cmd.Flags().StringVar(&c.Resume, "run", "", "the run: its id, the beginning of its id, its name, or last, the newest of TARGET")
	return cmd
}

// ofAllShards makes the command one on the whole run, whatever TERAPUSH_SHARD says.
func ofAllShards(f *pflag.FlagSet) {
	if err := f.Set("shard", "0/1"); err != nil {
		panic(err)
	}
	f.Lookup("shard").Hidden = true
}
