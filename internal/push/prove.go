package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// prove closes the run and verifies that every row arrived.
func (p *push) prove(ctx context.Context) error {
	if err := p.settle(ctx, loader.RunClosed); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	prove := p.verify
	if p.state.row.Epoch == "" {
		prove = p.verifyClosed
	}
	if err := prove(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if sizer := p.target.can.Sizer; sizer != nil && p.verified.Mode.Scans() > 0 {
		err := p.target.ask(ctx, "size", func(ctx context.Context) (err error) {
			p.stored, err = sizer.Stored(ctx)
			return err
		})
		if err != nil {
			p.notes.warnf("the table's size is not known: %v", err)
		}
	}
	var err error
	if p.verified.Mode == verify.Count || p.verified.Mode == verify.Full {
		err = failed(report.Failed, p.finish(ctx))
	}
	// A row that the server did not take may be counted all the same: another program's, with the same key.
	if n := p.meters.stats.Snapshot().MissingRows; n != 0 {
		err = errors.Join(err, &Error{Outcome: report.Rejected, Err: p.suspects(fmt.Errorf("the server took %d rows less than it was sent", n))})
	}
	return err
}

func (p *push) verify(ctx context.Context) error {
	p.meters.stats.Phase(event.Verify)
	mode, warning := verify.Possible(p.target.can, verify.Mode(p.Config.Verify))
	if warning != "" {
		p.notes.warn(warning)
	}
	rows := p.plan.Rows
	if !p.plan.Shard.Whole() && mode != verify.None { // what the others have sent is not to be expected yet
		mode, rows = verify.Ack, p.plan.PartRows()
	}
	var err error
	p.verified, err = verify.Run(ctx, p.target.can, mode, verify.Expect{
		FirstKey: p.plan.FirstKey, Rows: rows, BatchRows: p.plan.BatchRows, Distinct: p.plan.DistinctRows,
		Dataset: p.plan.data, VerifyRows: p.Config.VerifyRows, Seed: p.plan.Seed,
		Workers: cmp.Or(p.Config.VerifyWorkers, p.plan.Workers), Progress: p.progress(),
		Saved: keptProof{p.state.log}, Identity: p.state.log.Record().Identity,
		Acked: p.meters.stats.Snapshot().Rows, Run: p.state.run(), Length: p.state.lengths.of, Retry: p.target.ask,
	})
	if len(p.verified.Strange) > 0 {
		p.notes.warnf("objects under the run's prefix that are none of its batches, among them %s", strings.Join(p.verified.Strange, ", "))
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if mode == verify.None {
		return nil
	}
	p.verified.Untaken = p.meters.stats.Snapshot().MissingRows
	v := event.Verification{
		OK: p.verified.OK && p.verified.Untaken == 0, ExpectedRows: p.verified.ExpectedRows, FoundRows: p.verified.FoundRows,
	}
	p.meters.stats.Verified(v)
	if !p.verified.OK {
		return &Error{Outcome: report.VerificationFailed, Err: p.suspects(errors.New(p.verified.Failure()))}
	}
	return nil
}

// verifyClosed is verify for a run that this process does not own, and that nobody may have opened meanwhile.
func (p *push) verifyClosed(ctx context.Context) error {
	before, err := p.closed(ctx, p.state.runName())
	if err != nil {
		return err
	}
	if err := p.verify(ctx); err != nil {
		return err
	}
	after, err := p.closed(ctx, p.state.runName())
	if err == nil && !slices.Equal(before, after) {
		err = fmt.Errorf("run %s was opened while it was counted: verify it again", p.state.runName())
	}
	return err
}

// blameTable adds the suspects to an error of rows that the server refused or did not take.
func (p *push) blameTable(err error) error {
	switch loader.VerdictOf(err).Class {
	case loader.ClassRows, loader.ClassPermission, loader.ClassConstraint, loader.ClassData:
		return p.suspects(err)
	}
	return err
}

// suspects adds to an error what the table does by itself, which may be its reason.
func (p *push) suspects(err error) error {
	can := p.target.can.Suspecter
	if can == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), preflightTime) // the run may have ended
	defer cancel()
	found, problem := can.Suspects(ctx)
	if problem != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; the reason may be %s", err, strings.Join(found, ", or "))
}

// progress returns what shows how far a proof is, of which an earlier process may have done a part.
func (p *push) progress() func(share float64, rows int64) {
	earlier := -1.0
	return func(share float64, rows int64) {
		if earlier < 0 {
			earlier = share
		}
		p.meters.stats.Verified(event.Verification{ExpectedRows: p.plan.Rows, FoundRows: rows, Share: share, Earlier: earlier})
	}
}

// keptProof keeps in the run's folder what a proof has counted. Without it an interrupted one starts over, which is no
// reason to fail.
type keptProof struct{ *runlog.Log }

func (k keptProof) Load() []byte { return k.Proof() }

func (k keptProof) Save(text []byte) { _ = k.SaveProof(text) }

// finish records that the run is verified, in the database and then on disk: what was counted proves nothing if another
// process has the run by now.
func (p *push) finish(ctx context.Context) error {
	if err := p.settle(ctx, loader.RunProven); err != nil {
		return err
	}
	r := p.state.log.Record()
	r.Stage = runlog.Verified
	return p.state.log.Save(r)
}

// settle closes the run in the database, or says that it is proven. The error is a *loader.TakenOverError if another process
// has it: whatever was counted may have changed since.
func (p *push) settle(ctx context.Context, state loader.RunState) error {
	if p.target.can.Claims == nil || p.state.row.Epoch == "" {
		return nil
	}
	keys := loader.KeyRange{First: p.plan.FirstKey, Last: p.plan.FirstKey + p.plan.Rows - 1}
	return p.target.ask(ctx, "run", func(ctx context.Context) error {
		return p.target.can.Claims.Settle(ctx, state, keys)
	})
}

// closed returns the epochs of a run that this process does not own, and an error unless it is closed: a proof does not count
// rows to which a process may still add some.
func (p *push) closed(ctx context.Context, name string) (epochs []string, err error) {
	claims := p.target.can.Claims
	if claims == nil || p.silent() {
		return nil, p.samePlace()
	}
	var found []loader.RunRow
	err = p.target.ask(ctx, "run", func(ctx context.Context) (err error) {
		found, err = claims.Runs(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && p.plan.Dedup == loader.DedupTx {
		return nil, loader.Final(fmt.Errorf("%w %s; terapush runs lists the targets of all runs", loader.ErrUnknownRun, name))
	}
	if len(found) == 0 {
		return nil, p.samePlace()
	}
	for _, r := range found {
		switch r.State {
		case loader.RunOpen:
			return nil, fmt.Errorf("run %s is open: %s may still write; finish it with push --resume %s", name, r.Owner, name)
		case loader.RunForgotten, loader.RunGone:
			return nil, loader.Final(&loader.TakenOverError{Run: name, Row: &r})
		}
		epochs = append(epochs, r.Epoch)
	}
	return epochs, nil
}

// measureCost asks what the load cost the server, however it ended. All clocks have stopped, so the answer is in no
// rate.
func (p *push) measureCost(ctx context.Context) {
	measurer := p.target.can.Measurer
	if measurer == nil || !p.loaded || ctx.Err() != nil {
		return
	}
	bound, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	var notes []string
	p.cost, notes = measurer.Measured(bound)
	p.notes.warnAll(notes)
}

// Verify verifies an earlier run again, from its record alone, and changes nothing. Config.Resume is the run's id; the
// run's flags must be in the configuration.
func Verify(ctx context.Context, j Job) (*report.Report, error) {
	p, ctx, end := newPush(ctx, j)
	defer end()
	prove := p.verifyEarlier
	if j.Config.Resume == "" {
		prove = p.verifyNamed
	}
	err := prove(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

func (p *push) verifyEarlier(ctx context.Context) error {
	record, err := p.reopen(ctx, p.state.keepLength, func(r runlog.Record) bool { return r.Plan.Dedup == loader.DedupTx })
	if err == nil {
		err = p.target.prepare(ctx, p.preparation(record.Run, loader.CreateNever))
	}
	if err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	if record.Stage == runlog.Loading {
		return failed(report.PreflightFailed, fmt.Errorf("run %s is not loaded to its end: finish it with push --resume", record.Run))
	}
	if verify.Mode(p.Config.Verify) != verify.Full {
		p.Config.Verify = string(verify.Count) // the run's own mode may prove nothing
	}
	end, err := p.watch()
	if err != nil {
		return err
	}
	defer end()
	return p.orInterrupted(report.Failed, p.verifyClosed(ctx))
}

// Forget removes a run's claims from the target and its folder from the state folder. Objects stay, and a warning names
// their place. If the state folder does not know the run, only the claims are removed.
func Forget(ctx context.Context, j Job) error {
	p, ctx, end := newPush(ctx, j)
	defer end()
	if config.IsRunName(j.Config.Resume) {
		return errors.Join(p.orInterrupted(report.PreflightFailed, p.forgetNamed(ctx)), p.close())
	}
	record, err := p.reopen(ctx, func(event.Event) {}, func(runlog.Record) bool { return true })
	if errors.Is(err, runlog.ErrNoRun) {
		return errors.Join(p.orInterrupted(report.PreflightFailed, p.forgetUnknown(ctx, err)), p.close())
	}
	if err == nil {
		err = p.prepareToForget(ctx, record.Run)
	}
	if err != nil {
		return errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
	}
	p.state.warnOfObjects(ctx)
	if _, err := p.forgetClaims(ctx, record.Run); err != nil {
		return errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
	}
	folder := p.state.log
	p.state.log = nil
	return errors.Join(folder.Remove(), p.close())
}

// prepareToForget names the run to the back-end. Silent, since the table may be gone.
func (p *push) prepareToForget(ctx context.Context, run string) error {
	_, err := p.target.loader.Prepare(ctx, loader.Preparation{
		Run: run, Owner: owner(), Schema: p.plan.data.Schema(), Contract: p.plan.Contract, Create: loader.CreateNever, Silent: true,
	})
	return err
}

// forgetUnknown removes the claims of a run that the state folder does not know; noRun is the error that says so.
func (p *push) forgetUnknown(ctx context.Context, noRun error) error {
	run := p.Config.Resume
	if !runlog.IsID(run) {
		return failed(Usage, fmt.Errorf("%w; ids look like %s", noRun, runlog.NewID(p.started)))
	}
	if err := runlog.RemoveRest(p.Config.State, run); err != nil {
		return err
	}
	if err := p.configure(); err != nil {
		return failed(Usage, err)
	}
	if err := p.target.open(ctx); err != nil {
		return err
	}
	if p.target.can.Claims == nil {
		return failed(Usage, fmt.Errorf("%w; %s keeps no claims to remove", noRun, p.target.driver.Name()))
	}
	if err := p.prepareToForget(ctx, run); err != nil {
		return err
	}
	p.plan.Dedup = loader.DedupTx // a run that nobody knows is one that has claims
	rows, err := p.forgetClaims(ctx, run)
	if err != nil && !errors.Is(err, loader.ErrUnknownRun) {
		return err
	}
	if err := errors.Join(err, runlog.RemoveBegun(p.Config.State, run)); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("%d claims of run %s removed; the state folder has no such run", rows, run))
	return nil
}

// ForgetOlder removes the claims of all runs of the target's schema that were proven at least so long ago. Folders stay.
func ForgetOlder(ctx context.Context, j Job, age time.Duration) error {
	p, ctx, end := newPush(ctx, j)
	defer end()
	return errors.Join(p.orInterrupted(report.PreflightFailed, p.forgetOlder(ctx, age)), p.close())
}

func (p *push) forgetOlder(ctx context.Context, age time.Duration) error {
	if err := p.configure(); err != nil {
		return failed(Usage, err)
	}
	if err := p.target.open(ctx); err != nil {
		return err
	}
	claims := p.target.can.Claims
	if claims == nil {
		return failed(Usage, fmt.Errorf("%s keeps no claims to remove", p.target.driver.Name()))
	}
	if err := p.prepareToForget(ctx, runlog.NewID(p.started)); err != nil {
		return err
	}
	var all []loader.RunRow
	err := p.target.ask(ctx, "runs", func(ctx context.Context) (err error) {
		all, err = claims.Runs(ctx, "")
		return err
	})
	if err != nil {
		return err
	}
	old := provenBefore(all, p.started.Add(-age))
	var total int64
	for _, name := range old {
		n, err := p.forgetClaims(ctx, name)
		if total += n; err != nil {
			return err
		}
	}
	p.Log.Info(fmt.Sprintf("%d claims of %d runs removed", total, len(old)))
	return nil
}

// provenBefore returns the names of runs all of whose rows were proven by then. Of a name that was used again the forgotten
// rows do not count.
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

// forgetClaims removes the run's claims and ends every process that works on it. A run that the database does not know is an
// error if it has claims: they are in another one.
func (p *push) forgetClaims(ctx context.Context, run string) (rows int64, err error) {
	if p.target.can.Claims == nil {
		return 0, nil
	}
	known := false
	err = p.target.ask(ctx, "claims", func(ctx context.Context) (err error) {
		rows, known, err = p.target.can.Claims.Forget(ctx, run)
		return err
	})
	if err != nil {
		return rows, fmt.Errorf("removing the claims of run %s: %w", run, err)
	}
	if !known && p.plan.Dedup == loader.DedupTx {
		return rows, &loader.Error{
			Op: "forget", Applied: loader.No, Err: fmt.Errorf("%w %s", loader.ErrUnknownRun, run),
			Hint: "give the TARGET that terapush runs shows; if that database is gone, remove the run's folder in " + p.Config.State,
		}
	}
	return rows, nil
}
