package mysql

import (
	"context"
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
func (l *opened) hold(ctx context.Context, p loader.Preparation) error {
	l.release() // of a Prepare that is retried
	if p.Hold == loader.HoldNone {
		return nil
	}
	conn, err := l.control.Conn(ctx)
	if err != nil {
		return failed("prepare", err)
	}
	busy, err := l.lock(ctx, sqlload.SQL{Conn: conn}, p)
	if err == nil && busy == nil {
		l.held = conn
		return nil
	}
	// Closed for good, and not given back to the pool: it may have got some of the locks.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	if server := (*mysql.MySQLError)(nil); errors.As(err, &server) {
		l.log.Debug("other runs cannot be kept off the table", "error", err)
		return nil
	}
	if err != nil {
		return failed("keep other runs off the table", err)
	}
	return busy
}

// lock takes the locks on c. busy says who has them.
func (l *opened) lock(ctx context.Context, c sqlload.Conn, p loader.Preparation) (busy, err error) {
	if _, err := c.Exec(ctx, "SET SESSION wait_timeout = 31536000"); err != nil { // the most there is, a year
		return nil, err
	}
	for began := time.Now(); ; {
		got, err := l.take(ctx, c, p.Hold)
		if err != nil || got {
			return nil, err
		}
		holder, err := answer(ctx, c, "SELECT COALESCE("+l.eachLock("NULLIF(IS_USED_LOCK('%s'), CONNECTION_ID())", ", ", 0)+", 0)")
		if err != nil {
			return nil, err
		}
		// The run whose connection it is; "" where nobody wrote it down.
		run, _ := answer(ctx, c, fmt.Sprintf("SELECT run FROM %s WHERE batch = %d AND connection = %s",
			l.name.claims().quoted(), holding, holder))
		end := "KILL " + holder
		switch {
		case time.Since(began) < holdPatience:
		case p.Resume && run == "": // it may be what an earlier process of this run has left
			return nil, nil
		default:
			return loader.Busy(l.name.String(), run, end), nil
		}
		if p.Resume && run == p.Run { // which has left it: its folder is locked, so none of its processes lives
			if _, err := c.Exec(ctx, end); err != nil && !is(err, noSuchThread) {
				return nil, err
			}
		}
		if err := sqlload.Wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// take tries once. What it gets it keeps, also if that is not all.
func (l *opened) take(ctx context.Context, c sqlload.Conn, how loader.Hold) (all bool, err error) {
	if how == loader.HoldShared {
		got, err := answer(ctx, c, "SELECT COALESCE("+l.eachLock("NULLIF(GET_LOCK('%s', 0), 0)", ", ", 1)+")")
		if err == nil && got != "1" { // then all others are taken by runs that share
			got, err = answer(ctx, c, "SELECT IS_FREE_LOCK('"+l.lockName(0)+"')")
		}
		return got == "1", err
	}
	got, err := answer(ctx, c, "SELECT GET_LOCK('"+l.lockName(0)+"', 0)")
	if err != nil || got != "1" {
		return false, err
	}
	got, err = answer(ctx, c, "SELECT "+l.eachLock("GET_LOCK('%s', 0)", " + ", 1))
	return got == fmt.Sprint(slots-1), err
}

// answer is the only value of a query, "" where that is NULL or there is no row.
func answer(ctx context.Context, c sqlload.Conn, query string) (string, error) {
	found, err := sqlload.Rows(ctx, c, query)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0][0], nil
}

// release gives the table back at once: after the connection has ended the server takes its time.
func (l *opened) release() {
	if l.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.unsign != "" {
		_, _ = l.held.ExecContext(ctx, l.unsign)
	}
	_, _ = l.held.ExecContext(ctx, "DO "+l.eachLock("RELEASE_LOCK('%s')", ", ", 0))
	_ = l.held.Close()
	l.held, l.unsign = nil, ""
}

func (l *opened) lockName(slot int) string {
	return fmt.Sprintf("%s-%d", reservationLock(l.name), slot)
}

// eachLock writes an expression for every lock from one on.
func (l *opened) eachLock(format, between string, from int) string {
	var all []string
	for slot := from; slot < slots; slot++ {
		all = append(all, fmt.Sprintf(format, l.lockName(slot)))
	}
	return strings.Join(all, between)
}

// signHold writes down whose connection holds the table. Only the message that others get needs it: without it that names
// just the connection.
func (l *opened) signHold(ctx context.Context, s sqlload.Statements, run string) {
	if l.held == nil {
		return
	}
	l.unsign = s.DeleteClaim(run, holding) // by its key: a scan would wait for the claims of sessions that hang
	_, _ = l.held.ExecContext(ctx, l.unsign)
	_, _ = l.held.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count, connection)"+
		" VALUES ('%s', %d, 0, 0, CONNECTION_ID())", s.Claims, run, holding))
}
