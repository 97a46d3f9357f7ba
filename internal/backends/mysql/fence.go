package mysql

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateRuns implements sqlload.Claims.
func (l catalog) CreateRuns(s *sqlload.State) string { return l.statements(s).createRuns() }

// SelectRunSchemas implements sqlload.Claims.
func (catalog) SelectRunSchemas() string { return sqlload.SelectRunSchemas }

// Guard implements sqlload.Claims.
func (l catalog) Guard(s *sqlload.State) sqlload.Guard {
	if !l.server.flavour.locksTables() {
		return sqlload.Guard{}
	}
	return mysqlconn.Guard(s)
}

// fenceIdle is how many seconds a client that is frozen behind a fence may keep it.
const fenceIdle = 30

// Fence implements sqlload.Claims by locks of tables, or else of a row.
func (l catalog) Fence(ctx context.Context, s *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error) error {
	if len(f.Claims) == 0 || !l.server.flavour.locksTables() { // LOCK TABLES on the runs' rows alone would wait for all batches, too
		return l.fenceByRow(ctx, s, f, change)
	}
	lock := mysqlconn.TableLock(func() (string, error) { return l.endHolders(ctx, s, f) })
	return l.alone(ctx, func(c sqlload.Conn) error {
		return lock.Fence(ctx, c, append([]string{s.Runs()}, f.Claims...), change)
	})
}

// alone calls f with a connection of its own, whose end releases its locks.
func (l *opened) alone(ctx context.Context, f func(sqlload.Conn) error) error {
	besides := []string{autocommit(false)}
	if l.server.flavour.locksTables() {
		besides = append(besides, fmt.Sprintf("SET SESSION wait_timeout = %d", fenceIdle))
	}
	if l.server.vars["binlog_format"] != "STATEMENT" || l.server.vars["log_bin"] != "ON" { // which takes no other level than the default
		besides = append(besides, mysqlconn.ReadCommitted)
	}
	c, err := l.atHome(ctx, besides...)
	if err != nil {
		return loader.ConnectError(l.home.config.Addr, err, faultOf)
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// atHome opens a connection to the host of the control connections, with what it says besides.
func (l *opened) atHome(ctx context.Context, besides ...string) (mysqlconn.Conn, error) {
	return l.connector(l.home.config, l.server.flavour.controlSetup(l.target.Settings, besides...)).Dial(ctx)
}

// runColumns are those of the runs' rows.
const runColumns = "(name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed)"

// fenceByRow is Fence where LOCK TABLES does nothing or reaches one server only. A row that is locked keeps two
// processes apart; then the run's sessions are ended, whose epoch is old by now.
func (l catalog) fenceByRow(ctx context.Context, s *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error) error {
	err := l.alone(ctx, func(c sqlload.Conn) error {
		err := sqlload.ExecAll(ctx, c,
			"INSERT IGNORE INTO "+s.Runs()+" "+runColumns+" VALUES ('', '', '', 'lock', '', '', '', 0, 0, 0, 0, 0)",
			"COMMIT",
			"SELECT epoch FROM "+s.Runs()+" WHERE run = '' AND part = '' FOR UPDATE",
		)
		if err == nil {
			err = change(c)
		}
		if err != nil {
			_, _ = c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			return err
		}
		_, err = c.Exec(ctx, "COMMIT")
		return err
	})
	if err != nil || f.Run == "" {
		return err
	}
	return l.endRun(ctx, s, f)
}

func (l *opened) exec(ctx context.Context, statement string) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_, err = c.Exec(ctx, statement)
	return err
}

// createRuns creates the table of the runs' rows.
func (s statements) createRuns() string {
	return s.createOwn(s.Runs(), sqlload.RunColumns("VARCHAR(64)", "VARCHAR(255) CHARACTER SET utf8mb4", "BIGINT"))
}
