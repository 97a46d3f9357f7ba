package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/loader"
)

// transaction is a connection as sqlload sees it, which loads under claims.
type transaction struct {
	*link
	*ready
	insertClaim *sql.Stmt // nil before the first
}

// Claim implements sqlload.Transaction. An earlier transaction that holds the claim is waited for by the key itself.
func (t *transaction) Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error) {
	if err := t.begin(ctx); err != nil {
		return false, 0, err
	}
	_, err = t.execPrepared(ctx, &t.insertClaim, t.claim(), ref.ID.Run, ref.ID.Number, ref.First, ref.Rows)
	if err == nil {
		return false, 0, nil
	}
	if !t.is(err, codeUnique) {
		return false, 0, err
	}
	found, err := t.texts(ctx, "read the claim", t.SelectClaim(ref.ID.Run, ref.ID.Number))
	if err != nil {
		return false, 0, err
	}
	if len(found) == 0 {
		return false, 0, errors.New("the claim is taken and cannot be read: was it removed just now?")
	}
	rows, err = parseInt(found[0][0])
	return true, rows, err
}

// Commit implements sqlload.Transaction. Most errors leave open what the server did; some say that it rolled back.
func (t *transaction) Commit(ctx context.Context) error {
	err := t.commit(ctx)
	number, _, said := numberOf(err)
	if errors.Is(err, errNotSent) || said && rolledBack(number) {
		return &loader.Error{Op: "commit", Applied: loader.No, Err: err}
	}
	return err
}

// Rollback implements sqlload.Transaction.
func (t *transaction) Rollback(ctx context.Context) error { return t.rollback(ctx) }

// unclaimed is a session whose contract knows no claims.
type unclaimed struct{ *session }

// Claim only begins the transaction.
func (u unclaimed) Claim(ctx context.Context, _ loader.Ref) (bool, int64, error) {
	return false, 0, u.begin(ctx)
}

// execPrepared runs a statement that is prepared once, and after an error anew.
func (k *link) execPrepared(ctx context.Context, s **sql.Stmt, text string, args ...any) (rows int64, err error) {
	if *s == nil {
		if *s, err = k.conn.PrepareContext(ctx, text); err != nil {
			*s = nil
			return 0, k.outcome(ctx, err)
		}
	}
	result, err := (*s).ExecContext(ctx, args...)
	if rows, err = k.affected(ctx, result, err); err == nil {
		return rows, nil
	}
	if !k.dead {
		_ = (*s).Close()
	}
	*s = nil
	return 0, err
}

// Resolve waits until no earlier attempt can change anything any more, and then looks. It ends no sessions, which would
// take the privilege ALTER SYSTEM.
//
// What it finds is final because a session sends COMMIT only after the answers to everything before it: an attempt that
// may still commit holds its claim, or its row, already.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (res loader.Resolution, err error) {
	r, err := l.prepared()
	if err != nil {
		return res, err
	}
	err = l.somewhere(ctx, func(k *link) error {
		t := &transaction{link: k, ready: r}
		defer func() { _ = t.rollback(ctx) }()
		if r.contract.Dedup == loader.DedupRange {
			res, err = t.front(ctx, ref)
			return err
		}
		res.Applied, err = t.claimed(ctx, ref)
		return err
	})
	if err != nil {
		return loader.Resolution{}, leaveOpen(failed("look for the batch", err))
	}
	return res, nil
}

// leaveOpen takes back what an error may say about the rows: the look's failure is not the batch's.
func leaveOpen(err error) error {
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		known.Applied = loader.Unknown
	}
	return err
}

// claimed inserts the batch's claim, which waits as long as an earlier transaction holds it. Where that goes in, none has
// committed, and none can any more: a transaction which comes later waits for this one, or finds no claim and is new.
func (t *transaction) claimed(ctx context.Context, ref loader.Ref) (loader.Applied, error) {
	taken, _, err := t.Claim(ctx, ref)
	switch {
	case err != nil:
		return loader.Unknown, t.inVain("wait for the claim of the batch", err)
	case taken:
		return loader.Yes, nil
	}
	return loader.No, t.Rollback(ctx)
}

// front finds how many rows at the front of the batch are in the table, once nobody writes to it any more: the lock waits
// for all who have uncommitted rows there. If what is there is no front part, something else has written these keys.
func (t *transaction) front(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	if err := t.begin(ctx); err != nil {
		return loader.Resolution{}, err
	}
	if _, err := t.exec(ctx, t.lockTable()); err != nil {
		return loader.Resolution{}, t.inVain("wait for those who write to "+t.Table, err)
	}
	found, err := t.texts(ctx, "look for the batch's rows", t.selectBatch(ref))
	if err != nil {
		return loader.Resolution{}, err
	}
	if len(found) != 1 || len(found[0]) != 3 {
		return loader.Resolution{}, errors.New("the server answered no count")
	}
	n, err := parseInt(found[0][0])
	if err != nil || n == 0 {
		return loader.Resolution{Applied: loader.No}, err
	}
	first, err := parseInt(found[0][1])
	if err != nil {
		return loader.Resolution{}, err
	}
	last, err := parseInt(found[0][2])
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case first != ref.First || last != ref.First+n-1:
		return loader.Resolution{Reason: fmt.Sprintf("batch %v: %d rows from %d to %d are there, which is not the front of %d to %d "+
			"(something else writes to the table: load the range again into an empty table)",
			ref.ID, n, first, last, ref.First, ref.First+ref.Rows-1)}, nil
	case n == ref.Rows:
		return loader.Resolution{Applied: loader.Yes, Rows: n}, nil
	}
	return loader.Resolution{Applied: loader.No, Rows: n}, nil
}

// inVain is the error of a look that waits for an earlier attempt. Where that has not ended in time, the server may not
// have noticed that its client is gone: nothing but these two settings makes it look, or end a session that others wait for.
func (t *transaction) inVain(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !t.is(err, codeBusy, codeWaitedForLock) {
		return failed(op, err)
	}
	return &loader.Error{
		Op: op, Applied: loader.Unknown, Err: err,
		Hint: "an earlier attempt is still open on the server: SQLNET.EXPIRE_TIME in its sqlnet.ora has it notice that a client is " +
			"gone, and MAX_IDLE_BLOCKER_TIME has it end idle sessions that others wait for",
	}
}

// Claimed lists the claims of a run.
func (l *opened) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	r, err := l.prepared()
	if err != nil {
		return err
	}
	return l.somewhere(ctx, func(k *link) error {
		return k.each(ctx, "read the claims of run "+run, r.SelectClaims(run), func(row []string) error {
			number, err := parseInt(row[0])
			if err != nil {
				return err
			}
			rows, err := parseInt(row[1])
			if err != nil {
				return err
			}
			return f(number, rows)
		})
	})
}

// Forget removes the run's claims and its reservation.
func (l *opened) Forget(ctx context.Context, run string) (rows int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	err = l.somewhere(ctx, func(k *link) error {
		if err := k.begin(ctx); err != nil {
			return err
		}
		rows, err = k.exec(ctx, r.DeleteClaims(run))
		if err == nil {
			err = k.commit(ctx)
		}
		return failed("remove the claims of run "+run, err)
	})
	return rows, err
}

func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server answered %q where a number was expected", text)
	}
	return n, nil
}
