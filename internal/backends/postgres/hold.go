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

// holderName is the application_name of the connection that holds a table for a run. It differs from the sessions',
// which Resolve ends.
func holderName(run string) string { return truncate("terapush-table/" + run) }

// holdSetup keeps the server from ending an idle connection, and lets it detect soon that the client is gone.
const holdSetup = keepAlive + "; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN " +
	"('statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"

// holdTimeout is how long the connection of a run that has just ended, or was killed, may still hold the table.
const holdTimeout = time.Second

// hold keeps other runs off the table until Close, by an advisory lock of a transaction: a pooler would lend the
// connection of a session's lock to others. The transaction has read nothing, so it delays no vacuum. Servers without
// such locks, as YugabyteDB before 2025.1 and Redshift, keep no run off.
func (l *opened) hold(ctx context.Context, table string, p loader.Preparation) error {
	l.release() // of a Prepare that is retried
	if p.Hold == loader.HoldNone || l.flavour == redshift {
		return nil
	}
	c, _, err := l.dial(ctx, 0, nil)
	if err != nil {
		return nil //nolint:nilerr // the rest of Prepare fails the same way, or does not need this connection
	}
	busy, err := lock(ctx, c, table, p)
	if err == nil && busy == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.holder = c
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

// release ends the connection that holds the table, if there is one.
func (l *opened) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == nil {
		return
	}
	_ = closeConn(l.holder)
	l.holder = nil
}

// lock takes the lock on c. busy is the error where another run has it.
func lock(ctx context.Context, c *pgconn.PgConn, table string, p loader.Preparation) (busy, err error) {
	if table, err = qualifiedName(ctx, c, table); err != nil {
		return nil, err
	}
	const function = "pg_try_advisory_xact_lock"
	whole := lockOf(table)
	try, first, held := fmt.Sprintf("%s(%d)", function, whole), whole, whole.isHeld()
	if p.Hold == loader.HoldShared {
		try = fmt.Sprintf("%s_shared(%d)", function, whole)
	}
	if p.Shard != "" {
		first = lockOf(p.Run + " " + p.Shard)
		try += fmt.Sprintf(" AND %s(%d)", function, first)
		held = "(" + held + " OR " + first.isHeld() + ")"
	}
	if _, err := exec(ctx, c, "SET application_name = "+sqlload.Literal(holderName(p.Run))+"; "+holdSetup); err != nil {
		return nil, err
	}
	for start := time.Now(); ; {
		got, err := rowsOf(ctx, c, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT "+try)
		if err == nil && len(got) == 0 {
			err = errors.New("the server does not say whether the lock was taken")
		}
		if err != nil || got[0][0] == "t" {
			return nil, err
		}
		holders, err := rowsOf(ctx, c, "ROLLBACK; SELECT l.pid, COALESCE(a.application_name, '') "+
			"FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND "+held+
			" AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY "+first.isHeld()+" DESC LIMIT 1")
		if err != nil {
			return nil, err
		}
		var pid, name string
		if len(holders) > 0 {
			pid, name = holders[0][0], holders[0][1]
		}
		end := "SELECT pg_terminate_backend(" + pid + ")"
		if time.Since(start) > holdTimeout {
			_, run, _ := strings.Cut(name, holderName(""))
			return loader.Busy(table, run, end), nil
		}
		if p.Resume && p.Shard == "" && name == holderName(p.Run) { // a dead process of the run: the run's folder is locked by this one
			if _, err := rowsOf(ctx, c, end); err != nil {
				return nil, err
			}
		}
		if err := sqlload.Wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// advisory is the key of an advisory lock.
type advisory int64

func lockOf(name string) advisory {
	sum := sha256.Sum256([]byte("terapush " + name))
	return advisory(binary.BigEndian.Uint64(sum[:]))
}

// isHeld is the condition that a row of pg_locks is the lock's.
func (a advisory) isHeld() string {
	return fmt.Sprintf("(l.objsubid = 1 AND l.classid = %d AND l.objid = %d)", uint64(a)>>32, uint32(a))
}

// qualifiedName returns the table's quoted name with its schema, whether or not the table exists.
func qualifiedName(ctx context.Context, c *pgconn.PgConn, table string) (string, error) {
	schema, name := unquoted(table)
	if schema == "" {
		found, err := rowsOf(ctx, c, "SELECT COALESCE((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "+
			"WHERE c.oid = to_regclass("+sqlload.Literal(table)+")), current_schema(), '')")
		if err == nil && len(found) == 0 {
			err = errors.New("the server does not say which schema the table is in")
		}
		if err != nil {
			return "", err
		}
		schema = found[0][0]
	}
	return qualified(schema, name), nil
}
