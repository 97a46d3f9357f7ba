package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// Forget removes a run's claims from the target and its folder from the state folder. Objects stay, and a warning names
// their place. If the state folder does not know the run, only the claims are removed. Config.Resume is the run's id or
// name.
func Forget(ctx context.Context, j Job) error {
	name := config.IsRunName(j.Config.Resume)
	if name {
		j.Config.RunID, j.Config.Resume = j.Config.Resume, ""
	}
	return withoutLoad(ctx, j, func(p *push, ctx context.Context) error {
		if name {
			return p.forgetNamed(ctx)
		}
		return p.forgetEarlier(ctx)
	})
}

func (p *push) forgetEarlier(ctx context.Context) error {
	asked, err := p.reopen(func(runlog.Record) bool { return true })
	if errors.Is(err, runlog.ErrNoRun) {
		return p.forgetUnknown(ctx, err)
	}
	if err != nil {
		return failed(Usage, err)
	}
	if err := p.connect(ctx, asked); err != nil {
		return err
	}
	if err := p.prepareToForget(ctx, p.progress.ID()); err != nil {
		return err
	}
	p.progress.WarnOfObjects(ctx, p.progress.ID())
	if _, err := p.forgetClaims(ctx, p.progress.ID(), p.plan.Dedup == loader.DedupTx); err != nil {
		return err
	}
	return p.progress.Remove()
}

// forgetUnknown removes the claims of a run that the state folder does not know; noRun is the error that says so.
func (p *push) forgetUnknown(ctx context.Context, noRun error) error {
	id := p.Config.Resume
	if !runlog.IsID(id) {
		return &Error{Outcome: Usage, Err: fmt.Errorf("%w; ids look like %s", noRun, runlog.NewID(p.started))}
	}
	if err := runlog.RemoveRest(p.Config.State, id); err != nil {
		return err
	}
	asked, err := p.configureNew(ctx, id)
	if err != nil {
		return failed(Usage, err)
	}
	if err := p.connect(ctx, asked); err != nil {
		return err
	}
	if p.target.Can.Claims == nil {
		return &Error{Outcome: Usage, Err: fmt.Errorf("%w; %s keeps no claims to remove", noRun, p.target.Driver.Name())}
	}
	if err := p.prepareToForget(ctx, id); err != nil {
		return err
	}
	rows, err := p.forgetClaims(ctx, id, true) // a run that nobody knows is one that has claims
	if err != nil && !errors.Is(err, loader.ErrUnknownRun) {
		return err
	}
	if err := errors.Join(err, runlog.RemoveDraft(p.Config.State, id)); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("%d claims of run %s removed; the state folder has no such run", rows, id))
	return nil
}

// forgetNamed removes the claims of a named run, and its folders on this machine, while no process is at work on it.
func (p *push) forgetNamed(ctx context.Context) error {
	asked, err := p.adoptShared(ctx)
	if err != nil {
		return err
	}
	if asked.spec.Method == "" { // no process has left a record
		if asked, err = p.configure(ctx); err != nil {
			return failed(Usage, err)
		}
	}
	if err := p.connect(ctx, asked); err != nil {
		return err
	}
	claims := p.target.Can.Claims
	if claims == nil && p.store.shared == nil {
		return failed(Usage, fmt.Errorf("--run %s: %s keeps no claims, and the journals of its runs are "+
			"in an object store: give --state-dir s3://bucket/prefix",
			p.progress.ID(), p.target.Driver.Name()))
	}
	if err := p.prepareToForget(ctx, p.progress.ID()); err != nil {
		return err
	}
	if p.store.shared == nil { // processes on this machine hold the folders; those on others are fenced off
		state, id := p.Config.State, p.progress.ID()
		if err := errors.Join(runlog.RemoveRest(state, id), runlog.RemoveShards(state, id)); err != nil {
			return err
		}
	}
	if claims != nil {
		rows, err := p.forgetClaims(ctx, p.progress.Name(), p.store.shared == nil || p.plan.Dedup == loader.DedupTx)
		if err != nil {
			return err
		}
		p.Log.Info(fmt.Sprintf("%d claims of run %s removed", rows, p.progress.ID()))
	}
	if p.store.shared != nil {
		p.progress.WarnOfObjects(ctx, p.progress.ID())
		if err := p.store.shared.Remove(); err != nil {
			return fmt.Errorf("removing the journals of run %s: %w", p.progress.ID(), err)
		}
	}
	return nil
}

// prepareToForget names the run to the back-end. Silent, since the table may be gone.
func (p *push) prepareToForget(ctx context.Context, id string) error {
	_, err := p.target.Loader.Prepare(ctx, loader.Preparation{
		Run: id, Owner: owner(), Schema: p.plan.Schema(), Contract: p.plan.Contract, Create: loader.CreateNever, Silent: true,
	})
	return p.target.Judged(err)
}

// FreeKilled frees what processes with this state folder have left in the target when they were killed, as the next run
// would.
func FreeKilled(ctx context.Context, j Job) error {
	return withoutLoad(ctx, j, func(p *push, ctx context.Context) error {
		if err := p.reach(ctx); err != nil {
			return err
		}
		p.freeKilled(ctx)
		return nil
	})
}

// freeKilled frees what processes with this state folder have left in the target when they were killed: trials, and
// other runs of which they had no record yet. Neither is resumed.
func (p *push) freeKilled(ctx context.Context) {
	_ = runlog.Killed(p.Config.State, func(r runlog.Record) error {
		launched := r.Table != ""
		sameMethod := r.Plan.Method == p.plan.Method && r.Via == p.target.Store()
		if r.Target != p.target.String() || launched && r.Plan.Staged() && !sameMethod {
			// What a staged method leaves besides claims is found by that method alone.
			return errors.New("it is another target's, or another method's")
		}

		if launched {
			p.progress.WarnOfObjects(ctx, r.Run)
		}
		return p.free(ctx, r.Run)
	})
}

// free removes a run's claims, and frees its table. It asks once: what fails is tried again when the next run begins.
func (p *push) free(ctx context.Context, run string) error {
	if p.target.Can.Claims == nil || p.target.Says(loader.SinkMark) { // it keeps nothing
		return nil
	}
	err := target.WithinFence(ctx, func(bound context.Context) error {
		if err := p.prepareToForget(bound, run); err != nil {
			return err
		}
		_, _, err := p.target.Can.Claims.Forget(bound, run)
		return p.target.Judged(err)
	})
	if err != nil {
		p.notes.Warnf("run %s may still have claims, or the table: %v", run, err)
	}
	return err
}

// ForgetOlder removes the claims of all runs of the target's schema that were proven at least so long ago. Folders
// stay.
func ForgetOlder(ctx context.Context, j Job, age time.Duration) error {
	return withoutLoad(ctx, j, func(p *push, ctx context.Context) error { return p.forgetOlder(ctx, age) })
}

func (p *push) forgetOlder(ctx context.Context, age time.Duration) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	claims := p.target.Can.Claims
	if claims == nil {
		return failed(Usage, fmt.Errorf("%s keeps no claims to remove", p.target.Driver.Name()))
	}
	if err := p.prepareToForget(ctx, p.progress.ID()); err != nil {
		return err
	}
	all, err := target.Ask(ctx, p.target, "runs", func(ctx context.Context) ([]loader.RunRow, error) {
		return claims.Runs(ctx, "")
	})
	if err != nil {
		return err
	}
	old := provenBefore(all, p.started.Add(-age))
	var total int64
	for _, name := range old {
		n, err := p.forgetClaims(ctx, name, false) // somebody else may have forgotten it
		if total += n; err != nil {
			return err
		}
	}
	p.Log.Info(fmt.Sprintf("%d claims of %d runs removed", total, len(old)))
	return nil
}

// provenBefore returns the names of runs all of whose rows were proven by then. Of a name that was used again the
// forgotten rows do not count.
func provenBefore(all []loader.RunRow, then time.Time) (names []string) {
	keep := map[string]bool{}
	for _, r := range all {
		switch {
		case r.State == loader.RunForgotten:
		case r.State != loader.RunProven || r.Changed.After(then):
			keep[r.Name] = true
		default:
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return keep[name] })
}

// forgetClaims removes the run's claims and ends every process that works on it. A run that the database does not know
// is an error if it has claims: they are in another one.
func (p *push) forgetClaims(ctx context.Context, run string, hasClaims bool) (rows int64, err error) {
	if p.target.Can.Claims == nil {
		return 0, nil
	}
	known := false
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) (err error) {
		rows, known, err = p.target.Can.Claims.Forget(ctx, run)
		return err
	})
	if err != nil {
		return rows, fmt.Errorf("removing the claims of run %s: %w", run, err)
	}
	if !known && hasClaims {
		return rows, &loader.Error{
			Op: "forget", Applied: loader.No, Err: fmt.Errorf("%w %s", loader.ErrUnknownRun, run),
			Hint: "give the TARGET that terapush runs shows; if that database is gone, " +
				"remove the run's folder in " + p.Config.State,
		}
	}
	return rows, nil
}
