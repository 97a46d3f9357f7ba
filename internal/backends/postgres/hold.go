package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// heldBy is the application_name of the connection that holds a table for a run. Resolve, which ends the run's sessions,
// must not take it for one.
func heldBy(run string) string {
	name := "terapush-table/" + run
	return name[:min(len(name), 63)]
}

// holdSetup keeps the server from ending the connection, which says nothing for as long as the run takes, and has it notice
// soon when the client is gone.
const holdSetup = keepAlive + "; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN " +
	"('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"

// holdPatience is for the connection of a run that has ended, or was killed, just now.
const holdPatience = time.Second

// hold keeps other runs off the table until Close, by an advisory lock. The lock is a transaction's, since a pooler would
// lend the connection of a session's to others; a transaction that is idle and has read nothing holds up no vacuum. Where
// the server knows no such locks, as YugabyteDB before 2025.1 and Redshift, nobody is kept off.
func (l *opened) hold(ctx context.Context, table string, p loader.Preparation) error {
	l.release() // of a Prepare that is retried
	if p.Hold == loader.HoldNone || l.flavour == redshift {
		return nil
	}
	c, _, err := l.dialAny(ctx, 0, nil)
	if err != nil {
		return nil //nolint:nilerr // what Prepare does next will find the same, or go on without
	}
	busy, err := lock(ctx, c, table, p)
	if err == nil && busy == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held = c
		return nil
	}
	_ = closeConn(c)
	if err != nil && ctx.Err() == nil {
		l.deps.Log.Debug("other runs cannot be kept off the table", "error", err)
		return nil
	}
	if err != nil {
		return failed("keep other runs off the table", err)
	}
	return busy
}

// lock takes the lock on c. busy says who has it.
func lock(ctx context.Context, c *pgconn.PgConn, table string, p loader.Preparation) (busy, err error) {
	table, err = located(ctx, c, table)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte("terapush " + table))
	key := binary.BigEndian.Uint64(sum[:])
	try := "pg_try_advisory_xact_lock"
	if p.Hold == loader.HoldShared {
		try += "_shared"
	}
	if _, err := rowsOf(ctx, c, "SET application_name = "+sqlload.Literal(heldBy(p.Run))+"; "+holdSetup); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		got, err := rowsOf(ctx, c, fmt.Sprintf("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT %s(%d)", try, int64(key)))
		if err == nil && len(got) != 1 {
			err = errors.New("the server did not say whether the lock was taken")
		}
		if err != nil || got[0][0] == "t" {
			return nil, err
		}
		found, err := rowsOf(ctx, c, fmt.Sprintf("ROLLBACK; SELECT l.pid, COALESCE(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "+
			"WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid = %d AND l.objid = %d "+
			"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1", key>>32, uint32(key)))
		if err != nil {
			return nil, err
		}
		var pid, name string
		if len(found) > 0 {
			pid, name = found[0][0], found[0][1]
		}
		end := "SELECT pg_terminate_backend(" + pid + ")"
		if time.Since(began) > holdPatience {
			_, run, _ := strings.Cut(name, heldBy(""))
			return loader.Busy(table, run, end), nil
		}
		if p.Resume && name == heldBy(p.Run) { // which has left it: its folder is locked, so none of its processes lives
			if _, err := rowsOf(ctx, c, end); err != nil {
				return nil, err
			}
		}
		if err := sqlload.Wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// located is the table's full name, quoted, whether or not it is there yet.
func located(ctx context.Context, c *pgconn.PgConn, table string) (string, error) {
	schema, name := unquoted(table)
	if schema == "" {
		found, err := rowsOf(ctx, c, "SELECT COALESCE((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "+
			"WHERE c.oid = to_regclass("+sqlload.Literal(table)+")), current_schema(), '')")
		if err != nil {
			return "", err
		}
		schema = found[0][0]
	}
	return qualified(schema, name), nil
}
