package push

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// A run with a name of the user's (--run-id) may be sent by several processes, its shards, and continues wherever one of
// them is started again: its plan follows from the flags alone, a fingerprint of it is in the claim table, and the claims
// say which batches are in. Its folder on this machine is of no use to another process, and is made anew. The claims stay
// after the proof, until forget: a process that comes late finds its batches claimed.
//
// Where no claims show each batch, fingerprint and journals are in shared files instead: see runlog.Shared.

// askAgain is the time between two looks at a table that another process still holds, or has not made yet.
const askAgain = time.Second

// join begins a named run, or continues what other processes have begun.
func (p *push) join(ctx context.Context, caps loader.Caps) error {
	c := &p.Config
	if removes(loader.CreateMode(c.Create)) {
		return failed(Usage, fmt.Errorf("--run-id and --create %s: a process that is started again would remove the rows of the others; "+
			"terapush prepare does it once", c.Create))
	}
	announced, err := p.beginOrFind(ctx, caps, c.Shard.Index == 0)
	if err == nil { // with the other shards from now on, and in place of another process of this one
		err = p.waiting(ctx, func() error {
			if p.shared == nil {
				if err := runlog.RemoveRest(c.State, runlog.FolderOf(c.RunID, c.Shard)); err != nil {
					return err
				}
			}
			ours := p.preparation(c.RunID, loader.CreateNever)
			ours.Resume = p.shared != nil // others may have put rows or objects there
			if err := p.target.prepare(ctx, ours); err != nil {
				return err
			}
			if err := p.take(ctx); err != nil {
				return err
			}
			if p.shared == nil {
				return p.createLog(c.RunID)
			}
			return p.takeJournal()
		})
	}
	if p.shared != nil {
		if err == nil && p.state.resumed {
			err = p.proceed(ctx, p.state.log.Record())
		}
		return err
	}
	if err != nil || announced == 0 {
		return err
	}
	p.state.resumed = true
	if err := p.state.takeClaims(ctx); err != nil {
		return err
	}
	if p.state.done.Len() > 0 && !p.target.table.HasRows {
		return loader.Final(fmt.Errorf("run %s has claims and table %s has no rows: it was emptied or made again; "+
			"terapush forget removes the claims, so that the run can begin anew", c.RunID, p.target.table.Name))
	}
	return p.plan.refit(p.state.toUpload())
}

// beginOrFind begins the run, or finds it begun; announced is what begun returns. Two processes may begin it at once, such as
// the first shard and terapush prepare: whoever comes later takes the place of one that has not announced the run, and that one
// looks again.
func (p *push) beginOrFind(ctx context.Context, caps loader.Caps, first bool) (announced int64, err error) {
	for until := time.Now().Add(p.Config.RetryFor); ; {
		announced, err = p.begun(ctx, first)
		if err == nil {
			err = p.agree(ctx, caps, announced != 0)
		}
		replaced := announced == 0 && p.state.row.Epoch != "" && errors.As(err, new(*loader.TakenOverError))
		if !replaced || time.Now().After(until) {
			return announced, err
		}

		p.state.row = loader.RunRow{}
		select {
		case <-time.After(askAgain + rand.N(askAgain)): // or the two could replace each other for ever
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// begun returns the run's fingerprint, as announced does. If there is none the first process makes the table, alone until the
// run is announced, and 0 is returned; others wait for that.
func (p *push) begun(ctx context.Context, first bool) (announced int64, err error) {
	c := &p.Config
	if err := p.share(ctx); err != nil {
		return 0, err
	}
	checked, alone := false, p.beginning(c.RunID, loader.CreateMode(c.Create))
	marks, marked := p.shared != nil && removes(alone.Create), false
	err = p.waiting(ctx, func() (err error) {
		if announced, err = p.announced(ctx); err != nil || announced != 0 {
			return err
		}
		if !first {
			return errNotBegun
		}
		if !checked {
			checked = true
			if err := p.check(ctx, c.RunID, p.plan.Plan); err != nil {
				return err
			}
		}
		if marks && !marked { // no lock keeps another prepare off; once, since this process may have to try again
			if err := p.shared.Prepare(); err != nil {
				return err
			}
			marked = true
		}
		err = p.target.prepare(ctx, alone)
		p.state.row = p.target.table.Row
		if err == nil && p.shared != nil {
			announced, err = p.announceIn(0) // by the process that was waited for
		}
		if err == nil && announced != 0 && removes(alone.Create) {
			err = loader.Final(fmt.Errorf("run %s was begun while its table was dropped or emptied: terapush forget, and prepare again", c.RunID))
		}
		return err
	})
	if refused := (*loader.Error)(nil); marked && errors.As(err, &refused) && refused.Applied == loader.No {
		err = errors.Join(err, p.shared.GiveUp())
	}
	return announced, err
}

var errNotBegun = errors.New("neither its first shard nor terapush prepare has begun it")

// waiting calls f again while another process of the same shard is at work, the run is not begun or the server is away, for
// as long as --retry-for says: a platform that starts processes again gives up a whole run for one that was refused. Of a run
// without a name f is called once.
func (p *push) waiting(ctx context.Context, f func() error) error {
	began, run := time.Now(), p.Config.RunID
	for logged := false; ; logged = true {
		err := f()
		switch {
		case run == "" || !mayHelp(err):
			return err
		case time.Since(began) >= p.Config.RetryFor:
			err = fmt.Errorf("waiting for run %s, %s: %w", run, time.Since(began).Round(time.Second), err)
			return failed(report.Failed, err) // another start may help
		case !logged:
			p.Log.Info("waiting for run "+run, "most", p.Config.RetryFor, "why", err)
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mayHelp reports whether it may help to wait.
func mayHelp(err error) bool {
	for _, known := range []error{loader.ErrBegun, runlog.ErrBusy, runlog.ErrPreparing, errNotBegun, errTooLate} {
		if errors.Is(err, known) {
			return true
		}
	}
	if errors.As(err, new(*loader.BusyError)) {
		return true
	}
	v := loader.VerdictOf(err)
	return v.Retry && (v.Class == loader.ClassConnection || v.Class == loader.ClassShutdown || v.Class == loader.ClassThrottled)
}

// announced returns the run's fingerprint in the claim table or the shared files, 0 if there is none or no table.
func (p *push) announced(ctx context.Context) (int64, error) {
	look := p.preparation(p.Config.RunID, loader.CreateNever)
	look.Shard = ""
	if p.shared != nil {
		announced, err := p.announceIn(0)
		if err == nil && announced != 0 {
			look.Run, look.Resume = p.Config.RunID, true
			err = p.target.prepare(ctx, look)
		}
		if err == nil && announced != 0 {
			err = p.lookUp(ctx)
		}
		return announced, err
	}
	err := p.target.prepare(ctx, look)
	if errors.Is(err, loader.ErrNoTable) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err = p.lookUp(ctx); err != nil || len(p.state.shards) == 0 {
		return 0, err
	}
	return p.state.shards[0].Fingerprint, nil
}

// lookUp finds the rows of a named run in the database. One that is over is an error to a shard: its name stands for nothing
// until somebody begins a run again.
func (p *push) lookUp(ctx context.Context) error {
	p.state.shards = nil
	if p.target.can.Claims == nil || p.silent() {
		return nil
	}
	run := p.state.runName()
	var found []loader.RunRow
	err := p.target.askSoon(ctx, "run "+run, func(ctx context.Context) (err error) {
		found, err = p.target.can.Claims.Runs(ctx, run)
		return err
	})
	if err != nil || len(found) == 0 {
		return err
	}
	row := found[0]
	over := row.State == loader.RunForgotten || row.State == loader.RunGone
	switch {
	case over && (row.State == loader.RunGone || p.Config.Shard.Count > 0):
		anew := "terapush prepare begins it anew"
		if row.State == loader.RunGone {
			anew = "terapush forget frees its name"
		}
		return fmt.Errorf("%w; %s", loader.Final(&loader.TakenOverError{Run: run, Row: &row}), anew)
	case over:
		return nil
	}
	p.state.shards, p.state.row.Run = found, row.Run // its claims can be read
	return nil
}

// agree fixes the plan and compares it with that of the run's other processes. The first one finds the table empty, and
// proves its transactions; rows that others find are the run's.
func (p *push) agree(ctx context.Context, caps loader.Caps, begun bool) (err error) {
	run := p.Config.RunID
	first := p.Config.FirstKey.Key
	if begun && len(p.state.shards) > 0 && p.Config.Append && !p.Config.FirstKey.Given {
		first = p.state.shards[0].Keys.First
	}
	told := begun // others may build upon it from now on
	if !begun {
		defer func() {
			if err != nil && !told {
				p.giveBack(ctx)
			}
		}()
		if err := p.refuseRows(); err != nil {
			return err
		}
		first, err = p.firstKey(ctx)
	}
	if err == nil && !begun {
		if err = p.probe(ctx, run, first, caps); err == nil && p.shared == nil && !p.claimsBatches() {
			err = failed(Usage, fmt.Errorf("--run-id: table %s does not roll back, so claims say nothing of its batches: "+
				"give --delivery at-least-once and --state-dir s3://bucket/prefix", p.target.table.Name))
		}
	}
	if err == nil {
		err = p.plan.fix(first)
	}
	if err != nil {
		return err
	}
	table := p.target.table.Name
	if p.target.can.OnlyObjects() { // their folder has the run's name, which has an id only when it is announced
		table = path.Join(p.target.Hosts[0], p.target.Database)
	}
	is := p.plan.fingerprint(table)
	was := is
	told = true
	switch {
	case p.shared != nil:
		was, err = p.announceIn(is)
	case begun:
		was = p.state.shards[0].Fingerprint
	}
	if err == nil && !begun && was == is && p.state.row.Epoch != "" {
		err = p.target.ask(ctx, "run "+run, func(ctx context.Context) error {
			return p.target.can.Claims.Announce(ctx, is)
		})
	}
	if err == nil && was != is {
		err = failed(Usage, fmt.Errorf("run %s was begun with other rows or another table: all its processes need the same flags that decide about table, rows and batches, "+
			"and the same release", run))
	}
	return err
}

// fingerprint returns a number above 0 for the table and all of the plan that decides about rows and batches.
func (p *plan) fingerprint(table string) int64 {
	same := p.Plan
	same.Shard, same.Workers, same.Buffers, same.Memory = config.Shard{}, 0, 0, 0
	text, err := json.Marshal(same)
	if err != nil {
		panic(err) // numbers and texts
	}
	sum := sha256.Sum256(append(text, table...))
	return int64(binary.BigEndian.Uint64(sum[:])>>2) + 1
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
	caps, err := p.openNamed(ctx)
	if err != nil {
		return err
	}
	announced, err := p.beginOrFind(ctx, caps, true)
	if err != nil {
		return err
	}
	done := "announced"
	if announced != 0 {
		done = "announced already"
	}
	p.Log.Info(fmt.Sprintf("run %s is %s: %d rows in %d batches into table %s", p.Config.RunID, done, p.plan.Rows, p.plan.Batches(), p.target.Table))
	return nil
}

// openNamed connects, and agrees on the contract of a named run.
func (p *push) openNamed(ctx context.Context) (caps loader.Caps, err error) {
	if err = p.configure(); err != nil {
		return caps, failed(Usage, err)
	}
	if err = p.waiting(ctx, func() error { return p.target.open(ctx) }); err != nil {
		return caps, err
	}
	caps = p.target.loader.Caps()
	draft, err := p.draft(caps)
	p.plan.Plan = draft
	return caps, failed(Usage, err)
}
