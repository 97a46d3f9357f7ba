package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/experiment"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/render"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// run does the sweep, or goes on with it, and prints what there is at its end, whatever that was.
func (s *sweeper) run(ctx context.Context) error {
	file, err := record.Open(s.record)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	err = s.begin(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	stop, release := s.stopping(ctx)
	defer release()
	swept := s.sweepCells(stop, file)
	if err := file.Close(); err != nil {
		return errors.Join(swept, err)
	}
	r, err := record.Read(s.record)
	if err == nil && len(r.Entries) > 0 {
		err = s.show(r)
	}
	if swept != nil {
		fmt.Fprintf(s.terminal, "to go on: %s\n", s.command())
		return errors.Join(s.outcome(swept, r), err)
	}
	return errors.Join(failures(r), err)
}

// begin writes the head of a new record, or makes sure that the record is of this sweep.
func (s *sweeper) begin(file *record.File) error {
	head := record.Head{
		Schema: record.Schema, Name: s.work.Name, Title: s.work.Title, Scale: s.work.Scale, Digest: record.Digest(s.parts),
		Started: time.Now(), Version: buildVersion().Version, Machine: record.ThisMachine(), Repeats: s.work.Repeats, Parts: s.parts,
	}
	if s.restart {
		if err := file.Reset(); err != nil {
			return err
		}
	}
	was := file.Record().Head
	if was.Schema == "" {
		return file.Begin(head)
	}
	if d := was.Difference(head); d != "" {
		return usage(fmt.Errorf("%s holds another sweep: %s; give another --record, or --restart to begin anew", s.record, d))
	}
	if file.Torn() {
		s.log().Warn("the record's last line was cut off when the process before ended; that push is done again")
	}
	if n := len(file.Record().Entries); n > 0 {
		fmt.Fprintf(s.terminal, "going on with %s, which has %s\n", s.record, english.Plural(n, "push", "pushes"))
	}
	if was.Machine != head.Machine {
		s.log().Warn(fmt.Sprintf("the record was begun on another machine (%s, %s); results of two machines say little about cells", was.Machine.Host, was.Machine.CPU))
	}
	if was.Version != head.Version {
		s.log().Warn(fmt.Sprintf("the record was begun by version %s of terapush", was.Version))
	}
	if was.Repeats == head.Repeats {
		return nil
	}
	head.Started, head.Machine, head.Version, head.Repeats = was.Started, was.Machine, was.Version, max(was.Repeats, head.Repeats)
	return file.Begin(head)
}

func (s *sweeper) sweepCells(stop stop, file *record.File) error {
	c := &cellPusher{sweeper: s, state: s.stateOf(), stop: stop, said: &saidOnce{out: s.log()}}
	c.forget(stop.hard) // what a killed process left
	defer c.leave()
	var cells []experiment.Cell
	for _, one := range s.cells {
		cells = append(cells, one.Cell)
	}
	return sweep.Run(stop.hard, sweep.Job{
		Plan: s.work, Cells: cells, Digest: record.Digest(s.parts), Done: file.Record().Entries, Keep: file.Append,
		Push: c.push, Drain: stop.drain, End: s.tell,
	})
}

// stateOf is where the runs of this record live while they run. A name that begins with a dot is no run's.
func (s *sweeper) stateOf() string {
	path, err := filepath.Abs(s.record)
	if err != nil {
		path = s.record
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.process.State, ".sweep-"+hex.EncodeToString(sum[:8]))
}

// cellPusher makes pushes of cells.
type cellPusher struct {
	*sweeper
	state string
	stop  stop
	said  *saidOnce
	kept  []error // why runs could not be forgotten, by the last try
}

func (c *cellPusher) push(ctx context.Context, cell experiment.Cell, drain <-chan struct{}) (*report.Report, error) {
	i := slices.IndexFunc(c.cells, func(one sweepCell) bool { return one.Part == cell.Part && one.Number == cell.Number })
	one := c.cells[i]
	p := one.config
	p.State = c.state
	if p.Progress == string(live.Auto) && !c.terminal.Interactive() {
		p.Progress = string(live.None) // a log gets one line a push
	}
	w, err := newWatcher(ctx, p, c.terminal)
	if err != nil {
		return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	w.passing = true
	r, err := push.Run(ctx, push.Job{
		Config: p, Drivers: c.drivers, Given: one.given, Explicit: func(string) bool { return true },
		Drain: drain, Log: c.said.logger(), Watch: w.watch,
	})
	w.close()
	c.forget(ctx)
	return one.withoutSecrets(r), one.meaning(c.drivers, r, err)
}

// withoutSecrets is the report as it is recorded: without what --set has let in.
func (one *sweepCell) withoutSecrets(r *report.Report) *report.Report {
	if r == nil {
		return nil
	}
	r.Schema = report.Schema
	if len(one.secrets) == 0 {
		return r
	}
	for name, value := range r.Target.Settings {
		if isSecret(name) {
			value = loader.Secret(value).String()
		}
		r.Target.Settings[name] = loader.Redact(value, one.secrets...)
	}
	r.Result.Error = loader.Redact(r.Result.Error, one.secrets...)
	for i, text := range r.Warnings {
		r.Warnings[i] = loader.Redact(text, one.secrets...)
	}
	return r
}

// meaning tells the sweep what the error of a push means for the other cells.
func (one *sweepCell) meaning(drivers *loader.Registry, r *report.Report, err error) error {
	if err == nil {
		return nil
	}
	var class loader.Class
	if driver, _, problem := config.FindTarget(one.config.Target, one.config.Connect, drivers); problem == nil {
		class = driver.Classify(err).Class
	}
	if len(one.secrets) > 0 {
		err = &push.Error{Outcome: push.OutcomeOf(err), Err: errors.New(loader.Redact(err.Error(), one.secrets...))}
	}
	switch {
	case class == loader.ClassDiskFull || r != nil && r.Result.Errors[string(loader.ClassDiskFull)] > 0:
		return fmt.Errorf("%w: %w", sweep.ErrDiskFull, err)
	case push.OutcomeOf(err) == report.PreflightFailed && slices.Contains(away(), class):
		return fmt.Errorf("%w: %w", sweep.ErrUnreachable, err)
	}
	return err
}

// away are errors of a server that is not there.
func away() []loader.Class {
	return []loader.Class{loader.ClassConnection, loader.ClassTimeout, loader.ClassShutdown}
}

// outcome says how a sweep ended that did not come to its end.
func (s *sweeper) outcome(err error, r record.Record) error {
	reached := slices.ContainsFunc(r.Entries, func(e record.Entry) bool {
		return e.Status == record.Measured || e.Status == record.Limited
	})
	switch {
	case errors.Is(err, sweep.ErrStopped):
		return &push.Error{Outcome: report.Interrupted, Err: err}
	case errors.Is(err, sweep.ErrUnreachable) && !reached:
		return &push.Error{Outcome: report.PreflightFailed, Err: errors.New(err.Error())}
	default:
		return &push.Error{Outcome: report.Failed, Err: errors.New(err.Error())} // whatever the outcome of one push was
	}
}

// failures is the error of a sweep that came to its end, in which pushes failed.
func failures(r record.Record) error {
	failed, outcome := 0, report.Failed
	for _, e := range r.Entries {
		if e.Status != record.Failed || e.WarmUp {
			continue
		}
		failed++
		if e.Report != nil && e.Report.Result.Outcome == report.VerificationFailed {
			outcome = report.VerificationFailed
		}
	}
	if failed == 0 {
		return nil
	}
	pushes := slices.DeleteFunc(slices.Clone(r.Entries), func(e record.Entry) bool { return e.WarmUp })
	return &push.Error{Outcome: outcome, Err: fmt.Errorf("%d of %s failed", failed, english.Plural(len(pushes), "push", "pushes"))}
}

// tell prints a line about a push that ended.
func (s *sweeper) tell(p sweep.Progress, e record.Entry) {
	if s.process.Progress == string(live.None) {
		return
	}
	words := []string{s.describe(p.Cell)}
	switch {
	case p.WarmUp:
		words[0] = "warm-up, " + words[0]
	case s.work.Repeats > 1:
		words[0] += fmt.Sprintf(" (%d of %d)", p.Repeat+1, s.work.Repeats)
	}
	switch e.Status {
	case record.Measured, record.Limited:
		res := e.Report.Result
		words[0] += fmt.Sprintf(": %s rows/s, %s/s", count(res.RowsPerSecond), sizeOf(int64(res.BytesPerSecond)))
		if e.Status == record.Limited {
			words[0] += " until the limit"
		}
	case record.Failed:
		words[0] += ": FAILED: " + strings.Join(strings.Fields(e.Error), " ")
	case record.Skipped:
		words[0] += ": skipped, " + e.Error
	}
	words = append(words, "took "+rounded(time.Duration(e.Seconds*float64(time.Second))), "elapsed "+rounded(p.Elapsed))
	if p.Left > 0 {
		words = append(words, "about "+rounded(p.Left)+" left")
	}
	fmt.Fprintf(s.terminal, "[%*d/%d] %s\n", len(fmt.Sprint(p.Total)), p.Number, p.Total, strings.Join(words, " | "))
}

// show prints the tables, and writes the page.
func (s *sweeper) show(r record.Record) error {
	tables := analysis.Tables([]record.Record{r})
	print := render.Text
	if s.process.JSON {
		print = render.JSON
	}
	err := print(s.Stdout, tables)
	if s.html == "" {
		return err
	}
	return errors.Join(err, writeNew(s.html, func(w io.Writer) error { return render.HTML(w, tables) }))
}

// writeNew puts a file in the place of another when it is whole.
func writeNew(path string, write func(io.Writer) error) error {
	out, err := os.CreateTemp(filepath.Dir(path), ".terapush-*")
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer os.RemoveAll(out.Name()) // it has its own name by then when all went well
	err = errors.Join(write(out), out.Chmod(0o644), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("--report %s: %w", path, err)
	}
	return nil
}
