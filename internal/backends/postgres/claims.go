package postgres

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	st := l.statements(s)
	found, err := sqlload.Rows(ctx, c, st.selectClaimsTable())
	if err != nil || len(found) == 0 {
		return false, err
	}
	may, persistence, keyed := found[0][0], found[0][1], found[0][2]
	const drop = "drop it if no run needs it any more: the next run makes it again"
	switch {
	case may != "t":
		grant := l.Grant(ctx, c, "SELECT, INSERT, DELETE", s.Claims)
		return true, sqlload.Refuse(grant+", or do without exactly once: --delivery at-least-once",
			"this user may not use the claim table %s", s.Claims)
	case persistence != durability(st.unlogged):
		return true, sqlload.Refuse(drop,
			"the claim table %s is %s and the table %s %s: a crash would empty only one of them",
			s.Claims, persistence, s.Table, durability(st.unlogged))
	case keyed != "t":
		return true, sqlload.Refuse("ALTER TABLE "+s.Claims+" ADD PRIMARY KEY (run, batch), or "+drop,
			"the claim table %s has no unique key on exactly (run, batch): a batch could be claimed twice", s.Claims)
	}
	return true, nil
}

// ResolveBatch implements sqlload.Claims. It claims and rolls back, in one message: an uncommitted claim, which no
// SELECT shows, makes it wait up to lockWait.
func (l catalog) ResolveBatch(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	if l.flavour == redshift {
		return resolveInRedshift(ctx, c, s, ref)
	}

	results, err := exec(ctx, c.(conn).PgConn, begin+s.TryClaim(ref)+" ON CONFLICT DO NOTHING; ROLLBACK")
	if err != nil {
		return loader.Resolution{}, err
	}
	if len(results) != 3 {
		return loader.Resolution{}, fmt.Errorf("the server answered %d of 3 statements", len(results))
	}
	if results[1].CommandTag.RowsAffected() == 1 {
		return loader.Resolution{Applied: loader.No}, nil
	}
	found, err := s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err == nil && found.Applied == loader.No {
		err = sqlload.ErrClaimVanished
	}
	return found, err
}

// backend is a server process. Process ids are reused, so its start, in seconds since 1970, is a part of it.
type backend struct{ pid, started string }

const (
	selectOwnBackend = "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
	selectBackends   = "SELECT pid, extract(epoch FROM backend_start)::text, COALESCE(application_name, '') FROM pg_stat_activity WHERE usename = session_user"
)

// EndOthers implements sqlload.Claims. It ends the run's sessions that this process does not use, and those that load
// the batch. A session that it cannot end cannot commit unseen: ResolveBatch waits for its claim.
func (l catalog) EndOthers(ctx context.Context, _ *sqlload.State, ref loader.Ref) error {
	if l.flavour == redshift { // it does not show the sessions of others; ResolveBatch waits for the lock on the claims
		return nil
	}
	name := sessionName(ref.ID.Run, l.shard())
	for _, e := range l.hosts.List {
		err := l.endSessions(ctx, e, func(b backend, session string) bool {
			return session == name && !l.spared(ref)[b]
		})
		if err == nil || wrongRole(err) { // a host in the wrong role has no session of this run
			continue
		}
		l.deps.Log.Warn("earlier sessions may still run", "host", e, "error", err)
	}
	return nil
}

// endSessions ends this user's sessions on one host that mine chooses, by process and name, and waits until they are
// gone: pg_stat_activity drops a backend after its transaction has ended.
func (l *opened) endSessions(ctx context.Context, e endpoint, mine func(b backend, session string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, sqlload.EndTimeout)
	defer cancel()
	c, err := l.connect(ctx, e, nil)
	if err != nil {
		return fmt.Errorf("earlier sessions on %s may still be at work: %w", e, err)
	}
	defer func() { _ = closeConn(c) }()

	list := func(ctx context.Context) (pids []string, err error) {
		found, err := rowsOf(ctx, c, selectBackends)
		for _, row := range found {
			if mine(backend{pid: row[0], started: row[1]}, row[2]) {
				pids = append(pids, row[0])
			}
		}
		return pids, failed("list earlier sessions", err)
	}
	end := func(ctx context.Context, pid string) error {
		_, err := rowsOf(ctx, c, "SELECT pg_terminate_backend("+pid+")")
		return failed("end an earlier session", err)
	}
	return sqlload.EndSessions(ctx, list, end)
}

// spared returns the working sessions of this process that do not load the batch.
func (l *opened) spared(ref loader.Ref) map[backend]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	spared := make(map[backend]bool, len(l.sessions))
	for s := range l.sessions {
		if s.run != ref.ID.Run || s.loading.Load() != ref.ID.Number {
			spared[s.backend] = true
		}
	}
	return spared
}
