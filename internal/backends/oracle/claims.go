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
	return l.withLink(ctx, func(k *link) error {
		lock := sqlload.TableLock{
			Lock: lockTables,
			Late: func(err error) bool { return isORA(err, codeBusy, codeWaitedForLock, codeDeadlock) },
			End:  holders,
		}
		return lock.Fence(ctx, begun{k}, append([]string{s.Runs()}, f.Claims...), change)
	})
}

// lockTables is TableLock.Lock.
func lockTables(wait time.Duration, tables []string) []string {
	statements := []string{"BEGIN"}
	for _, table := range tables {
		statements = append(statements, lockAlone(table, wait))
	}
	return statements
}

// holders says where the sessions are named that hold up a fence: to name or end them takes an administrator's
// privileges.
func holders() (string, error) {
	return "V$LOCKED_OBJECT names their sessions to an administrator; SQLNET.EXPIRE_TIME in the server's sqlnet.ora makes it " +
		"notice that a client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others", nil
}

// begun is a link whose statements are part of one transaction, which the driver begins and ends.
type begun struct{ *link }

// Exec implements sqlload.Conn.
func (b begun) Exec(ctx context.Context, statement string) (rows int64, err error) {
	switch statement {
	case "BEGIN":
		return 0, b.begin(ctx)
	case "COMMIT":
		return 0, b.commit(ctx)
	case "ROLLBACK":
		return 0, b.rollback(ctx)
	}
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
	found, err := s.WaitForClaim(ctx, begun{c.(*link)}, ref, func(err error) bool { return isORA(err, codeUnique) })
	return found, waitError("wait for the claim of the batch", err)
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
func waitError(op string, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !isORA(err, codeBusy, codeWaitedForLock) {
		return failed(op, err)
	}
	return &loader.Error{
		Op: op, Applied: loader.Unknown, Err: err,
		Hint: "an earlier attempt is still open on the server: SQLNET.EXPIRE_TIME in its sqlnet.ora makes it notice that a " +
			"client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others",
	}
}
