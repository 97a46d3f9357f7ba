package push

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// A run with a name of the user's (--run-id) may be sent by several processes, its shards, and continues wherever one
// of them is started again: its plan follows from the flags alone, a fingerprint of it is in the claim table, and the
// claims say which batches are in. Its folder on this machine is of no use to another process, and is made anew. The
// claims stay after the proof, until forget: a process that comes late finds its batches claimed.
//
// Where no claims show each batch, fingerprint and journals are in shared files instead: see runlog.Shared.

// named reports whether the user has given the run a name.
func (p *push) named() bool { return p.Config.RunID != "" }

// announced returns a row of a named run. Its fingerprint is the one in the shared files, if there are some; it is 0 if
// the run was not begun, or has no table.
func (p *push) announced(ctx context.Context) (row loader.RunRow, err error) {
	if !p.named() {
		return row, nil
	}
	if p.store.shared != nil {
		return p.announcedInStore(ctx)
	}
	look := p.preparation(loader.CreateNever)
	look.Shard = ""
	err = p.target.Prepare(ctx, look)
	if errors.Is(err, loader.ErrNoTable) {
		return row, nil
	}
	if err != nil {
		return row, err
	}
	return p.lookUp(ctx)
}

// lookUp finds a row of a named run in the database; the zero row if it has none. A run that is over is an error to a
// shard: its name stands for nothing until somebody begins a run again.
func (p *push) lookUp(ctx context.Context) (row loader.RunRow, err error) {
	if p.target.Can.Claims == nil || p.silent {
		return row, nil
	}
	name := p.progress.Name()
	found, err := target.AskSoon(ctx, p.target, "run "+name, func(ctx context.Context) ([]loader.RunRow, error) {
		return p.target.Can.Claims.Runs(ctx, name)
	})
	if err != nil || len(found) == 0 {
		return row, err
	}
	row = found[0]
	over := row.State == loader.RunForgotten || row.State == loader.RunGone
	switch {
	case over && (row.State == loader.RunGone || p.Config.Shard.Count > 0):
		anew := "terapush prepare begins it anew"
		if row.State == loader.RunGone {
			anew = "terapush forget frees its name"
		}
		return row, fmt.Errorf("%w; %s", loader.Final(&loader.TakenOverError{Run: name, Row: &row}), anew)
	case over:
		return loader.RunRow{}, nil
	}
	p.progress.ReadClaimsOf(row.Run) // its claims can be read
	return row, nil
}

// agree plans as the run's other processes have, and returns an error if the plan is another one.
func (p *push) agree(announced loader.RunRow) error {
	first := p.Config.FirstKey.Key
	if announced.Name != "" && p.Config.Append && !p.Config.FirstKey.Given {
		first = announced.Keys.First
	}
	if err := p.replanAs(p.spec.From(first)); err != nil {
		return err
	}
	return p.sameRun(announced.Fingerprint)
}

func (p *push) sameRun(announced int64) error {
	if announced == p.plan.Fingerprint(p.place()) {
		return nil
	}
	return failed(Usage, fmt.Errorf("run %s was begun with other rows or another table: all its processes need the same "+
		"flags that decide about table, rows and batches, and the same release", p.progress.Name()))
}

// announce says to the other processes of a named run what it was begun with.
func (p *push) announce(ctx context.Context) error {
	fingerprint := p.plan.Fingerprint(p.place())
	if p.store.shared != nil {
		kept, err := p.announceInStore(fingerprint)
		if err != nil {
			return err
		}
		if err := p.sameRun(kept); err != nil { // another process was quicker
			return err
		}
	}
	if !p.progress.Owned() {
		return nil
	}
	return p.target.Ask(ctx, "run "+p.progress.ID(), func(ctx context.Context) error {
		return p.target.Can.Claims.Announce(ctx, fingerprint)
	})
}

var (
	errNotBegun = errors.New("neither its first shard nor terapush prepare has begun it")
	errReplaced = errors.New("another process begins it as well")
)

// pollInterval is the time between two looks at a table that another process still holds, or has not made yet. Half of
// it is left to chance, or two processes could replace each other for ever. Tests have no time for it.
var pollInterval = 2 * time.Second

// waiting calls f again while another process of the same shard is at work, the run is not begun or the server is away,
// for as long as --retry-for says: a platform that starts processes again gives up a whole run for one that was
// refused. Of a run without a name f is called once.
func (p *push) waiting(ctx context.Context, f func() error) error {
	began := time.Now()
	for logged := false; ; logged = true {
		err := f()
		switch {
		case !p.named() || !mayHelp(err), ctx.Err() != nil:
			return err
		case time.Since(began) >= p.Config.RetryFor:
			err = fmt.Errorf("waiting for run %s, %s: %w", p.progress.Name(), time.Since(began).Round(time.Second), err)
			return failed(report.Failed, err) // another start may help
		case !logged:
			p.Log.Info("waiting for run "+p.progress.Name(), "most", p.Config.RetryFor, "why", err)
		}
		select {
		case <-time.After(pollInterval/2 + rand.N(pollInterval/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mayHelp reports whether it may help to wait.
func mayHelp(err error) bool {
	known := []error{loader.ErrBegun, runlog.ErrBusy, runlog.ErrPreparing, errNotBegun, errReplaced, target.ErrTooLate}
	for _, one := range known {
		if errors.Is(err, one) {
			return true
		}
	}
	if errors.As(err, new(*loader.BusyError)) {
		return true
	}
	v := loader.VerdictOf(err)
	return v.Retry && (v.Class == loader.ClassConnection || v.Class == loader.ClassShutdown ||
		v.Class == loader.ClassThrottled)
}

// Prepare makes the table of a named run, or empties or drops it first, and announces the run. If it was announced
// before, nothing is done: its processes may be at work.
func Prepare(ctx context.Context, j Job) error {
	p, soft, end := newPush(ctx, j)
	defer end()
	err := p.prepareNamed(soft)
	return errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
}

func (p *push) prepareNamed(ctx context.Context) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	begun, err := p.find(ctx)
	if err != nil {
		return err
	}
	p.notes.WarnAll(p.warnings)
	done := "announced"
	if begun {
		done = "announced already"
	}
	p.Log.Info(fmt.Sprintf("run %s is %s: %d rows in %d batches into table %s",
		p.progress.ID(), done, p.plan.Rows, p.plan.Batches(), p.target.Table))
	return nil
}
