package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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

// ResolveBatch implements sqlload.Claims. It waits until no earlier attempt can change anything, and then looks.
//
// The answer is final because a session sends COMMIT only after the answers to everything before it: an attempt that
// may still commit already holds its claim. If the claim can be inserted, no attempt has committed and none
// can: a later transaction waits for this one. The claim is rolled back.
func (l catalog) ResolveBatch(
	ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref,
) (loader.Resolution, error) {
	found, err := s.WaitForClaim(ctx, begun{c.(*conn)}, ref, func(err error) bool { return is(err, codeUnique) })
	return found, waitError("wait for the claim of the batch", err)
}

// insertClaim begins a transaction with the claim of a batch, from the run's row.
func (k *conn) insertClaim(ctx context.Context, s statements, ref loader.Ref) (sqlload.Sent, error) {
	if err := k.begin(ctx); err != nil {
		return sqlload.Sent{}, err
	}
	row := s.Row
	_, err := k.execPrepared(ctx, &k.claim, s.claim(), cmp.Or(row.Run, ref.ID.Run), ref.ID.Number, ref.First, ref.Rows,
		row.Run, row.Part, row.Epoch)
	if is(err, codeMayNotWrite) {
		return sqlload.Sent{}, nil
	}
	if !is(err, codeUnique) {
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
func waitError(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !is(err, codeBusy, codeWaitedForLock) {
		return failed(op, err)
	}
	return &loader.Error{
		Op: op, Applied: loader.Unknown, Err: err,
		Hint: "an earlier attempt is still open on the server: SQLNET.EXPIRE_TIME in its sqlnet.ora makes it notice that a " +
			"client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others",
	}
}

// createClaims creates the claim table. In a compressed unit a claim would lock its neighbours.
func (s statements) createClaims() string {
	columns := sqlload.ClaimColumns("VARCHAR2(64)", "NUMBER(19)", "TIMESTAMP DEFAULT SYSTIMESTAMP NOT NULL")
	return "CREATE TABLE " + s.Claims + " (" + strings.Join(columns, ", ") + ") NOCOMPRESS"
}

// claim inserts the claim of a batch from the run's row, with binds for run, number, first key and rows, and for run,
// part and epoch of the row: with literals the server would parse and cache a statement for each batch.
//
// An INSERT … SELECT reads as of the time it was opened (READ COMMITTED), and the manuals do not say whether one that
// waits for its table's lock is older than the wait. So the lock is taken by a statement before it, in the same round
// trip: then the row is read as the fence has left it. No server has run this block here; go-ora's own tests execute
// such blocks.
func (s statements) claim() string {
	return "BEGIN LOCK TABLE " + s.Claims + " IN ROW EXCLUSIVE MODE; " +
		"INSERT INTO " + s.Claims + " (run, batch, first_key, row_count) SELECT :1, :2, :3, :4 FROM " + s.Runs() +
		" WHERE run = :5 AND part = :6 AND epoch = :7 AND state = 'open'; " +
		fmt.Sprintf("IF SQL%%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-%d, 'the run is not open for this process'); END IF; END;",
			codeMayNotWrite)
}
