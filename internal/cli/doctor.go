package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
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

const doctorHelp = `Look at this machine, and at the server of TARGET where one is given, for what would stop or slow a push down.

Every check is a line: ok, warn, fail or unknown, and below it the command that changes something. Only what would stop a
push fails; a warning costs speed. Nothing is changed: no table is made, and the test row that a push inserts and rolls back
is not sent. The flags are those of push, so that what is looked at is the push
that they would make: its workers, its batches, its way in. Limits of the machine are compared with --gbps over the round
trip that is measured to the server, or 1 ms without one.

Exit codes: 0 nothing would stop a push, also with warnings; 2 usage; 5 something would; 129, 130 or 143
stopped by a signal.`

// notLookedAt are flags of push that change nothing about what is looked at.
func notLookedAt() []string {
	return []string{
		"payload-kind", "seed", "distinct-bytes", "max-rate", "yes-drop", "verify", "verify-rows", "retries", "batch-timeout",
		"resume", "state-dir", "progress", "dry-run", "metrics-addr", "metrics-linger", "server-metrics", "prices",
	}
}

func (a *app) doctor() *cobra.Command {
	var c config.Push
	var gbps float64
	var file string
	cmd := &cobra.Command{
		Use:   "doctor [TARGET] [flags]",
		Short: "Check this machine and a server for what would stop or slow a push down",
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
			c.Target, c.Connect.LookupEnv = strings.Join(args, ""), a.LookupEnv
			a.warnOfPassword(c.Target)
			if err := config.Complete(cmd.Flags(), a.LookupEnv, file); err != nil {
				return usage(err)
			}
			if err := c.Validate(); err != nil {
				return usage(err)
			}
			return a.checkServer(cmd.Context(), c, int64(math.Round(gbps*1e9)))
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = slices.Contains(notLookedAt(), f.Name) })
	cmd.Flags().Lookup("json").Usage = "print the findings as one JSON object"
	cmd.Flags().Float64Var(&gbps, "gbps", 50, "rate to look at the machine for, in Gbps on the wire")
	cmd.Flags().StringVar(&file, "config", "", "YAML file with flags' names as keys")
	return cmd
}

// checkServer looks at the server first, since only an open connection tells where it is.
func (a *app) checkServer(ctx context.Context, c config.Push, bitsPerSecond int64) error {
	stop, release := a.stopping(ctx)
	defer release()
	soft, cancel := stop.soft()
	defer cancel()

	want := host.Want{BitsPerSecond: bitsPerSecond}
	var server []loader.Finding
	if c.Target == "" {
		want.Workers, want.Memory = push.Resources(soft, &c)
	} else {
		e, err := push.CheckServer(stop.hard, push.Job{Config: c, Drivers: a.drivers, Drain: stop.drain, Log: a.log()})
		if err != nil {
			return err
		}
		server = e.Findings
		want.Target, want.Workers, want.Memory, want.BatchBytes = orNamed(e.Endpoint, c.Target), e.Workers, e.Memory, e.BatchBytes
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

// orNamed is the address of a server that was reached, or else the one that the target names with a port: how far away it
// is may be why.
func orNamed(endpoint, target string) string {
	if endpoint != "" {
		return endpoint
	}
	t, err := loader.ParseTarget(target)
	if err != nil || len(t.Hosts) == 0 {
		return ""
	}
	if _, _, err := net.SplitHostPort(t.Hosts[0]); err != nil {
		return ""
	}
	return t.Hosts[0]
}
