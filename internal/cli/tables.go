package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/units"
)

// A run of several tables is a sequence of ordinary runs, ID.1, ID.2 …, one a table in the order of their references.
// Each has claims and a journal of its own. The record of the first one has all tables, so that a resume needs no file.

// tablesRun is such a run in this process.
type tablesRun struct {
	*app
	id       string // or the name
	config   config.Push
	given    map[string][]string
	explicit func(string) bool
	sum      report.Tables
}

// eachTable calls do with the configuration of every table's run, until one fails.
func eachTable(c *config.Push, do func(i int, c *config.Push) error) error {
	for i, t := range c.Tables.Tables {
		one := c.OfTable(t)
		if c.Resume != "" {
			one.Resume = config.ChildOf(c.Resume, i)
		}
		if c.RunID != "" {
			one.RunID = config.ChildOf(c.RunID, i)
		}
		if err := do(i, &one); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// runTables pushes all tables, and prints one summary.
func (a *app) runTables(cmd *cobra.Command, c *config.Push, file string, explicit func(string) bool) error {
	err := errors.Join(refuseOver("--report", c.Report, input{"--config", file}), canWrite(c.Report))
	if c.Resume == "" {
		err = errors.Join(err, a.checkTables(c))
	}
	if err != nil {
		return usage(err)
	}
	t := &tablesRun{
		app: a, id: cmp.Or(c.Resume, c.RunID, runlog.NewID(time.Now())), config: *c, explicit: explicit, given: config.Given(cmd.Flags()),
	}
	for _, name := range []string{"rows", "times"} { // which are in the tables
		delete(t.given, name)
	}
	t.list(c)
	for _, one := range c.Tables.Tables {
		for _, column := range one.Broken {
			a.log().Warn(fmt.Sprintf("column %s of table %s is NULL in all rows: the table that it refers to is not filled before", column, one.Name))
		}
	}

	a.logger = slog.New(&plainWarnings{Handler: a.log().Handler()})
	stop, release := a.stopping(cmd.Context())
	defer release()
	err = eachTable(c, func(i int, c *config.Push) error { return t.push(stop, i, c) })
	if push.OutcomeOf(err) == push.Usage && !t.sum.Begun() {
		return err
	}

	t.sum.Sum(push.OutcomeOf(err))
	err = errors.Join(err, a.print(t.sum, c.JSON))
	if line := t.next(cmd, err); line != "" {
		fmt.Fprintln(a.terminal, line)
	}
	if c.Report != "" {
		err = errors.Join(err, writePage(c.Report, results.TablesOfRuns, t.records()...))
	}
	if is := t.sum.Result; err == nil && c.FailBelow > 0 && is.Seconds > 0 {
		return tooSlow(is.BytesPerSecond, c)
	}
	return err
}

// list begins the summary.
func (t *tablesRun) list(c *config.Push) {
	t.sum.Run = t.id
	for i, one := range c.Tables.Tables {
		t.sum.Tables = append(t.sum.Tables, report.TableResult{Table: one.Name, Run: config.ChildOf(t.id, i), Rows: one.Spec.Rows})
	}
}

// dryRunTables prints what a push of each table would do.
func (a *app) dryRunTables(c *config.Push) error {
	if err := a.checkTables(c); err != nil {
		return err
	}
	return eachTable(c, func(i int, c *config.Push) error {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		return a.dryRun(c)
	})
}

// prepareTables makes the tables of a run that several processes will push.
func (a *app) prepareTables(c *config.Push, prepare func(c *config.Push) error) error {
	if err := a.checkTables(c); err != nil {
		return usage(err)
	}
	return eachTable(c, func(_ int, c *config.Push) error { return prepare(c) })
}

// restoreTables completes the flags of a run of several tables from the record of its first part.
func (a *app) restoreTables(f *pflag.FlagSet, c *config.Push, r *runlog.Record, typed func(flag string) bool) error {
	if c.Files != nil {
		return fmt.Errorf("run %s is a push: terapush push %s --resume %s", c.Resume, units.ShellWord(r.Target), c.Resume)
	}
	if config.IsRunName(c.Resume) && typed("dataset") { // its parts compare the rows
		return errors.Join(config.Restore(f, r.Flags), c.ReadSpec())
	}
	isPush := f.Lookup("run") == nil
	for _, name := range []string{"dataset", "param", "rows", "times", "table"} {
		corrected := isPush && (name == "dataset" || name == "param")
		if typed(name) && !corrected {
			return fmt.Errorf("--%s cannot change in run %s, whose record has its tables: leave it out", name, c.Resume)
		}
	}
	c.Tables = r.Tables
	if err := config.Restore(f, r.Flags); err != nil || !typed("dataset") && !typed("param") {
		return err
	}
	return replaceTables(c, r.Tables)
}

// replaceTables takes the tables of a file that was corrected since the run has begun. Those that have begun are to be
// as they were.
func replaceTables(c *config.Push, were *dataset.Tables) error {
	c.Tables, c.Rows, c.Times = nil, were.Scale.Rows, config.Times(were.Scale.Times)
	if err := c.ReadSpec(); err != nil {
		return err
	}
	if c.Tables == nil {
		return fmt.Errorf("--dataset %s: run %s has several tables", c.Dataset, c.Resume)
	}
	for i := range were.Tables {
		_, err := runlog.Read(c.State, config.ChildOf(c.Resume, i))
		if errors.Is(err, runlog.ErrNoRun) {
			break
		}
		was := &were.Tables[i]
		if i >= len(c.Tables.Tables) {
			return fmt.Errorf("--dataset %s: table %s of run %s has begun, and is not in the file", c.Dataset, was.Name, c.Resume)
		}
		if all := c.Tables.Tables[i].Differences(was); len(all) > 0 {
			return fmt.Errorf("--dataset %s: table %s of run %s has begun, so that it cannot change: %s", c.Dataset, was.Name, c.Resume,
				strings.Join(all, "; "))
		}
	}
	return runlog.SaveTables(c.State, c.Resume, c.Tables)
}

// plainWarnings is a log that passes on a warning without attributes once: what a server's settings mean for one table
// they mean for all.
type plainWarnings struct {
	slog.Handler
	said sync.Map
}

// Handle implements slog.Handler.
func (p *plainWarnings) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && r.NumAttrs() == 0 {
		if _, said := p.said.LoadOrStore(r.Message, true); said {
			return nil
		}
	}
	return p.Handler.Handle(ctx, r)
}

// checkTables finds what would stop a later table, without a connection.
func (a *app) checkTables(c *config.Push) error {
	if err := c.CheckTables(); err != nil {
		return err
	}
	return eachTable(c, func(_ int, c *config.Push) error { return push.CheckFlags(c, a.drivers) })
}

// push makes, resumes or leaves out the run of one table.
func (t *tablesRun) push(s stop, i int, c *config.Push) error {
	into := &t.sum.Tables[i]
	j := push.Job{Explicit: t.explicit, Given: maps.Clone(t.given)}
	j.Given["table"] = []string{c.Table}
	if i == 0 {
		j.Tables = t.config.Tables
	}
	if c.RunID == "" {
		r, err := runlog.Read(c.State, into.Run)
		switch {
		case errors.Is(err, runlog.ErrNoRun):
			c.Resume, j.ID = "", into.Run
		case err != nil:
			return &push.Error{Outcome: report.PreflightFailed, Err: err}
		case r.Stage == runlog.Verified:
			into.Done = true
			return nil
		default:
			c.Resume = into.Run
		}
	}
	select {
	case <-s.drain:
		return &push.Error{Outcome: report.Interrupted, Err: errors.New("stopped by a signal, before the table was begun")}
	default:
	}

	if i > 0 && !c.Shard.Whole() {
		if err := t.await(s, i-1); err != nil {
			return err
		}
	}
	t.log().Info(fmt.Sprintf("table %d of %d: %s", i+1, len(t.sum.Tables), c.Table), "run", into.Run)
	if i < len(t.sum.Tables)-1 {
		c.MetricsLinger = 0
	}
	j.Config = *c
	err := t.pushOne(s, j, into)
	if !errors.As(err, new(*run.FewBatchesError)) {
		return err
	}
	if c.Shard.Index > 0 {
		into.Done, into.Rows = true, 0
		return t.await(s, i)
	}
	j.Config.Shard = config.Shard{} // too small to be divided: the first shard sends it alone
	return t.pushOne(s, j, into)
}

func (t *tablesRun) pushOne(s stop, j push.Job, into *report.TableResult) error {
	write, err := t.reportWriter(s.hard, j.Config.ReportTo, &j.Config.Connect)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	into.Report, err = t.execute(s, j, func(*report.Report) error { return nil })
	if into.Report != nil && into.Report.Run.Shard != nil {
		into.Rows = into.Report.Run.Shard.Rows
	}
	return errors.Join(err, write(context.WithoutCancel(s.hard), into.Report, err))
}

// await waits until the other shards have sent their parts of a table, and so, since they do the same, of all before
// it: rows may refer to any of these. It also keeps a shard from waiting, for --retry-for, for a table that the first
// one has not begun.
func (t *tablesRun) await(s stop, table int) error {
	const pause = 2 * time.Second
	one := t.config.Tables.Tables[table]
	c := t.config.OfTable(one)
	c.RunID, c.Shard = t.sum.Tables[table].Run, config.Shard{Count: 1}
	ctx, cancel := s.soft()
	defer cancel()
	for {
		complete, err := push.Complete(ctx, push.Job{
			Config: c, Drivers: t.drivers, Drain: s.drain, Log: t.log(), StateStore: t.stateStore(c.Shared, &c.Connect),
		})
		if complete || err != nil {
			return err
		}
		t.log().Info("waiting for the other shards of table " + one.Name)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return &push.Error{Outcome: report.Interrupted, Err: fmt.Errorf("stopped by a signal, while waiting for table %s", one.Name)}
		}
	}
}

// next says how to go on.
func (t *tablesRun) next(cmd *cobra.Command, err error) string {
	begun, _ := runlog.ReadTables(t.config.State, t.id)
	switch {
	case err == nil || begun == nil:
		return ""
	case t.config.RunID != "":
		return "to resume: run the same command again, here or on another machine"
	case push.OutcomeOf(err) == report.VerificationFailed:
		return fmt.Sprintf("to verify again: terapush verify %s --run %s%s", units.ShellWord(begun.Target), t.id, foundBy(cmd.Flags()))
	}
	line := fmt.Sprintf("to resume: terapush push %s --resume %s%s", units.ShellWord(begun.Target), t.id, foundBy(cmd.Flags()))
	if push.OutcomeOf(err) == report.PreflightFailed {
		line += "\nto correct a table that has not begun: edit the file, and add --dataset FILE"
	}
	return line
}

// records are those of the reports, for a page.
func (t *tablesRun) records() (all []results.Record) {
	for _, one := range t.sum.Tables {
		if one.Report != nil {
			all = append(all, results.Of(*one.Report))
		}
	}
	return all
}

// eachAgain does something to every part of a run of several tables that has begun, and goes on where one fails. What
// is forgotten goes from the last to the first, which has the tables.
func (a *app) eachAgain(c *config.Push, forget bool, do func(c *config.Push) (*report.Report, error)) error {
	var parts []config.Push
	t := &tablesRun{app: a, id: cmp.Or(c.Resume, c.RunID)}
	t.list(c)
	_ = eachTable(c, func(_ int, one *config.Push) error {
		parts = append(parts, *one)
		return nil
	})
	a.logger = slog.New(&plainWarnings{Handler: a.log().Handler()})
	var all error
	for n := range parts {
		i := n
		if forget {
			i = len(parts) - 1 - n
		}
		one, into := &parts[i], &t.sum.Tables[i]
		_, err := runlog.Read(c.State, into.Run)
		switch missing := errors.Is(err, runlog.ErrNoRun) && !config.IsRunName(t.id); {
		case missing && forget:
			continue
		case missing:
			err = fmt.Errorf("it is not begun: finish the run with push --resume %s", t.id)
			err = &push.Error{Outcome: report.PreflightFailed, Err: err}
		default:
			into.Report, err = do(one)
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("table %s: %w", one.Table, err))
		}
		if outcome := push.OutcomeOf(err); outcome == report.Interrupted || outcome == push.Usage {
			break
		}
	}
	if forget || push.OutcomeOf(all) == push.Usage {
		return all
	}
	t.sum.Sum(push.OutcomeOf(all))
	return errors.Join(all, a.print(t.sum, c.JSON))
}

// refusePart returns an error if a run is a part of one that would not be found without it.
func (a *app) refusePart(c *config.Push) error {
	whole, _, is := config.ParentOf(c.Resume)
	if !is {
		return nil
	}
	if r, _ := runlog.ReadTables(c.State, whole); r == nil {
		return nil
	}
	return usage(fmt.Errorf("run %s is a part of run %s: forget that one", c.Resume, whole))
}
