package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

const doctorHelp = `Check this machine, and the server if there is a TARGET, for what would stop a push or slow it down.

Every check prints ok, warn, fail or unknown, and the command that helps. A check fails only if it would stop a push;
it warns of what may stop it, may lose acknowledged rows, or costs a fifth of the speed. The doctor changes nothing
and creates no table. If --table exists, rows that fit it are judged, as with --like. It takes the flags of push, and
checks for that push's workers, batches and method. It compares the limits of the machine with --gbps, at the measured
round trip to the server, or at 1 ms without a server.

Exit codes: 0 nothing would stop a push, warnings included, 2 usage, 5 something would, 129, 130 or 143 stopped by a
signal.`

// uncheckedFlags returns the flags of push that change no check, besides those of runs and output.
func uncheckedFlags() []string {
	return []string{
		"payload-kind", "seed", "distinct-bytes", "warm-up", "max-rate", "allow-drop", "verify", "verify-rows", "verify-workers",
		"retries", "retry-for", "batch-timeout",
	}
}

func (a *app) doctor() *cobra.Command {
	var c config.Push
	var gbps float64
	var file string
	cmd := &cobra.Command{
		Use:   "doctor [TARGET] [flags]",
		Short: "Check this machine and a server for what would stop a push or slow it down",
		Long:  doctorHelp,
		Example: `  terapush doctor
  terapush doctor postgres://user@host/db --workers 32 --gbps 25
  terapush doctor mysql://user@host/db --method load-data --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly(1, "doctor takes one TARGET or none")(cmd, args)
			}
			if !(gbps > 0 && gbps <= 1e6) {
				return usage(fmt.Errorf("--gbps %v: more than 0", gbps))
			}
			c.Target = strings.Join(args, "")
			if err := a.complete(cmd.Flags(), &c, file); err != nil {
				return usage(err)
			}
			read := a.readRows
			if c.Target != "" && c.Table != "" && c.Like == "" && !cmd.Flags().Changed("dataset") {
				read = a.readRowsOfTable
			}
			if err := read(cmd.Context(), &c); err != nil {
				return err
			}
			c.Shared = "" // the doctor keeps nothing
			if err := c.Validate(); err != nil {
				return usage(err)
			}
			return a.check(cmd.Context(), c, int64(math.Round(gbps*1e9)))
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = slices.Contains(uncheckedFlags(), f.Name) ||
			slices.Contains([]string{config.GroupRuns, config.GroupOutput}, config.GroupOf(f))
	})
	asJSON := cmd.Flags().Lookup("json")
	asJSON.Usage, asJSON.Hidden = "print the findings as one JSON object", false
	cmd.Flags().Var(config.Link(&gbps, 50), "gbps", "rate that the machine should reach, in Gbps")
	addConfig(cmd.Flags(), &file)
	return cmd
}

// readRowsOfTable has the doctor judge rows that fit the table, if it is there and the other flags allow them: nobody
// pushes a built-in dataset into it. What is wrong with the server the checks say.
func (a *app) readRowsOfTable(ctx context.Context, c *config.Push) error {
	like := *c
	like.Like = c.Table
	if a.readRows(ctx, &like) == nil && like.Validate() == nil {
		*c = like
		return nil
	}
	return a.readRows(ctx, c)
}

// check checks the server first, since the connection gives the address that the machine's checks are for.
func (a *app) check(ctx context.Context, c config.Push, bitsPerSecond int64) error {
	stop, release := a.stopping(ctx)
	defer release()
	soft, cancel := stop.soft()
	defer cancel()

	want := host.Want{BitsPerSecond: bitsPerSecond}
	var server []loader.Finding
	if c.Target == "" {
		want.Workers, want.Memory = push.Resources(soft, &c.Pace)
	} else {
		checks, err := push.CheckServer(stop.hard, push.Job{Config: c, Drivers: a.drivers, Drain: stop.drain, Log: a.log()})
		if err != nil {
			return err
		}
		server = checks.Findings
		want.Target, want.Workers, want.Memory, want.BatchBytes = checks.Endpoint, checks.Workers, checks.Memory, checks.BatchBytes
	}
	machine := host.Check(soft, want)
	if soft.Err() != nil {
		return &push.Error{Outcome: report.Interrupted, Err: errors.New("stopped by a signal")}
	}
	r := host.NewReport(machine, server)
	if err := a.print(r, c.JSON); err != nil {
		return err
	}
	if !r.OK {
		return &push.Error{Outcome: report.PreflightFailed, Err: fmt.Errorf("this would stop a push: %s", strings.Join(r.Failed(), ", "))}
	}
	return nil
}
