package oracle

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	r, err := relationOf(ctx, c, s.Claims)
	if err != nil || r == nil {
		return false, err
	}
	if r.Kind != "" {
		return false, sqlload.Refuse("rename or drop it, or choose another schema",
			"the claim table %s is a %s", s.Claims, r.Kind)
	}
	key, err := hasUniqueIndex(ctx, c, r, "RUN", "BATCH")
	if err == nil && !key {
		err = sqlload.Refuse("drop it when no run needs it any more: the next run creates it",
			"the claim table %s has no unique key on exactly (run, batch) that is checked at once: a batch could be claimed "+
				"twice", s.Claims)
	}
	return true, err
}

// CreateRuns implements sqlload.Claims.
func (l catalog) CreateRuns(s *sqlload.State) string { return l.statements(s).createRuns() }

// SelectRunSchemas implements sqlload.Claims.
func (catalog) SelectRunSchemas() string {
	return "SELECT owner FROM all_tables WHERE table_name = " + sqlload.Literal(strings.ToUpper(sqlload.RunsTable))
}

// Guard implements sqlload.Claims. DDL commits, and so ends every lock before it begins. It does not wait for others by
// itself (ORA-00054).
func (catalog) Guard(*sqlload.State) sqlload.Guard { return sqlload.Guard{} }

// Fence implements sqlload.Claims by locks on the tables that wait for the transactions which have changed them, and
// that a claim waits for in its turn, before it reads the run's row; see statements.claim. All take them in the same
// order.
func (l catalog) Fence(ctx context.Context, s *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error) error {
	tables := append([]string{s.Runs()}, f.Claims...)
	return l.withLink(ctx, func(k *link) error {
		try := func(wait time.Duration) (bool, error) { return k.changeAlone(ctx, wait, tables, change) }
		return sqlload.AwaitFence(ctx, try, holders)
	})
}

// holders says where the sessions are named that hold up a fence: to name or end them takes an administrator's
// privileges.
func holders() (string, error) {
	return "V$LOCKED_OBJECT names their sessions to an administrator; SQLNET.EXPIRE_TIME in the server's sqlnet.ora makes it " +
		"notice that a client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others", nil
}

// changeAlone calls change while nobody else changes the tables, and commits. It reports false if the tables were not
// free in time: then nothing has changed.
func (k *link) changeAlone(
	ctx context.Context, wait time.Duration, tables []string, change func(sqlload.Conn) error,
) (bool, error) {
	if err := k.begin(ctx); err != nil {
		return false, err
	}
	for _, table := range tables {
		_, err := k.exec(ctx, lockAlone(table, wait))
		if isORA(err, codeBusy, codeWaitedForLock, codeDeadlock) {
			return false, k.rollback(ctx)
		}
		if err != nil {
			return false, err
		}
	}
	if err := change(begun{k}); err != nil {
		return false, err // the end of the connection rolls back
	}
	err := k.commit(ctx)
	return err == nil, err
}

// begun is a link whose statements are part of the transaction that it has begun.
type begun struct{ *link }

// Exec implements sqlload.Conn.
func (b begun) Exec(ctx context.Context, statement string) (rows int64, err error) {
	return b.exec(ctx, statement)
}

// EndOthers implements sqlload.Claims. It does not kill sessions, which would need the privilege ALTER SYSTEM.
func (l catalog) EndOthers(context.Context, *sqlload.State, loader.Ref) error { return nil }

// ResolveBatch implements sqlload.Claims. It waits until no earlier attempt can change anything, and then looks.
//
// The answer is final because a session sends COMMIT only after the answers to everything before it: an attempt that
// may still commit already holds its claim. If the claim can be inserted, no attempt has committed and none
// can: a later transaction waits for this one. The claim is rolled back.
func (l catalog) ResolveBatch(
	ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref,
) (loader.Resolution, error) {
	k := c.(*link)
	taken, err := k.tryClaim(ctx, l.statements(s), ref)
	switch {
	case err != nil:
		return loader.Resolution{}, k.waitError("wait for the claim of the batch", err)
	case !taken:
		return loader.Resolution{Applied: loader.No}, k.rollback(ctx)
	}
	found, err := s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err == nil && found.Applied == loader.No {
		err = sqlload.ErrClaimVanished
	}
	return found, err
}

// tryClaim begins a transaction with the claim of a batch whoever may write, and reports whether the claim is taken.
// The insert waits while another transaction holds the claim.
func (k *link) tryClaim(ctx context.Context, s statements, ref loader.Ref) (taken bool, err error) {
	if err := k.begin(ctx); err != nil {
		return false, err
	}
	_, err = k.exec(ctx, s.TryClaim(ref))
	if isORA(err, codeUnique) {
		return true, nil
	}
	return false, err
}

// insertClaim begins a transaction with the claim of a batch, from the run's row.
func (k *link) insertClaim(ctx context.Context, s statements, ref loader.Ref) (sqlload.Sent, error) {
	if err := k.begin(ctx); err != nil {
		return sqlload.Sent{}, err
	}
	row := s.Row
	_, err := k.execPrepared(ctx, &k.claim, s.claim(), cmp.Or(row.Run, ref.ID.Run), ref.ID.Number, ref.First, ref.Rows,
		row.Run, row.Part, row.Epoch)
	if isORA(err, codeMayNotWrite) {
		return sqlload.Sent{}, nil
	}
	if !isORA(err, codeUnique) {
		return sqlload.Sent{Claimed: err == nil}, err
	}
	if err := k.rollback(ctx); err != nil {
		return sqlload.Sent{}, err
	}
	rows, err := sqlload.Number(ctx, k, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	return sqlload.Sent{Taken: true, Rows: rows}, err
}

// waitError is the error of waiting for an earlier attempt. On a timeout the server may not have noticed that the
// client is gone, for which only these two settings help.
func (k *link) waitError(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !isORA(err, codeBusy, codeWaitedForLock) {
		return failed(op, err)
	}
	return &loader.Error{
		Op: op, Applied: loader.Unknown, Err: err,
		Hint: "an earlier attempt is still open on the server: SQLNET.EXPIRE_TIME in its sqlnet.ora makes it notice that a " +
			"client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others",
	}
}
