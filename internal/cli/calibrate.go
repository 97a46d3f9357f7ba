package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/calibrate"
	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
)

const calibrateHelp = `Measure the best that this machine can do, in about a minute: a sweep that sends rows by every protocol to a sink,
without and with TLS, over 1 to 64 connections. A protocol gets no more connections after two numbers in a row that
were no better.

Without HOST the sinks are other processes on this machine and use some of its cores. To measure the network, run
"terapush sink --no-count --row-bytes 526 --host 0.0.0.0" on another machine, and give its name as HOST. Protocols that
HOST does not have are not measured. For rows other than the default, the error of doris names the right --row-bytes.

The best of each protocol is kept in the state folder, and replaces that of the same protocol, format, dataset, payload,
TLS and sink. Reports of later pushes show their share of it. A protocol with a failed push is not kept. Ctrl-C ends the
measurement and keeps the protocols that are complete.

Exit codes: 0 ok, 1 ended early or nothing could be sent, 2 usage, 5 no sink at HOST, 129, 130 or 143 stopped by a
signal.`

type calibrateFlags struct {
	calibrate.Calibration
	ports map[string]*int
	only  []string
	tls   string
	json  bool
}

// rowFlags are those of push for the rows and the memory of all pushes.
var rowFlags = []string{"dataset", "param", "payload-bytes", "payload-kind", "memory"}

func (a *app) calibrateFlags(o *calibrateFlags, f *pflag.FlagSet) {
	f.SortFlags = false
	ofPush := pflag.NewFlagSet("push", pflag.ContinueOnError)
	new(config.Push).Flags(ofPush, a.drivers)
	for _, name := range rowFlags {
		f.AddFlag(ofPush.Lookup(name))
	}
	f.Lookup("payload-kind").Usage += "; for doris text, unless it is given"
	f.IntSliceVar(&o.Workers, "workers", []int{1, 2, 4, 8, 16, 32, 64}, "numbers of connections in parallel")
	f.StringSliceVar(&o.only, "only", nil, "protocols to measure: mysql, postgres, doris, databend, s3 (default: all)")
	f.Var(config.Duration(&o.Time, time.Minute), "time", "approximate time for all pushes, each of which takes at least 250ms")
	f.StringVar(&o.tls, "tls", "both", "measure with TLS (on), without (off), or both")
	f.BoolVar(&o.json, "json", false, "print the tables as one JSON object, as sweep does")
	f.StringVar(&o.State, "state-dir", "", "folder for the figures (default: the user's state folder)")
	o.ports = map[string]*int{}
	for _, p := range sinkProtocols() {
		if slices.Contains(calibrate.Ports(), p.name) {
			o.ports[p.name] = f.Int(p.name, p.port, "`port` at HOST for "+p.what)
		}
	}
}

func (a *app) calibrate() *cobra.Command {
	var o calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate [HOST] [flags]",
		Short: "Measure the best that this machine and its network can do",
		Long:  calibrateHelp,
		Example: `  terapush calibrate
  terapush calibrate --only mysql,postgres --payload-bytes 200 --time 20s
  terapush calibrate 10.0.0.7 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.Complete(cmd.Flags(), a.LookupEnv, ""); err != nil {
				return usage(err)
			}
			if err := a.completeCalibration(&o, cmd.Flags(), args); err != nil {
				return usage(err)
			}
			return a.runCalibration(cmd.Context(), &o)
		},
	}
	a.calibrateFlags(&o, cmd.Flags())
	return cmd
}

// completeCalibration checks the flags and completes the calibration from them.
func (a *app) completeCalibration(o *calibrateFlags, f *pflag.FlagSet, args []string) (err error) {
	c := &o.Calibration
	c.Drivers, c.Log = a.drivers, a.log()
	c.Push = map[string][]string{"dataset": valuesOf(f.Lookup("dataset"))}
	for _, name := range rowFlags {
		if given := f.Lookup(name); given.Changed {
			c.Push[name] = valuesOf(given)
		}
	}
	if c.Protocols, err = calibrate.Chosen(o.only); err != nil {
		return err
	}
	tls := map[string][]bool{"both": {false, true}, "on": {true}, "off": {false}}
	switch c.TLS = tls[o.tls]; {
	case c.TLS == nil:
		return fmt.Errorf("--tls %q: on, off or both", o.tls)
	case c.Time < time.Second:
		return fmt.Errorf("--time %s: at least 1s", c.Time)
	case len(c.Workers) == 0 || slices.Min(c.Workers) < 1 || slices.Max(c.Workers) > 4096:
		return fmt.Errorf("--workers %v: each from 1 to 4096", c.Workers)
	}
	c.Workers = slices.Compact(slices.Sorted(slices.Values(c.Workers)))
	if err := o.sinkAt(f, args); err != nil {
		return err
	}
	if err := needFolder(c.State); err != nil {
		return err
	}
	if c.State == "" {
		if c.State, err = a.stateDir(); err != nil {
			return err
		}
	}
	c.Version = buildVersion().Version
	c.Tell = func(line string) { a.note("%s\n", units.Printable(line)) }
	if c.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("finding terapush itself, to start a sink: %w", err)
	}
	return c.Check()
}

// sinkAt sets the sink's host and ports.
func (o *calibrateFlags) sinkAt(f *pflag.FlagSet, args []string) error {
	o.Ports = map[string]int{}
	for name, port := range o.ports {
		if f.Changed(name) && len(args) == 0 {
			return fmt.Errorf("--%s is a port at HOST, and none was given", name)
		}
		if *port < 1 || *port > 65535 {
			return fmt.Errorf("--%s %d: a port is 1 to 65535", name, *port)
		}
		o.Ports[name] = *port
	}
	if len(args) == 0 {
		return nil
	}
	o.Host = args[0]
	if _, _, err := net.SplitHostPort(o.Host); err == nil {
		return fmt.Errorf("%s: HOST has no port; every protocol has its own, --mysql for one", o.Host)
	}
	if o.Host == "" {
		return errors.New("HOST is empty: leave it out to calibrate this machine")
	}
	return nil
}

// runCalibration measures, and prints the tables even if it was stopped.
func (a *app) runCalibration(ctx context.Context, o *calibrateFlags) error {
	stop, release := a.stopping(ctx)
	defer release()
	record, err := o.Run(stop.hard, stop.drain)
	if err != nil && len(record.Entries) == 0 && !errors.Is(err, sweep.ErrStopped) {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	if err != nil {
		err = endedEarly(err, true)
	} else {
		err = unmeasured(record)
	}
	if len(record.Entries) == 0 {
		return err
	}

	tables := results.Tables([]results.Record{record})
	for i := range tables {
		tables[i].Warnings = []string{} // that the target is no database
	}
	a.note("the best of %d complete rows is kept in %s\n", o.Kept, baseline.Path(o.State))
	if o.json {
		return errors.Join(err, results.JSON.Write(a.Stdout, tables))
	}
	return errors.Join(err, results.WriteText(a.Stdout, tables, a.columns))
}
