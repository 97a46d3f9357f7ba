package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Probe sends one claim and one row and rolls back.
func (l *opened) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return l.prove(ctx, c, loader.RefOf(b), func(s *session) (int64, error) {
		n, _, err := s.Rows(ctx, b)
		return n, err
	})
}

// prove is Probe for any way of sending the one row of ref.
func (l *opened) prove(ctx context.Context, c loader.Contract, ref loader.Ref, send func(*session) (int64, error)) (loader.Proof, error) {
	r, err := l.prepared()
	if err != nil {
		return loader.Proof{}, err
	}
	ref.ID.Number = sqlload.Probe
	return r.Probe(ctx, ref, sqlload.Trial{
		Look: func(ctx context.Context, rows, claims string) (foundRows, foundClaims int64, err error) {
			err = l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
				found, err := rowsOf(ctx, c, claims)
				if err != nil {
					return err
				}
				foundClaims = int64(len(found))
				if found, err = rowsOf(ctx, c, rows); err != nil {
					return err
				}
				foundRows, err = parseInt(found[0][0])
				return err
			})
			return foundRows, foundClaims, failed("look for the probe", err)
		},
		Send: func(ctx context.Context) error { return failed("probe", l.probe(ctx, c, ref, send)) },
		Remove: func(ctx context.Context, statement string) error {
			err := l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
				_, err := rowsOf(ctx, c, statement)
				return err
			})
			return failed("remove what is left of the probe", err)
		},
	})
}

func (l *opened) probe(ctx context.Context, c loader.Contract, ref loader.Ref, send func(*session) (int64, error)) error {
	s, err := l.open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if _, _, err := s.Claim(ctx, ref); err != nil {
		return err
	}
	n, err := send(s)
	if err != nil {
		return err
	}
	if n != ref.Rows {
		return &loader.RowsError{Sent: ref.Rows, Acknowledged: n, Detail: s.notices}
	}
	return s.Rollback(ctx)
}

// reserveTries bounds how often a reservation is tried again because another run's came in between.
const reserveTries = 20

// Reserve reads what is free and writes the reservation in one serializable transaction: of two that overlap one fails
// and looks again. An advisory lock would do as well, but YugabyteDB before 2025.1 has none.
func (l *opened) Reserve(ctx context.Context, run string, rows, last int64) (first int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	err = l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		if err := r.makeClaims(ctx, c, false); err != nil { // missing where the run itself needs no claims
			return err
		}
		for range reserveTries {
			if first, err = r.reserve(ctx, c, run, rows, last); err == nil {
				return nil
			}
			_, _ = rowsOf(ctx, c, "ROLLBACK")
			if !is(err, "40001") && !is(err, "23505") {
				return failed("reserve row numbers", err)
			}
		}
		return failed("reserve row numbers", err)
	})
	return first, err
}

func (r *ready) reserve(ctx context.Context, c *pgconn.PgConn, run string, rows, last int64) (int64, error) {
	begin := "BEGIN ISOLATION LEVEL SERIALIZABLE; "
	if r.flavour == redshift {
		begin = "BEGIN; " + r.lockClaims() + "; "
	}
	found, err := rowsOf(ctx, c, begin+r.SelectReservation(run))
	if err != nil {
		return 0, err
	}
	reserved := len(found) > 0
	if !reserved {
		if found, err = rowsOf(ctx, c, r.SelectNextFree()); err != nil {
			return 0, err
		}
	}
	first, err := parseInt(found[0][0])
	if err != nil {
		return 0, err
	}
	end := "COMMIT"
	if !reserved {
		if err := loader.Fits(first, rows, last); err != nil {
			return 0, err
		}
		end = r.InsertReservation(run, first, rows) + "; COMMIT"
	}
	_, err = rowsOf(ctx, c, end)
	return first, err
}
