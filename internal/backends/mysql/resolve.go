package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Resolve ends what may still be at work on the batch, on every host, and then looks for the claim.
//
// It needs no privilege beyond those of the load, and nothing that an earlier process would have had to leave behind:
// a server shows every user the user's own connections, and a claim that is not committed names its connection.
func (db *database) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	s, err := db.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	found, err := claimed(ctx, db.control, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err != nil || found.Applied == loader.Yes {
		return found, failed("look for the claim", err)
	}
	for _, e := range db.endpoints {
		// A session there that still runs holds its claim, which the next question waits for.
		if err := db.end(ctx, e, s, ref); err != nil {
			db.log.Warn("earlier attempts may still run", "host", e.address, "error", err)
		}
	}
	found, err = db.claimedForSure(ctx, s, ref)
	return found, failed("look for the claim", err)
}

// endPatience is how long a host may take to end a session: it rolls back first.
const endPatience = 30 * time.Second

// end kills the connections of one host that work on the batch, and waits until they are gone, which may take as long
// as their rollback. It uses a connection of its own: the control connections lead to one host, and may all be
// busy with scans.
func (db *database) end(ctx context.Context, e endpoint, s statements, ref loader.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	pool := sql.OpenDB(connector{e.config, append(s.flavour.controlSetup(db.target.Settings), s.flavour.dirtyReads()...)})
	defer func() { _ = pool.Close() }()
	for {
		ids, err := atWork(ctx, pool, s, ref)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if _, err := pool.ExecContext(ctx, fmt.Sprintf("KILL %d", id)); err != nil && !is(err, noSuchThread) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// atWork finds this user's connections that work on the batch: by the tag of the statement they are at, and by the
// connection that the claim names. The tag alone misses a connection that waits for its client between two statements
// or in the middle of a long one; the claim, read before it is committed, does not. A claim that was committed just
// now would name a connection that has gone on to another batch, which then fails and is sent again: a waste, no harm.
func atWork(ctx context.Context, from *sql.DB, s statements, ref loader.Ref) ([]uint64, error) {
	var holder uint64
	list := "information_schema.processlist"
	if s.flavour == tiDB { // where every server of a cluster has a list of its own
		list = "information_schema.cluster_processlist"
	}
	if len(s.flavour.dirtyReads()) > 0 {
		err := from.QueryRowContext(ctx, s.selectHolder(ref)).Scan(&holder)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
	}
	if s.flavour == mySQL {
		return shownAtWork(ctx, from, ref, holder)
	}
	return column[uint64](ctx, from, "SELECT id FROM "+list+" WHERE user = SUBSTRING_INDEX(USER(), '@', 1)"+
		" AND id <> CONNECTION_ID() AND (info LIKE ? OR id = ?)", tag(ref.ID)+"%", holder)
}

// shownAtWork is atWork for MySQL, whose information_schema.processlist fails with error 3854 while any session is at a
// statement that is no UTF-8, as an INSERT of raw bytes is. SHOW gives statements as they are, the first 100 bytes; the
// list in performance_schema would, too, and is empty where that is switched off.
func shownAtWork(ctx context.Context, from *sql.DB, ref loader.Ref, holder uint64) (ids []uint64, err error) {
	var user string
	if err := from.QueryRowContext(ctx, "SELECT SUBSTRING_INDEX(USER(), '@', 1)").Scan(&user); err != nil {
		return nil, err
	}
	list, err := from.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		var id uint64
		var of string
		var info, other sql.RawBytes // Host, db, Command, Time and State are others
		if err := list.Scan(&id, &of, &other, &other, &other, &other, &other, &info); err != nil {
			return nil, err
		}
		if of == user && (id == holder || bytes.HasPrefix(info, []byte(tag(ref.ID)))) {
			ids = append(ids, id)
		}
	}
	return ids, list.Err()
}

// claimedForSure looks with a locking read, which waits for whoever has inserted the claim and neither committed nor
// rolled back: only then is "not there" final.
func (db *database) claimedForSure(ctx context.Context, s statements, ref loader.Ref) (loader.Resolution, error) {
	tx, err := db.control.BeginTx(ctx, nil)
	if err != nil {
		return loader.Resolution{}, err
	}
	defer func() { _ = tx.Rollback() }()
	return claimed(ctx, tx, s.SelectClaim(ref.ID.Run, ref.ID.Number)+" FOR UPDATE", ref)
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func claimed(ctx context.Context, from querier, query string, ref loader.Ref) (loader.Resolution, error) {
	var rows int64
	err := from.QueryRowContext(ctx, query).Scan(&rows)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return loader.Resolution{Applied: loader.No}, nil
	case err != nil:
		return loader.Resolution{}, err
	case rows != ref.Rows:
		return loader.Resolution{Reason: fmt.Sprintf("the claim of batch %s says %d rows, but the batch has %d", ref.ID, rows, ref.Rows)}, nil
	}
	return loader.Resolution{Applied: loader.Yes}, nil
}

// column reads the only column of a query.
func column[T any](ctx context.Context, from *sql.DB, query string, args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
