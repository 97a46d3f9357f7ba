package mysql

import (
	"context"
	"crypto/sha256"
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
	// slots is the number of locks of a table. GET_LOCK has no shared mode: an exclusive run takes all of them, the
	// first one first, and a sharing run takes any other one. Sharing runs beyond that number go on without a lock.
	slots = 16
	// holderBatch is the batch number of the row in the claim table that names the connection with the locks.
	holderBatch = sqlload.Probe - 1
	// holdPatience is for the connection of a run that has just ended, or was killed.
	holdPatience = time.Second
)

// hold locks the table against other runs until Close. The server keeps the locks for a connection; one without such
// locks keeps no run off.
func (l *opened) hold(ctx context.Context, p loader.Preparation) error {
	l.release() // of a Prepare that is retried
	if p.Hold == loader.HoldNone {
		return nil
	}
	conn, err := l.control.Conn(ctx)
	if err != nil {
		return failed("prepare", err)
	}
	if err = l.lock(ctx, sqlload.SQL{Conn: conn}, p); err == nil {
		l.held, l.heldPart = conn, partLock(p)
		return nil
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it: it may have got some of the locks
	if server := (*mysql.MySQLError)(nil); errors.As(err, &server) {
		l.log.Debug("other runs cannot be kept off the table", "error", err)
		return nil
	}
	return failed("keep other runs off the table", err)
}

// lock takes the locks on c.
func (l *opened) lock(ctx context.Context, c sqlload.Conn, p loader.Preparation) error {
	if _, err := c.Exec(ctx, "SET SESSION wait_timeout = 31536000"); err != nil { // the largest value, a year
		return err
	}
	for began := time.Now(); ; {
		if done, err := l.tryLocks(ctx, c, p); err != nil || done {
			return err
		}
		others := fmt.Sprintf(usedByOthers, partLock(p)) + ", " + l.eachLock(usedByOthers, ", ", 0)
		holder, err := value(ctx, c, "SELECT COALESCE("+others+", 0)")
		if err != nil {
			return err
		}
		// The holder's run; "" if it has no such row.
		run, _ := value(ctx, c, fmt.Sprintf("SELECT run FROM %s WHERE batch = %d AND connection = %s",
			l.name.claims().quoted(), holderBatch, holder))
		kill := "KILL " + holder
		switch {
		case time.Since(began) < holdPatience:
		case p.Resume && p.Shard == "" && run == "": // it may be what an earlier process of this run has left
			return nil
		default:
			return loader.Busy(l.name.String(), run, kill)
		}
		if p.Resume && p.Shard == "" && run == p.Run { // left behind: the run's folder is locked, so no other process of it lives
			if _, err := c.Exec(ctx, kill); err != nil && !is(err, noSuchThread) {
				return err
			}
		}
		if err := sqlload.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

const usedByOthers = "NULLIF(IS_USED_LOCK('%s'), CONNECTION_ID())"

// tryLocks takes the lock of the part, if there are others, and then those of the table.
func (l *opened) tryLocks(ctx context.Context, c sqlload.Conn, p loader.Preparation) (enough bool, err error) {
	if p.Shard != "" { // not twice: it would have to be released as often
		got, err := value(ctx, c, fmt.Sprintf("SELECT IF(IS_USED_LOCK('%[1]s') <=> CONNECTION_ID(), 1, GET_LOCK('%[1]s', 0))", partLock(p)))
		if err != nil || got != "1" {
			return false, err
		}
	}
	return l.tryLock(ctx, c, p.Hold)
}

// tryLock keeps the locks that it gets, even if they are not enough.
func (l *opened) tryLock(ctx context.Context, c sqlload.Conn, how loader.Hold) (enough bool, err error) {
	if how == loader.HoldShared {
		got, err := value(ctx, c, "SELECT COALESCE("+l.eachLock("NULLIF(GET_LOCK('%s', 0), 0)", ", ", 1)+")")
		if err == nil && got != "1" { // sharing runs have all others, or an exclusive run has the first one, too
			got, err = value(ctx, c, "SELECT IS_FREE_LOCK('"+l.lockName(0)+"')")
		}
		return got == "1", err
	}
	got, err := value(ctx, c, "SELECT GET_LOCK('"+l.lockName(0)+"', 0)")
	if err != nil || got != "1" {
		return false, err
	}
	got, err = value(ctx, c, "SELECT "+l.eachLock("GET_LOCK('%s', 0)", " + ", 1))
	return got == fmt.Sprint(slots-1), err
}

// release removes the locks at once: a server takes its time to notice the end of a connection.
func (l *opened) release() {
	if l.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.deleteHolder != "" {
		_, _ = l.held.ExecContext(ctx, l.deleteHolder)
	}
	_, _ = l.held.ExecContext(ctx, "DO RELEASE_LOCK('"+l.heldPart+"'), "+l.eachLock("RELEASE_LOCK('%s')", ", ", 0))
	_ = l.held.Close()
	l.held, l.deleteHolder = nil, ""
}

// partLock is the lock of a part of a run. Names have at most 64 letters.
func partLock(p loader.Preparation) string {
	sum := sha256.Sum256([]byte(p.Run + " " + p.Shard))
	return fmt.Sprintf("terapush-part-%x", sum[:16])
}

func (l *opened) lockName(slot int) string {
	return fmt.Sprintf("%s-%d", reservationLock(l.name), slot)
}

// eachLock writes an expression for every lock from a slot on.
func (l *opened) eachLock(format, separator string, from int) string {
	var all []string
	for slot := from; slot < slots; slot++ {
		all = append(all, fmt.Sprintf(format, l.lockName(slot)))
	}
	return strings.Join(all, separator)
}

// recordHolder writes the connection with the locks into the claim table, so that messages to other runs can name this
// one.
func (l *opened) recordHolder(ctx context.Context, s sqlload.Statements, run string) {
	if l.held == nil {
		return
	}
	l.deleteHolder = s.DeleteClaim(run, holderBatch) // by its key: a scan would wait for the claims of sessions that hang
	_, _ = l.held.ExecContext(ctx, l.deleteHolder)
	_, _ = l.held.ExecContext(ctx, fmt.Sprintf("INSERT INTO %s (run, batch, first_key, row_count, connection)"+
		" VALUES ('%s', %d, 0, 0, CONNECTION_ID())", s.Claims, run, holderBatch))
}
