package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sqltx"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// claimStatements are those that need no schema, so that forget works without Prepare.
func (db *database) claimStatements() statements {
	return newStatements(db.name, db.server.flavour, rows.Schema{})
}

// Claimed lists the run's claims.
func (db *database) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	list, err := db.control.QueryContext(ctx, db.claimStatements().SelectClaims(run))
	if err != nil {
		return withHint("read the claims", err)
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		var number, rows int64
		if err := list.Scan(&number, &rows); err != nil {
			return withHint("read the claims", err)
		}
		if err := f(number, rows); err != nil {
			return err
		}
	}
	return withHint("read the claims", list.Err())
}

// Forget removes the run's claims. Without a claim table there are none.
func (db *database) Forget(ctx context.Context, run string) (int64, error) {
	rows, err := affected(db.control.ExecContext(ctx, db.claimStatements().DeleteClaims(run)))
	if is(err, noSuchTable) {
		return 0, nil
	}
	return rows, withHint("remove the claims", err)
}

// Probe loads one row under a claim, rolls back, and looks what is left.
func (db *database) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	c.Dedup = loader.DedupTx
	s, err := db.open(ctx, c)
	if err != nil {
		return loader.Proof{}, err
	}
	defer func() { _ = s.Close() }()
	ref := loader.RefOf(b)
	// A row that is there already is somebody's: it must not be taken for the probe's and removed.
	row, claim, err := db.survivors(ctx, s.statements, ref)
	if err != nil {
		return loader.Proof{}, withHint("probe", err)
	}
	if row || claim {
		return loader.Proof{}, fmt.Errorf("probe: row %d or claim %s is in the table already", ref.First, ref.ID)
	}
	sent := s.tryAndRollBack(ctx, b)
	if row, claim, err = db.survivors(ctx, s.statements, ref); err != nil {
		return loader.Proof{}, withHint("probe", errors.Join(sent, err))
	}
	if err := db.cleanUp(ctx, s.statements, ref, row, claim); err != nil {
		return loader.Proof{}, withHint("probe", errors.Join(sent, err))
	}
	proof := verdictOf(row, claim)
	if proof.Transactional {
		return proof, withHint("probe", sent) // what did not arrive cannot survive
	}
	return proof, nil
}

// tryAndRollBack does what a batch does, up to the commit.
func (s *session) tryAndRollBack(ctx context.Context, b *batch.Batch) error {
	if _, _, err := s.Claim(ctx, loader.RefOf(b)); err != nil {
		return err
	}
	rows, warnings, err := s.Rows(ctx, b)
	if err == nil && (rows != b.Wanted() || len(warnings) > 0) {
		err = &loader.RowsError{Sent: b.Wanted(), Acknowledged: rows, Detail: warnings}
	}
	return errors.Join(err, s.Rollback(ctx))
}

// survivors looks for the probe's row and claim. On a table without an index on the key that is a scan.
func (db *database) survivors(ctx context.Context, s statements, ref loader.Ref) (row, claim bool, err error) {
	var n int64
	if err := db.control.QueryRowContext(ctx, s.SelectRow(ref.First)).Scan(&n); err != nil {
		return false, false, err
	}
	found, err := db.claimedForSure(ctx, s, ref)
	return n > 0, found.Applied != loader.No, err
}

func (db *database) cleanUp(ctx context.Context, s statements, ref loader.Ref, row, claim bool) error {
	var failed []error
	if row {
		_, err := db.control.ExecContext(ctx, s.DeleteRow(ref.First))
		failed = append(failed, err)
	}
	if claim {
		_, err := db.control.ExecContext(ctx, s.DeleteClaim(ref.ID.Run, ref.ID.Number))
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func verdictOf(row, claim bool) loader.Proof {
	switch {
	case row && claim:
		return loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}
	case row:
		return loader.Proof{Reason: "a row survived a rollback: the table's engine has no transactions"}
	case claim:
		return loader.Proof{Reason: "a claim survived a rollback: the claim table's engine has no transactions"}
	}
	return loader.Proof{Transactional: true}
}

// Reserve sets a key range aside, under a lock that the server keeps for all who append to this table.
func (db *database) Reserve(ctx context.Context, run string, rows, last int64) (first int64, err error) {
	s, err := db.prepared()
	if err != nil {
		return 0, err
	}
	if err := db.ensureClaims(ctx, s, false); err != nil {
		return 0, err
	}
	conn, err := db.control.Conn(ctx)
	if err != nil {
		return 0, withHint("reserve", err)
	}
	defer func() { _ = conn.Close() }()
	lock := reservationLock(db.name)
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lock, lockWait).Scan(&got); err != nil {
		return 0, withHint("reserve", err)
	}
	if got.Int64 != 1 {
		return 0, &loader.Error{Op: "reserve", Applied: loader.No,
			Err:  fmt.Errorf("another run has held the lock %s for more than %d s", lock, lockWait),
			Hint: "wait until it has found its first key, which takes one scan of the table"}
	}
	// The lock ends with the connection too, so only a failing connection can leave it behind, and not for long.
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", lock) }()
	first, err = reserve(ctx, conn, s, run, rows, last)
	return first, withHint("reserve", err)
}

func reserve(ctx context.Context, conn *sql.Conn, s statements, run string, rows, last int64) (first int64, err error) {
	err = conn.QueryRowContext(ctx, s.SelectReservation(run)).Scan(&first)
	if !errors.Is(err, sql.ErrNoRows) {
		return first, err
	}
	if err := conn.QueryRowContext(ctx, s.SelectNextFree()).Scan(&first); err != nil {
		return 0, err
	}
	if err := loader.Fits(first, rows, last); err != nil {
		return 0, err
	}
	_, err = conn.ExecContext(ctx, s.InsertReservation(run, first, rows))
	return first, err
}

// reservationLock names the lock: of all databases of a server, and 64 characters at most. To some servers names that
// differ in the case of letters are one.
func reservationLock(n tableName) string {
	return fmt.Sprintf("%s-%x", sqltx.ClaimsTable, sha256.Sum256([]byte(strings.ToLower(n.String()))))[:56]
}
