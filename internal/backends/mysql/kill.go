package mysql

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// EndOthers implements sqlload.Claims.
//
// It needs no privilege beyond those of the load, and nothing that an earlier process would have had to leave behind: a
// server shows every user the user's own connections, and an uncommitted claim names its connection. The connection of
// a committed claim has gone on to other batches, or is another's by now: so a committed claim ends nothing. TiDB's
// sessions are not ended (see endRun): ResolveBatch waits for them.
func (l catalog) EndOthers(ctx context.Context, s *sqlload.State, ref loader.Ref) error {
	if l.server.flavour == tiDB {
		return nil
	}
	found, err := l.rows(ctx, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	if err != nil || len(found) > 0 {
		return err
	}
	for _, e := range l.hosts.List {
		if err := l.endOthersOn(ctx, e, s, ref); err != nil {
			// A session that still runs there holds its claim, which ResolveBatch waits for.
			l.log.Warn("earlier attempts may still run", "host", e.config.Addr, "error", err)
		}
	}
	return nil
}

// endOthersOn ends the connections of one host that work on the batch. It opens a connection: the control connections
// lead to one host, and may all be busy with scans.
func (l *opened) endOthersOn(ctx context.Context, e endpoint, s *sqlload.State, ref loader.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, sqlload.EndTimeout)
	defer cancel()
	f := l.server.flavour
	c, err := l.connector(e.config, f.controlSetup(l.target.Settings, f.dirtyReads()...)).Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	list := func(ctx context.Context) ([]string, error) { return findSessions(ctx, c, l.statements(s), ref) }
	return sqlload.EndSessions(ctx, list, func(ctx context.Context, id string) error { return mysqlconn.Kill(ctx, c, id) })
}

// findSessions finds this user's connections that work on the batch: by the tag of their statement, and by the
// connection that the claim names. The tag alone misses a connection that waits for its client, between two statements
// or in the middle of a long one; the claim, read before it is committed, does not. A claim committed just now names a
// connection that has gone on to another batch, which then fails and is sent again: a waste, no harm.
//
// MySQL's information_schema.processlist fails with error 3854 while any session runs a statement that is not UTF-8, as
// an INSERT of raw bytes is. SHOW gives statements as they are, the first 100 bytes; so does performance_schema, which
// is empty where it is switched off.
func findSessions(ctx context.Context, c sqlload.Conn, s statements, ref loader.Ref) (ids []string, err error) {
	var holder string
	if len(s.flavour.dirtyReads()) > 0 {
		if holder, err = value(ctx, c, s.selectHolder(ref)); err != nil {
			return nil, err
		}
	}
	if s.flavour == mySQL {
		user, err := value(ctx, c, "SELECT SUBSTRING_INDEX(USER(), '@', 1)")
		if err != nil {
			return nil, err
		}
		err = c.Query(ctx, "SHOW PROCESSLIST", func(row [][]byte) error { // Id, User, Host, db, Command, Time, State, Info
			if string(row[1]) == user && (string(row[0]) == holder || bytes.HasPrefix(row[7], []byte(tag(ref.ID)))) {
				ids = append(ids, string(row[0]))
			}
			return nil
		})
		return ids, err
	}
	found, err := sqlload.Rows(ctx, c, "SELECT id FROM information_schema.processlist WHERE user = SUBSTRING_INDEX(USER(), '@', 1)"+
		" AND id <> CONNECTION_ID() AND (info LIKE "+literal(tag(ref.ID)+"%")+" OR id = "+cmp.Or(holder, "0")+")")
	return firsts(found), err
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

func (l *opened) kill(ctx context.Context, connection string) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return mysqlconn.Kill(ctx, c, connection)
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
