package mysql

import (
	"context"
	"fmt"
	"slices"
	"time"

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

// endHolders ends the connections of the fence's run whose claim is not committed.
func (l *opened) endHolders(ctx context.Context, s *sqlload.State, f sqlload.Fence) (others string, err error) {
	if f.Run == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, sqlload.EndTimeout)
	defer cancel()
	for _, table := range f.Claims {
		query := fmt.Sprintf("SELECT run, batch, connection FROM %s WHERE run IN (SELECT run FROM %s WHERE name = %s)",
			table, s.Runs(), literal(f.Run))
		holders, err := mysqlconn.Uncommitted(ctx, l.atHome, query)
		if err != nil {
			return "", err
		}
		for _, connection := range holders {
			if connection == "0" {
				continue
			}
			if err := l.kill(ctx, connection); err != nil {
				return "", &loader.Error{
					Op: "end the session of an earlier process", Applied: loader.No, Err: err,
					Hint: fmt.Sprintf("connection %s holds claims of run %s: end it as an administrator, by KILL %s", connection, f.Run, connection),
				}
			}
		}
	}
	return "", nil
}

// atHome opens a connection to the host of the control connections, with what it says besides.
func (l *opened) atHome(ctx context.Context, besides ...string) (mysqlconn.Conn, error) {
	return l.connector(l.home.config, l.server.flavour.controlSetup(l.target.Settings, besides...)).Dial(ctx)
}

func (l *opened) kill(ctx context.Context, connection string) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return mysqlconn.Kill(ctx, c, connection)
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

// insertSession names a session of the run to later fences, where these have to end it: a row without a name, whose
// epoch is the shard and whose fingerprint the connection.
func (s statements) insertSession(connection int64) string {
	return fmt.Sprintf("INSERT INTO %s %s VALUES ('', '%s', 'session %d', 'session', '%s', '', '', 0, %d, 0, 0, 0)",
		s.Runs(), runColumns, s.Row.Run, connection, s.Row.Part, connection)
}

// idleTransactions is how long endRun waits on TiDB.
const idleTransactions = 3*transactionIdle*time.Second + sqlload.EndTimeout

// endRun ends the sessions of the fence's run, and waits until they are gone.
//
// On TiDB it waits for their transactions only: a server of version 8.5 may crash when a session with a transaction is
// killed (github.com/pingcap/tidb/issues/63956). They end transactionIdle seconds after their client's last packet, and
// in the middle of a LOAD DATA three times as long after it: the reader drains the file, and then there is a next
// statement.
func (l *opened) endRun(ctx context.Context, s *sqlload.State, f sqlload.Fence) error {
	most := sqlload.EndTimeout
	if l.server.flavour == tiDB {
		most = idleTransactions
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	found, err := l.rows(ctx, fmt.Sprintf("SELECT DISTINCT run FROM %s WHERE name = %s", s.Runs(), literal(f.Run)))
	if err != nil || len(found) == 0 {
		return err
	}
	sessions := fmt.Sprintf("state = 'session' AND run IN (%s)", sqlload.Literals(firsts(found)))
	if f.Shard != "" {
		sessions += " AND epoch = " + literal(f.Shard)
	}
	if err := l.awaitSessions(ctx, f.Run, fmt.Sprintf("SELECT fingerprint FROM %s WHERE %s", s.Runs(), sessions)); err != nil {
		return err
	}
	return l.exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE %s", s.Runs(), sessions))
}

// awaitSessions ends the connections that a query names, and waits until they are gone; on TiDB, until their
// transactions are.
func (l *opened) awaitSessions(ctx context.Context, run, query string) error {
	waitOnly := l.server.flavour == tiDB
	if waitOnly { // a transaction that begins just now may not be on the list yet
		if err := sqlload.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}

	logged := false
	list := func(ctx context.Context) ([]string, error) {
		alive, err := l.alive(ctx, query)
		if waitOnly && !logged && len(alive) > 0 {
			l.log.Info("waiting for transactions of an earlier process of run "+run, "connections", alive, "most", idleTransactions)
			logged = true
		}
		return alive, err
	}
	end := l.kill
	if waitOnly {
		end = nil
	}
	return sqlload.EndSessions(ctx, list, end)
}

// alive returns those of the connections that a query names that are open; on TiDB, that have a transaction.
func (l *opened) alive(ctx context.Context, query string) (alive []string, err error) {
	open := "SELECT id FROM information_schema.processlist WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID()"
	if l.server.flavour == tiDB {
		open = "SELECT session_id FROM information_schema.cluster_tidb_trx"
	}
	theirs, err := l.rows(ctx, open)
	if err != nil {
		return nil, err
	}
	named, err := l.rows(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, connection := range firsts(named) {
		if slices.Contains(firsts(theirs), connection) {
			alive = append(alive, connection)
		}
	}
	return alive, nil
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
