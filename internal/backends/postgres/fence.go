package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateRuns implements sqlload.Claims. The table is logged whatever the target is: a crash must not make a run
// another's.
func (l catalog) CreateRuns(s *sqlload.State) string { return l.statements(s).createRuns() }

// SelectRunSchemas implements sqlload.Claims.
func (catalog) SelectRunSchemas() string { return sqlload.SelectRunSchemas }

// Guard implements sqlload.Claims. The row is locked after the table, for which the statement may have waited for
// hours.
func (l catalog) Guard(s *sqlload.State) sqlload.Guard {
	if l.flavour != postgreSQL {
		return sqlload.Guard{Before: "BEGIN", After: "COMMIT", Failed: "ROLLBACK"}
	}
	return sqlload.Guard{
		Before: "BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE " + s.Table + " IN ACCESS EXCLUSIVE MODE",
		After:  "COMMIT", Failed: "ROLLBACK", Check: " FOR SHARE",
	}
}

// Fence implements sqlload.Claims by locks on tables that conflict with an INSERT and not with a SELECT. Row locks on
// the runs' rows were tried: sharers pass a waiting UPDATE, which then took up to twelve seconds, and 64 workers'
// multixacts would use up those of a cluster in two hours.
//
// Under REPEATABLE READ the lock would be in vain: the snapshot of a claim that waits for it is older, and 190 batches
// were committed after a fence.
func (l catalog) Fence(ctx context.Context, s *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error) error {
	if l.flavour == yugabyteDB {
		return l.fenceInYugabyteDB(ctx, s, f, change)
	}
	return l.alone(ctx, func(c sqlload.Conn) error {
		lock := sqlload.TableLock{
			Lock: l.lockTables,
			Late: func(err error) bool { return is(err, "55P03") || is(err, "40P01") }, // no lock in time, a deadlock
			End:  func() (string, error) { return l.endHolders(ctx, c, s, f) },
		}
		return lock.Fence(ctx, c, append([]string{s.Runs()}, f.Claims...), change)
	})
}

// lockTables is TableLock.Lock. What the fence's answer promises has to be on disk, whatever the user does without for
// rows.
func (l *opened) lockTables(wait time.Duration, tables []string) []string {
	begin, mode := "BEGIN", ""
	if l.flavour == postgreSQL {
		begin = fmt.Sprintf("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '%dms'; "+
			"SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')",
			wait.Milliseconds())
		mode = " IN SHARE ROW EXCLUSIVE MODE"
	}
	for _, table := range tables {
		begin += "; LOCK TABLE " + table + mode
	}
	return []string{begin}
}

// alone calls f with a connection of its own, whose end releases its locks.
func (l *opened) alone(ctx context.Context, f func(sqlload.Conn) error) error {
	c, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// fenceAttempts bounds the attempts at a change that another process interrupts.
const fenceAttempts = 20

// fenceInYugabyteDB is Fence where LOCK TABLE does nothing (before 2025.1): of two serializable transactions that
// overlap one fails and is tried again, and the run's sessions are ended once their epoch is old.
func (l catalog) fenceInYugabyteDB(
	ctx context.Context, _ *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error,
) error {
	return l.alone(ctx, func(c sqlload.Conn) (err error) {
		for range fenceAttempts {
			if err = serialized(ctx, c, change); err == nil {
				return l.endRun(ctx, f)
			}
			_, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			if !is(err, "40001") && !is(err, "23505") {
				return err
			}
		}
		return err
	})
}

func serialized(ctx context.Context, c sqlload.Conn, change func(sqlload.Conn) error) error {
	if _, err := c.Exec(ctx, "BEGIN ISOLATION LEVEL SERIALIZABLE"); err != nil {
		return err
	}
	if err := change(c); err != nil {
		return err
	}
	_, err := c.Exec(ctx, "COMMIT")
	return err
}

func (s statements) createRuns() string {
	text := "text"
	if s.flavour == redshift {
		text = "varchar(255)"
	}
	columns := sqlload.RunColumns(text, text, "bigint")
	return "CREATE TABLE IF NOT EXISTS " + s.Runs() + " (" + strings.Join(columns, ", ") + ")"
}
