package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// attach makes a run this process's, or the shard of it. Whether the run is new, is resumed or has a name changes what
// each step finds, and not the steps. After them nothing about the rows changes.
func (p *push) attach(ctx context.Context) error {
	defer func() { p.notes.WarnAll(p.warnings) }() // of the last plan: those of earlier ones no longer hold
	asked, err := p.configure(ctx)
	if err != nil {
		return failed(Usage, err)
	}
	if err := p.input.openRejects(asked); err != nil {
		return failed(Usage, err)
	}
	if p.named() && p.empties() {
		return failed(Usage, fmt.Errorf("--run-id and --create %s: a process that is started again would remove "+
			"the rows of the others; terapush prepare does it once", p.Config.Create))
	}
	if err := p.checkLimits(asked); err != nil {
		return err
	}
	if !p.progress.Continued() {
		if err := runlog.Usable(p.Config.State); err != nil {
			return err
		}
	}
	if err := p.connect(ctx, asked); err != nil {
		return err
	}
	if err := p.makeDraft(ctx); err != nil {
		return err
	}
	begun, err := p.find(ctx)
	if err != nil {
		return err
	}
	if err := p.own(ctx, begun); err != nil {
		return err
	}
	if !p.progress.Continued() {
		return nil
	}
	return p.catchUp(ctx)
}

// configure finds what the run is: in the record of an earlier process, or in the flags. It returns every mistake of
// the command line: these are reported before a server is asked.
func (p *push) configure(ctx context.Context) (facts, error) {
	if p.Config.Resume != "" {
		return p.reopen(func(r runlog.Record) bool { return r.Plan.Dedup == loader.DedupTx })
	}
	return p.configureNew(ctx, cmp.Or(p.Config.RunID, p.ID, runlog.NewID(p.started)))
}

// configureNew is configure for a run that may begin.
func (p *push) configureNew(ctx context.Context, id string) (asked facts, err error) {
	if asked, err = p.gatherFacts(config.Earlier{}, p.idle); err != nil {
		return asked, err
	}
	p.progress.Identify(id)
	p.takeInput(p.Config.Files != nil)
	if asked.spec, err = p.input.spec(ctx); err != nil {
		return asked, err
	}
	return asked, asked.spec.Check(asked.caps)
}

// gatherFacts finds driver and method, what they can do on any server, and what this process has. unfilled is
// run.Resources.Unfilled.
func (p *push) gatherFacts(earlier config.Earlier, unfilled bool) (found facts, err error) {
	p.target.Driver, p.target.Target, found, err = gatherFacts(&p.Config, p.Drivers, earlier, p.link)
	found.resources.Unfilled = unfilled
	return found, err
}

// reopen takes over the journal of an earlier process. A damaged one will do if dispensable reports that the database
// knows all that it held.
func (p *push) reopen(dispensable func(runlog.Record) bool) (asked facts, err error) {
	c := &p.Config
	before, err := runlog.Read(c.State, c.Resume)
	if err != nil {
		return asked, failed(report.PreflightFailed, err)
	}
	log, err := runlog.Open(c.State, c.Resume, p.progress.Replayer(before.Plan.Contract), dispensable)
	if errors.As(err, new(*runlog.DamagedError)) {
		err = fmt.Errorf("%w; only the journal knows what was sent of run %s, so it cannot be resumed: start a new one",
			err, before.Run)
	}
	if err != nil {
		return asked, failed(report.PreflightFailed, err)
	}
	p.progress.Keep(log, true)
	if damage := log.Damage(); damage != nil {
		p.notes.Warnf("%v; the run continues without it", damage)
	}
	r := log.Record()
	if config.IsRunName(r.Run) {
		return asked, fmt.Errorf("run %s is continued with --run-id %s and the flags that it was begun with, "+
			"and verified with them", r.Run, r.Run)
	}
	if err := refuseChanges(c, r, p.Explicit); err != nil {
		return asked, err
	}
	if err := p.sameDatabase(r); err != nil {
		return asked, err
	}
	if fromStdin(r) && !p.idle {
		return asked, loader.Final(fmt.Errorf("run %s has read standard input, which cannot be read again, "+
			"so it cannot be resumed: load a file, or start a new run; terapush forget removes its claims", r.Run))
	}
	return p.adopt(r)
}

// adopt takes the spec from a record, and not from the flags: this version may have other defaults.
func (p *push) adopt(r runlog.Record) (asked facts, err error) {
	of := config.Earlier{Target: r.Target, Via: r.Via, Table: tableOf(r), Method: r.Plan.Method}
	asked, err = p.gatherFacts(of, true) // until it is known what is left
	if err != nil {
		return asked, failed(Usage, err)
	}
	asked.spec = r.Plan.Spec
	p.progress.Identify(r.Run)
	p.takeInput(r.Plan.Files != nil)
	return asked, p.replanRun(r, asked)
}

// connect opens the target, and plans for what the server can do: what is impossible there is refused before a table is
// made.
func (p *push) connect(ctx context.Context, asked facts) error {
	err := p.waiting(ctx, func() error { return p.target.Open(ctx) })
	if err != nil {
		return err
	}
	return p.connected(ctx, asked)
}

// connected plans for the server of an open target.
func (p *push) connected(ctx context.Context, asked facts) error {
	asked.caps = p.target.Loader.Caps()
	if err := p.firstPlan(asked); err != nil {
		return err
	}
	return p.input.connected(ctx)
}

// reach opens the target of a job that begins no run.
func (p *push) reach(ctx context.Context) error {
	asked, err := p.configure(ctx)
	if err != nil {
		return failed(Usage, err)
	}
	return p.connect(ctx, asked)
}

// find returns whether an earlier process of the run, or another one of a named run, has begun it, and begins it if
// none has. Two processes may begin at once, such as the first shard and terapush prepare: whoever comes later takes
// the place of one that has not announced the run, and that one looks again.
func (p *push) find(ctx context.Context) (begun bool, err error) {
	if p.progress.Continued() {
		return true, nil
	}
	if err := p.share(ctx); err != nil {
		return false, err
	}
	err = p.waiting(ctx, func() error {
		announced, err := p.announced(ctx)
		if err != nil {
			return err
		}
		if begun = announced.Fingerprint != 0; begun {
			return p.agree(announced)
		}
		if shardOf(&p.Config).Index > 0 {
			return errNotBegun
		}
		return p.begin(ctx)
	})
	return begun, err
}

// own makes this process the owner of the run's row in the database, and of its journal: from then on an earlier
// process of the same shard fails before its next batch.
func (p *push) own(ctx context.Context, begun bool) error {
	if !begun && !p.named() { // since the table was prepared
		return p.launch(ctx)
	}
	return p.waiting(ctx, func() error {
		if p.named() && p.store.shared == nil { // the claims say what is in
			if err := runlog.RemoveRest(p.Config.State, runlog.FolderOf(p.progress.ID(), p.Config.Shard)); err != nil {
				return err
			}
		}
		ours := p.preparation(loader.CreateNever)
		ours.Resume = p.progress.Continued() || p.store.shared != nil // there may be rows or objects of the run
		if err := p.target.Prepare(ctx, ours); err != nil {
			return err
		}
		if err := p.take(ctx); err != nil {
			return err
		}
		switch {
		case p.store.shared != nil:
			return p.takeJournal()
		case p.named():
			return p.createLog(p.Config.State, begun)
		}
		return nil // reopen has it
	})
}

// take makes this process the run's owner in the database. A run without claims may have no row there, and one that is
// proven is only looked at.
func (p *push) take(ctx context.Context) error {
	if p.progress.Continued() && p.progress.Stage() == runlog.Verified { // before the rows of another database are counted
		_, err := p.closedEpochs(ctx)
		return err
	}
	claims := p.target.Can.Claims
	if claims == nil || p.silent {
		return p.samePlace()
	}
	row, err := target.Ask(ctx, p.target, "run", func(ctx context.Context) (loader.RunRow, error) {
		return claims.Take(ctx, p.progress.Name())
	})
	if errors.Is(err, loader.ErrUnknownRun) && p.plan.Dedup != loader.DedupTx {
		return p.samePlace()
	}
	p.progress.Own(row)
	return err
}

// launch makes a run of its draft.
func (p *push) launch(ctx context.Context) error {
	if err := p.draft.Launch(p.newRecord(), p.Trial); err != nil {
		p.giveBack(ctx)
		return err
	}
	p.progress.Keep(p.draft, false)
	return nil
}

// createLog makes the run's folder on this machine.
func (p *push) createLog(stateDir string, continued bool) error {
	log, err := runlog.Create(stateDir, p.newRecord())
	if err != nil {
		return err
	}
	p.progress.Keep(log, continued)
	return nil
}

func (p *push) newRecord() runlog.Record {
	return runlog.Record{
		Run: p.progress.ID(), Started: p.started, Stage: runlog.Loading,
		Target: p.target.String(), Via: p.target.Store(), Table: p.target.Found.Name, Identity: p.target.Found.Identity,
		Plan: p.plan, Flags: p.Given, Tables: p.Tables,
	}
}
