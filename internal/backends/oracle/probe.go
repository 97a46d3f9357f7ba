package oracle

import (
	"context"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Probe sends one claim and one row and rolls back.
func (l *opened) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return l.prove(ctx, c, loader.RefOf(b), func(s *session, try func(send func() (int64, error)) error) error {
		return try(func() (int64, error) { return s.Rows(ctx, b) })
	})
}

// prove is Probe for any way of sending the one row of ref: around calls try with it, and may do before and behind what
// the transaction cannot hold.
func (l *opened) prove(
	ctx context.Context, c loader.Contract, ref loader.Ref,
	around func(s *session, try func(send func() (int64, error)) error) error,
) (loader.Proof, error) {
	r, err := l.prepared()
	if err != nil {
		return loader.Proof{}, err
	}
	ref.ID.Number = sqlload.Probe
	return r.Probe(ctx, ref, sqlload.Trial{
		Look: func(ctx context.Context, rows, claims string) (foundRows, foundClaims int64, err error) {
			const op = "look for the probe"
			err = l.somewhere(ctx, func(k *link) error {
				found, err := k.texts(ctx, op, claims)
				if err != nil {
					return err
				}
				foundClaims = int64(len(found))
				foundRows, err = k.number(ctx, op, rows)
				return err
			})
			return foundRows, foundClaims, failed(op, err)
		},
		Send: func(ctx context.Context) error {
			s, err := l.open(ctx, c)
			if err != nil {
				return err
			}
			s.probing = true
			err = around(s, func(send func() (int64, error)) error { return s.takeBack(ctx, ref, send) })
			_ = s.Close()
			return failed("probe", err)
		},
		Remove: func(ctx context.Context, statement string) error {
			const op = "remove what is left of the probe"
			return failed(op, l.somewhere(ctx, func(k *link) error { return k.alone(ctx, op, statement) }))
		},
	})
}

// takeBack claims, sends the one row, and rolls back.
func (s *session) takeBack(ctx context.Context, ref loader.Ref, send func() (int64, error)) error {
	defer func() { _ = s.Rollback(ctx) }() // undoes nothing behind another
	if _, _, err := s.Claim(ctx, ref); err != nil {
		return err
	}
	n, err := send()
	if err != nil {
		return err
	}
	if n != ref.Rows {
		return &loader.RowsError{Sent: ref.Rows, Acknowledged: n}
	}
	return s.Rollback(ctx)
}

// run runs a statement whose answer nobody needs. op is what failed, if it fails.
func (k *link) run(ctx context.Context, op, statement string) error {
	_, err := k.exec(ctx, statement)
	return failed(op, err)
}

// alone runs a statement in a transaction of its own.
func (k *link) alone(ctx context.Context, op, statement string) error {
	if err := k.begin(ctx); err != nil {
		return failed(op, err)
	}
	if err := k.run(ctx, op, statement); err != nil {
		_ = k.rollback(ctx)
		return err
	}
	return failed(op, k.commit(ctx))
}
