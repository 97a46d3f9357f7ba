package push

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
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
	if !p.progress.Owned() {
		prove = p.verifyClosed
	}
	if err := prove(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if sizer := p.target.Can.Sizer; sizer != nil && p.verified.Mode.Scans() > 0 {
		var err error
		if p.stored, err = target.Ask(ctx, p.target, "size", sizer.Stored); err != nil {
			p.notes.Warnf("the table's size is not known: %v", err)
		}
	}
	var err error
	if p.verified.Proves() {
		err = failed(report.Failed, p.recordProof(ctx))
	}
	return errors.Join(err, p.allTaken())
}

// allTaken returns an error if the server did not take each row that it was sent. Such a row may be counted all the
// same: another program's, with the same key.
func (p *push) allTaken() error {
	n := p.meters.stats.Snapshot().MissingRows
	if n == 0 {
		return p.input.leftOut()
	}
	err := fmt.Errorf("the server acknowledged %d rows too few or too many", n)
	return &Error{Outcome: report.Rejected, Err: p.target.Suspect(err)}
}

func (p *push) verify(ctx context.Context) error {
	p.meters.stats.Phase(event.Verify)
	if err := p.input.verify(ctx); err != nil || p.verified.Mode == verify.None {
		return err
	}
	p.verified.Untaken = p.meters.stats.Snapshot().MissingRows
	p.meters.stats.Verified(event.Verification{
		OK:           p.verified.OK && p.verified.Untaken == 0,
		ExpectedRows: p.verified.ExpectedRows, FoundRows: p.verified.FoundRows,
	})
	if p.verified.OK {
		return nil
	}
	return &Error{Outcome: report.VerificationFailed, Err: p.target.Suspect(errors.New(p.verified.Failure()))}
}

// verifyClosed is verify for a run that this process does not own, and that nobody may have opened meanwhile.
func (p *push) verifyClosed(ctx context.Context) error {
	before, err := p.closedEpochs(ctx)
	if err != nil {
		return err
	}
	if err := p.verify(ctx); err != nil {
		return err
	}
	after, err := p.closedEpochs(ctx)
	if err != nil || slices.Equal(before, after) {
		return err
	}
	return fmt.Errorf("run %s was opened while it was counted: verify it again", p.progress.Name())
}

// recordProof says that the run is verified, in the database and then on disk: what was counted proves nothing if
// another process has the run by now.
func (p *push) recordProof(ctx context.Context) error {
	if err := p.settle(ctx, loader.RunProven); err != nil {
		return err
	}
	r := p.progress.Log().Record()
	r.Stage = runlog.Verified
	return p.progress.Log().Save(r)
}

// settle closes the run in the database, or says that it is proven. The error is a *loader.TakenOverError if another
// process has it: whatever was counted may have changed since.
func (p *push) settle(ctx context.Context, state loader.RunState) error {
	if p.target.Can.Claims == nil || !p.progress.Owned() {
		return nil
	}
	return p.target.Ask(ctx, "run", func(ctx context.Context) error {
		return p.target.Can.Claims.Settle(ctx, state, p.plan.Keys())
	})
}

// closedEpochs returns the epochs of a run that this process does not own, and an error unless it is closed: a proof
// does not count rows to which a process may still add some.
func (p *push) closedEpochs(ctx context.Context) (epochs []string, err error) {
	claims, name := p.target.Can.Claims, p.progress.Name()
	if claims == nil || p.silent {
		return nil, p.samePlace()
	}
	found, err := target.Ask(ctx, p.target, "run", func(ctx context.Context) ([]loader.RunRow, error) {
		return claims.Runs(ctx, name)
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
			return nil, fmt.Errorf("run %s is open: %s may still write; finish it with %s --resume %s",
				name, r.Owner, p.input.command(), name)
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
	measurer := p.target.Can.Measurer
	if measurer == nil || !p.loaded || ctx.Err() != nil {
		return
	}
	bound, cancel := context.WithTimeout(ctx, target.PreflightTime)
	defer cancel()
	var notes []string
	p.cost, notes = measurer.Measured(bound)
	p.notes.WarnAll(notes)
}
