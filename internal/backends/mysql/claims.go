package mysql

import (
	"bytes"
	"cmp"
	"context"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims. Without the key a batch could be claimed twice; without transactions claims
// stay after a rollback.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (there bool, err error) {
	found, err := sqlload.Rows(ctx, c, l.selectTable(l.name.claims()))
	if err != nil || len(found) == 0 {
		return false, err
	}
	if traits := found[0][2:]; traits[traitTransactional] != "YES" {
		return true, s.RefuseClaims("ENGINE = InnoDB", "engine %q keeps rows after a rollback", traits[traitEngine])
	}
	return l.CheckKeys(ctx, c, s, l.name.schema)
}

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

// ResolveBatch implements sqlload.Claims by a locking read, which waits for a session that has inserted the claim and
// neither committed nor rolled back: only then is "not there" final. OceanBase's does not see what is not committed; its
// key does.
func (l catalog) ResolveBatch(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	if l.server.flavour == oceanBase {
		return s.WaitForClaim(ctx, c, ref, mysqlconn.Taken)
	}
	if _, err := c.Exec(ctx, "START TRANSACTION"); err != nil {
		return loader.Resolution{}, err
	}
	defer func() { // the connection goes back to the pool; a ROLLBACK that times out closes it
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loader.ConnectTimeout)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK")
	}()
	return s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number)+" FOR UPDATE", ref)
}
