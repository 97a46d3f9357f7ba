package mysql

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
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
		return failed("read the claims", err)
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		var number, rows int64
		if err := list.Scan(&number, &rows); err != nil {
			return failed("read the claims", err)
		}
		if err := f(number, rows); err != nil {
			return err
		}
	}
	return failed("read the claims", list.Err())
}

// Forget removes the run's claims. Without a claim table there are none.
func (db *database) Forget(ctx context.Context, run string) (int64, error) {
	rows, err := affected(db.control.ExecContext(ctx, db.claimStatements().DeleteClaims(run)))
	if is(err, noSuchTable) {
		return 0, nil
	}
	return rows, failed("remove the claims", err)
}

// Probe loads one row under a claim and rolls back.
func (db *database) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	c.Dedup = loader.DedupTx
	s, err := db.open(ctx, c)
	if err != nil {
		return loader.Proof{}, err
	}
	defer func() { _ = s.Close() }()
	ref := loader.RefOf(b)
	ref.ID.Number = sqlload.Probe
	proof, err := s.Probe(ctx, ref, sqlload.Trial{
		// On a table without an index on the key this is a scan.
		Look: func(ctx context.Context, rows, _ string) (foundRows, foundClaims int64, err error) {
			if err := db.control.QueryRowContext(ctx, rows).Scan(&foundRows); err != nil {
				return 0, 0, err
			}
			found, err := db.claimedForSure(ctx, s.statements, ref)
			if found.Applied != loader.No {
				foundClaims = 1
			}
			return foundRows, foundClaims, err
		},
		Send: func(ctx context.Context) error { return s.tryAndRollBack(ctx, ref, b) },
		Remove: func(ctx context.Context, statement string) error {
			_, err := db.control.ExecContext(ctx, statement)
			return err
		},
	})
	return proof, failed("probe", err)
}

// tryAndRollBack does what a batch does, up to the commit.
func (s *session) tryAndRollBack(ctx context.Context, ref loader.Ref, b *batch.Batch) error {
	if _, _, err := s.Claim(ctx, ref); err != nil {
		return err
	}
	rows, warnings, err := s.Rows(ctx, b)
	if err == nil && (rows != b.Wanted() || len(warnings) > 0) {
		err = &loader.RowsError{Sent: b.Wanted(), Acknowledged: rows, Detail: warnings}
	}
	return errors.Join(err, s.Rollback(ctx))
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
		return 0, failed("reserve", err)
	}
	defer func() { _ = conn.Close() }()
	lock := reservationLock(db.name)
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lock, lockWait).Scan(&got); err != nil {
		return 0, failed("reserve", err)
	}
	if got.Int64 != 1 {
		return 0, &loader.Error{Op: "reserve", Applied: loader.No,
			Err:  fmt.Errorf("another run has held the lock %s for more than %d s", lock, lockWait),
			Hint: "wait until it has found its first key, which takes one scan of the table"}
	}
	// The lock ends with the connection too, so only a failing connection can leave it behind, and not for long.
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", lock) }()
	first, err = reserve(ctx, conn, s, run, rows, last)
	return first, failed("reserve", err)
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
	return fmt.Sprintf("%s-%x", sqlload.ClaimsTable, sha256.Sum256([]byte(strings.ToLower(n.String()))))[:56]
}
