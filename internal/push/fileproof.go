package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// firstKey returns 0, since records have no keys. It counts the rows of the table before the load, where its proof is to
// compare them: an empty table costs nothing.
func (f *fromFiles) firstKey(ctx context.Context) (int64, error) {
	p := f.p
	mode, rows := p.Config.Verify, int64(0)
	switch {
	case mode != config.VerifyAuto && mode != string(verify.Count), p.target.Found.HasRows && mode == config.VerifyAuto:
		return 0, nil
	case p.target.Found.HasRows:
		var err error
		if rows, err = target.Ask(ctx, p.target, "rows", p.target.Can.Lister.Rows); err != nil {
			return 0, err
		}
	}
	counted := *p.spec.Files
	counted.TableRows = &rows
	p.spec.Files = &counted
	return 0, nil
}

// verify compares the records of the files with what was acknowledged and what is claimed, and the table's rows with
// those that it had.
func (f *fromFiles) verify(ctx context.Context) error {
	p := f.p
	if p.mode == verify.Full {
		return failed(Usage, errors.New("--verify full reads rows back by a key, which the records of files do not have: take count"))
	}
	mode := verify.Mode(p.Config.Verify)
	before := p.plan.Files.TableRows
	switch {
	case mode == config.VerifyAuto && before != nil:
		mode = verify.Count
	case mode == config.VerifyAuto:
		mode = verify.Ack
	case mode == verify.Count && before == nil:
		p.notes.Warn("verify count is not possible: the rows of the table were not counted before the load; the claims are compared instead")
		mode = verify.Ack
	case mode == verify.None:
		p.verified = verify.Files{}.Result(mode)
		return nil
	}

	found := verify.Files{Records: p.plan.Rows, Acked: p.meters.stats.Snapshot().Rows, Labels: p.plan.Dedup == loader.DedupKey}
	var err error
	if !found.Labels {
		if found.Claimed, found.Rejected, err = p.progress.Claimed(ctx); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	if mode == verify.Count {
		found.Before = *before
		if found.After, err = target.Ask(ctx, p.target, "rows", p.target.Can.Lister.Rows); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	p.verified = found.Result(mode)
	more := p.verified.FoundRows - p.verified.ExpectedRows
	mayBeMore := p.Config.Verify == config.VerifyAuto || p.idle // nobody says that the load is alone, or it was long ago
	if alone := found.Result(verify.Ack); mode == verify.Count && more > 0 && mayBeMore && alone.OK {
		p.notes.Warnf("the table has %d rows more than the load has added: others write to it, and its rows prove nothing; "+
			"what was acknowledged is compared alone", more)
		p.verified = alone
	}
	p.meters.stats.Verified(event.Verification{OK: p.verified.OK, ExpectedRows: p.verified.ExpectedRows, FoundRows: p.verified.FoundRows})
	if !p.verified.OK {
		return &Error{Outcome: report.VerificationFailed, Err: p.target.Suspect(errors.New(p.verified.Failure()))}
	}
	return nil
}

// leftOut returns an error if records were left out: the others are in.
func (f *fromFiles) leftOut() error {
	p := f.p
	n := f.left.count()
	if found := p.verified.Files; found != nil { // this process may not know the file
		n = max(n, found.Rejected)
	}
	if n == 0 {
		return nil
	}
	where := "are in the file of --rejects"
	if f.left != nil {
		where = "are in " + f.left.path
	}
	err := fmt.Errorf("%d records were refused by the server, and %s; all others are in", n, where)
	return &Error{Outcome: report.Rejected, Err: loader.Final(err)}
}
