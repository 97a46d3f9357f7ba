package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/demo"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
)

func (a *app) demo() *cobra.Command {
	var keep bool
	var c config.Push
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Push a gigabyte into a real PostgreSQL that is fetched, started and removed again",
		Args:  exactly(0, "demo takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runDemo(cmd.Context(), c, cmd.Flags(), keep)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = f.Name != "bytes" && f.Name != "verify" && f.Name != "json" && f.Name != "workers"
	})
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running and tell how to connect")
	return cmd
}

// runDemo starts the server, pushes and verifies, and cleans up.
func (a *app) runDemo(ctx context.Context, c config.Push, f *pflag.FlagSet, keep bool) (err error) {
	stop, release := a.stopping(ctx)
	defer release()
	server, err := demo.Start(stop.hard, "", a.terminal)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c.Target, c.State = server.URL(), filepath.Join(server.Dir(), "runs")
	if _, err := a.runPush(stop, c, f, func(string) bool { return true }); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	command, err := server.Keep()
	if err == nil {
		fmt.Fprintf(a.Stdout, "\nthe server is yours: psql '%s'\nto stop it: %s\n", server.URL(), command)
	}
	return err
}
