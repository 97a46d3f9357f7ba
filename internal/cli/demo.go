package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/demo"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
)

func (a *app) demo() *cobra.Command {
	var keep, stop bool
	var c config.Push
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Download and start a PostgreSQL, push a gigabyte into it, and remove it",
		Args:  exactly(0, "demo takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep && stop {
				return usage(errors.New("either --keep or --stop"))
			}
			if stop {
				return a.stopDemos(cmd.Context())
			}
			return a.runDemo(cmd.Context(), c, cmd.Flags(), keep)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	showOnly(cmd.Flags(), "bytes", "verify", "json", "workers")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running, and print how to connect")
	cmd.Flags().BoolVar(&stop, "stop", false, "only stop the servers that --keep left, and remove their data")
	return cmd
}

func (a *app) stopDemos(ctx context.Context) error {
	stopped, err := demo.StopKept(ctx, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s stopped and removed\n", english.Plural(stopped, "server", ""))
	return nil
}

// demoTable is the demo's: a push into a kept server finds the default table free.
const demoTable = "demo"

// runDemo starts a server, pushes into it and removes it.
func (a *app) runDemo(ctx context.Context, c config.Push, f *pflag.FlagSet, keep bool) (err error) {
	stop, release := a.stopping(ctx)
	defer release()
	told := io.Writer(a.terminal)
	if a.logging.Quiet {
		told, c.Progress = io.Discard, string(live.None)
	}
	server, err := demo.Start(stop.hard, "", told)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c.Table, c.Target, c.State = demoTable, server.URL(), filepath.Join(server.Dir(), "runs")
	if _, err := a.runPush(stop, c, f, func(string) bool { return true }); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if err := server.Keep(); err != nil {
		return err
	}
	out := a.Stdout
	if c.JSON { // which is for programs
		out = a.terminal
	}
	url, password := server.Access()
	fmt.Fprintf(out, "\nthe server keeps running:\nexport DATABASE_URL=%s\nexport TERAPUSH_PASSWORD=%s\n"+
		"to stop it and remove its data: terapush demo --stop\n", units.ShellWord(url), units.ShellWord(password))
	return nil
}
