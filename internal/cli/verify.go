package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/runlog"
)

func (a *app) verify() *cobra.Command {
	shown := []string{"verify", "verify-rows", "verify-workers", "retries", "retry-for", "progress", "json", "run-id"}
	return a.again("verify", "Verify the rows of an earlier run again", shown, func(ctx context.Context, j push.Job) error {
		w := watcher{config: j.Config, terminal: a.terminal}
		j.Watch = w.watch
		r, err := push.Verify(ctx, j)
		if push.OutcomeOf(err) == push.Usage {
			return err
		}
		return errors.Join(err, a.print(r, j.Config.JSON))
	})
}

// prepare has the flags of push, which decide about the run's rows and batches.
func (a *app) prepare() *cobra.Command {
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "prepare TARGET --run-id NAME",
		Short: "Create the table of a run that several processes will push",
		Long: `Create the table of a run that several processes will push, with --create recreate or truncate. Without those the first shard
creates the table, and prepare is not needed. Give it the flags of the shards, except --shard. A second prepare of the same
run changes nothing.`,
		Args: exactly(1, "prepare takes one TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			if err := a.complete(cmd.Flags(), &c, file); err != nil {
				return usage(err)
			}
			if c.RunID == "" || !c.Shard.Whole() {
				return usage(errors.New("--run-id is needed, the name of the run, and no --shard"))
			}
			stop, release := a.stopping(cmd.Context())
			defer release()
			return push.Prepare(stop.hard, push.Job{Config: c, Drivers: a.drivers, Drain: stop.drain, Log: a.log(), Files: a.shared(&c)})
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	ofAllShards(cmd.Flags())
	addConfig(cmd.Flags(), &file)
	return cmd
}

func (a *app) forget() *cobra.Command {
	return a.again("forget", "Remove the claims and the journal of a run", []string{"table"}, push.Forget)
}

// again makes a command on an earlier run, whose record has everything about it. shown are the flags in its help,
// in addition to those that find the run and connect.
func (a *app) again(name, short string, shown []string, do func(context.Context, push.Job) error) *cobra.Command {
	var c config.Push
	cmd := &cobra.Command{
		Use:   name + " TARGET --run ID",
		Short: short,
		Args:  exactly(1, name+" takes one TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			explicit, err := a.restore(cmd.Flags(), &c, "")
			if err != nil && (name != "forget" || !errors.Is(err, runlog.ErrNoRun)) {
				return usage(err)
			}
			switch {
			case !c.Shard.Whole():
				return usage(fmt.Errorf("%s is of the whole run: leave out --shard", name))
			case c.Resume == "" && (c.RunID == "" || name != "verify"):
				return usage(errors.New("--run is needed: the id of the run"))
			case c.Resume != "": // and not the name in the environment
				c.RunID = ""
			}
			stop, release := a.stopping(cmd.Context())
			defer release()
			return do(stop.hard, push.Job{
				Config: c, Drivers: a.drivers, Explicit: explicit, Drain: stop.drain, Log: a.log(), Files: a.shared(&c),
			})
		},
	}
	// All flags of push are declared, since those of the run are restored.
	c.Flags(cmd.Flags(), a.drivers)
	ofAllShards(cmd.Flags())
	shown = append(shown, "staging", "set", "state-dir", "password-file", "tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
	cmd.Flags().StringVar(&c.Resume, "run", "", "the run: its id, the beginning of its id, or last")
	return cmd
}

// ofAllShards makes the command one on the whole run, whatever TERAPUSH_SHARD says.
func ofAllShards(f *pflag.FlagSet) {
	if err := f.Set("shard", "0/1"); err != nil {
		panic(err)
	}
	f.Lookup("shard").Hidden = true
}
