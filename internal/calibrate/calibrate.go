// Package calibrate measures what this machine can send at most, by each protocol: it is a sweep over workers into a sink
// that discards what it gets. Rows are those of a real push, with the same ring, engine and back-ends, so that a run can
// be stated as a share of what is possible.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// Calibration says what is measured, and measures it once.
type Calibration struct {
	// Host is where a sink runs; "" starts sinks on this machine, in other processes.
	Host  string
	Ports map[string]int // of the sink at Host, by the names of Ports

	Push      map[string][]string // flags of all pushes by name, the dataset among them
	Protocols []Protocol
	Workers   []int         // rising
	TLS       []bool        // in order
	Time      time.Duration // of all pushes, about

	State   string // the user's state folder
	Version string // of terapush
	Binary  string // of terapush, for the sinks' processes

	Drivers *loader.Registry
	Log     *slog.Logger
	Tell    func(line string) // of a push that ended

	Kept int // rows of this calibration in the baseline

	sweep  *sweep.Sweep
	record results.Record
}

// ErrNoSink means that there was no sink to send to.
var ErrNoSink = errors.New("no sink")

// Run measures. The record has the pushes that ended, also if there is an error; those past a knee are left out.
// The best of each row, which is one protocol with rising workers, is on disk once the row has come to its end. Closing
// drain ends the sweep in order, with sweep.ErrStopped.
func (c *Calibration) Run(ctx context.Context, drain <-chan struct{}) (results.Record, error) {
	if _, err := baseline.Read(c.State); err != nil {
		return c.record, err // before a minute is spent on what cannot be kept
	}
	if err := c.Check(); err != nil {
		return c.record, err
	}
	useSinkKeys()

	// All calibrations of a state folder share the trials' folder, since two at a time would measure each other.
	trials := &sweep.Trials{
		Sources: c.sources(), State: filepath.Join(c.State, ".calibrate"), Discards: true,
		Log: slog.New(slog.DiscardHandler), // it warns of the delivery, which does not matter here
	}
	err := trials.Lock()
	if errors.Is(err, sweep.ErrTaken) {
		err = errors.New("another process calibrates: two at a time would measure each other, so wait for it")
	}
	if err != nil {
		return c.record, err
	}
	err = errors.Join(c.run(ctx, drain, trials), trials.Close(ctx, nil))
	c.record.Entries = slices.DeleteFunc(c.record.Entries, func(e results.Entry) bool { return e.Status == results.Skipped })
	return c.record, err
}

// run finds or starts the sinks, and makes the pushes.
func (c *Calibration) run(ctx context.Context, drain <-chan struct{}, trials *sweep.Trials) error {
	if c.Host != "" {
		at, err := c.reach(ctx)
		if err != nil {
			return err
		}
		return c.pushInto(ctx, at, drain, trials)
	}

	started, at, err := c.startSinks(ctx)
	defer started.stop()
	if err != nil {
		return err
	}
	return errors.Join(c.pushInto(ctx, at, drain, trials), started.failure())
}

func (c *Calibration) pushInto(ctx context.Context, at addresses, drain <-chan struct{}, trials *sweep.Trials) (err error) {
	if c.sweep, err = c.plan(at); err != nil {
		return err
	}
	c.record.Head = results.Head{
		Schema: results.Schema, Name: c.sweep.Plan.Name, Title: c.sweep.Plan.Title, Started: time.Now(),
		Version: c.Version, Machine: host.ThisMachine(), Repeats: c.sweep.Plan.Repeats, Parts: c.sweep.Parts,
	}
	return sweep.Run(ctx, sweep.Job{
		Plan: c.sweep.Plan, Cases: c.sweep.Cases, Drain: drain, Keep: c.keep,
		End: func(p sweep.Progress, e results.Entry) {
			if e.Status != results.Skipped {
				c.Tell(c.sweep.Line(p, e))
			}
		},
		Push: func(
			ctx context.Context, one sweep.Case, drain <-chan struct{}, begun func(func() bool),
		) (*report.Report, error) {
			r, err := trials.Push(ctx, one.Setup, drain, begun)
			return r, c.judge(one, r, err)
		},
	})
}

// judge returns the error of a push that is no measurement.
func (c *Calibration) judge(one sweep.Case, r *report.Report, err error) error {
	switch {
	case r != nil && r.Target.Server != "" && !strings.Contains(r.Target.Server, loader.SinkMark):
		return fmt.Errorf("the server is not a sink but %q", r.Target.Server)
	case err != nil && c.Host != "" && strings.HasPrefix(one.Config.Target, doris):
		return fmt.Errorf("%w; for doris start the sink %s", err, c.dorisSink())
	case err == nil && r.Result.Rows == 0:
		return fmt.Errorf("nothing was acknowledged within %s", one.Config.Duration)
	}
	return err
}

// dorisSink says how a sink counts Doris' rows truly.
func (c *Calibration) dorisSink() string {
	i := slices.IndexFunc(c.Protocols, func(p Protocol) bool { return p.Name == doris })
	if n := c.rowBytes(c.Protocols[i]); n > 0 {
		return fmt.Sprintf("without --no-count, or with --row-bytes %d", n)
	}
	return "without --no-count"
}

// keep takes an entry into the record. It saves the best of a row that has come to its end, unless one of its pushes
// failed: that one may have been better.
func (c *Calibration) keep(e results.Entry) error {
	c.record.Entries = append(c.record.Entries, e)
	row := e.Settings.Without("workers")
	var best results.Entry
	ended := 0
	for _, was := range c.record.Entries {
		if was.Part != e.Part || !slices.Equal(was.Settings.Without("workers"), row) {
			continue
		}
		ended++
		switch {
		case was.Status == results.Failed:
			return nil
		case was.Status == results.Skipped:
		case best.Report == nil || was.Report.Result.BytesPerSecond > best.Report.Result.BytesPerSecond:
			best = was
		}
	}
	if ended < len(c.Workers) || best.Report == nil {
		return nil
	}
	if err := baseline.Save(c.State, c.measurement(best)); err != nil {
		return err
	}
	c.Kept++
	return nil
}

const gib = 1 << 30

// measurement returns what the baseline has of a push.
func (c *Calibration) measurement(e results.Entry) baseline.Measurement {
	one := c.caseOf(func(one sweep.Case) bool { return one.Part == e.Part && one.Number == e.Cell })
	r := e.Report
	return baseline.Measurement{
		Key: baseline.Key{
			Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format, Dataset: r.Plan.Dataset,
			PayloadBytes: one.Plan.PayloadBytes, PayloadKind: one.Plan.PayloadKind, TLS: c.TLS[e.Part],
		},
		Measured: e.Started.UTC().Truncate(time.Second), Version: c.Version, Machine: c.record.Head.Machine, Host: c.Host,
		Counting: !strings.Contains(r.Target.Server, loader.NoCountMark), Workers: r.Plan.Workers,
		RowsPerSecond: r.Result.RowsPerSecond, BytesPerSecond: r.Result.BytesPerSecond, BoundBy: r.BoundBy.Verdict,
		CPUSecondsPerGiB: r.Client.LoadSeconds / (r.Result.BytesPerSecond * r.Result.Seconds / gib),
	}
}

// caseOf returns the first case of the plan that is the wanted one.
func (c *Calibration) caseOf(wanted func(sweep.Case) bool) sweep.Case {
	return c.sweep.Cases[slices.IndexFunc(c.sweep.Cases, wanted)]
}

// useSinkKeys replaces the user's keys of object stores in this process. A sink takes any keys and must not see the
// user's. Amazon's library reads them from the environment, and without any asks for a machine's role.
func useSinkKeys() {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "calibrate", "AWS_SECRET_ACCESS_KEY": "calibrate", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
	} {
		_ = os.Setenv(name, value) // fails for malformed names only
	}
}
