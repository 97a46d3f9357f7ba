package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	// slots is how many locks a table has. GET_LOCK knows no shared ones: a run that wants the table alone takes all of them,
	// the first one first, and one that shares it any other. More runs than there are go on without.
	slots = 16
	// holding is the batch number of the row in the claim table that tells whose connection holds the table.
	holding = sqlload.Probe - 1
	// holdPatience is for the connection of a run that has ended, or was killed, just now.
	holdPatience = time.Second
)

// hold keeps other runs off the table until Close, by locks that the server keeps for a connection. Where it knows no such
// locks nobody is kept off.
func (db *database) hold(ctx context.Context, p loader.Preparation) error {
	db.release() // of a Prepare that is retried
	if p.Hold == loader.HoldNone {
		return nil
	}
	conn, err := db.control.Conn(ctx)
	if err != nil {
		return failed("prepare", err)
	}
	busy, err := db.lock(ctx, conn, p)
	if err == nil && busy == nil {
		db.held = conn
		return nil
	}
	// Closed for good, and not given back to the pool: it may have got some of the locks.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	if server := (*mysql.MySQLError)(nil); errors.As(err, &server) {
		db.log.Debug("other runs cannot be kept off the table", "error", err)
		return nil
	}
	if err != nil {
		return failed("keep other runs off the table", err)
	}
	return busy
}

// lock takes the locks on conn. busy says who has them.
func (db *database) lock(ctx context.Context, conn *sql.Conn, p loader.Preparation) (busy, err error) {
	if _, err := conn.ExecContext(ctx, "SET SESSION wait_timeout = 31536000"); err != nil { // the most there is, a year
		return nil, err
	}
	for began := time.Now(); ; {
		got, err := db.take(ctx, conn, p.Hold)
		if err != nil || got {
			return nil, err
		}
		var holder sql.NullInt64
		used := "SELECT COALESCE(" + db.eachLock("NULLIF(IS_USED_LOCK('%s'), CONNECTION_ID())", ", ", 0) + ")"
		if err := conn.QueryRowContext(ctx, used).Scan(&holder); err != nil {
			return nil, err
		}
		run, end := db.holder(ctx, conn, holder.Int64), fmt.Sprintf("KILL %d", holder.Int64)
		switch {
		case time.Since(began) < holdPatience:
		case p.Resume && run == "": // it may be what an earlier process of this run has left
			return nil, nil
		default:
			return loader.Busy(db.name.String(), run, end), nil
		}
		if p.Resume && run == p.Run { // which has left it: its folder is locked, so none of its processes lives
			if _, err := conn.ExecContext(ctx, end); err != nil && !is(err, noSuchThread) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// take tries once. What it gets it keeps, also if that is not all.
func (db *database) take(ctx context.Context, conn *sql.Conn, how loader.Hold) (all bool, err error) {
	try := func(query string) (n int64, err error) {
		var got sql.NullInt64
		err = conn.QueryRowContext(ctx, query).Scan(&got)
		return got.Int64, err
	}
	if how == loader.HoldShared {
		if n, err := try("SELECT COALESCE(" + db.eachLock("NULLIF(GET_LOCK('%s', 0), 0)", ", ", 1) + ")"); err != nil || n > 0 {
			return n > 0, err
		}
		n, err := try("SELECT IS_FREE_LOCK('" + db.lockName(0) + "')") // then all others are taken by runs that share
		return n > 0, err
	}
	n, err := try("SELECT GET_LOCK('" + db.lockName(0) + "', 0)")
	if err != nil || n == 0 {
		return false, err
	}
	n, err = try("SELECT " + db.eachLock("GET_LOCK('%s', 0)", " + ", 1))
	return n == slots-1, err
}

// release gives the table back at once: after the connection has ended the server takes its time.
func (db *database) release() {
	if db.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if db.heldFor != "" { // by its key: a scan would wait for the claims of sessions that hang
		_, _ = db.held.ExecContext(ctx, db.claimStatements().DeleteClaim(db.heldFor, holding))
	}
	_, _ = db.held.ExecContext(ctx, "DO "+db.eachLock("RELEASE_LOCK('%s')", ", ", 0))
	_ = db.held.Close()
	db.held, db.heldFor = nil, ""
}

func (db *database) lockName(slot int) string {
	return fmt.Sprintf("%s-%d", reservationLock(db.name), slot)
}

// eachLock writes an expression for every lock from one on.
func (db *database) eachLock(format, between string, from int) string {
	var all []string
	for slot := from; slot < slots; slot++ {
		all = append(all, fmt.Sprintf(format, db.lockName(slot)))
	}
	return strings.Join(all, between)
}

// holder is the run whose connection it is, "" where nobody wrote it down.
func (db *database) holder(ctx context.Context, conn *sql.Conn, connection int64) (run string) {
	_ = conn.QueryRowContext(ctx, fmt.Sprintf("SELECT run FROM %s WHERE batch = %d AND connection = %d",
		db.claimStatements().Claims, holding, connection)).Scan(&run)
	return run
}

// signHold writes down whose connection holds the table. Only the message that others get needs it: without it that names
// just the connection.
func (db *database) signHold(ctx context.Context, s statements, run string) {
	if db.held == nil {
		return
	}
	_, _ = db.control.ExecContext(ctx, s.DeleteClaim(run, holding))
	_, _ = db.held.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count, connection) VALUES ('%s', %d, 0, 0, CONNECTION_ID())",
		s.Claims, run, holding))
	db.heldFor = run
}
