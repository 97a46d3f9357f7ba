package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

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

// endHolders ends the sessions of the fence's run that hold a lock on a claim table, and describes those of others.
func (l *opened) endHolders(ctx context.Context, c sqlload.Conn, s *sqlload.State, f sqlload.Fence) (others string, err error) {
	if l.flavour == redshift {
		return "", nil
	}
	var tables []string
	for _, table := range append([]string{s.Runs()}, f.Claims...) {
		tables = append(tables, "to_regclass("+sqlload.Literal(table)+")")
	}
	found, err := sqlload.Rows(ctx, c, "SELECT DISTINCT a.pid, COALESCE(a.application_name, ''), COALESCE(a.usename, '') "+
		"FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "+
		"WHERE l.granted AND l.pid <> pg_backend_pid() AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation IN ("+strings.Join(tables, ", ")+")")
	if err != nil {
		return "", err
	}
	var left []string
	for _, row := range found {
		pid, name, user := row[0], row[1], row[2]
		if !ends(f, name) {
			left = append(left, fmt.Sprintf("%s of user %s (SELECT pg_terminate_backend(%s))", name, user, pid))
			continue
		}
		if _, err := sqlload.Rows(ctx, c, "SELECT pg_terminate_backend("+pid+")"); err != nil {
			return "", &loader.Error{
				Op: "end the session of an earlier process", Applied: loader.No, Err: err,
				Hint: fmt.Sprintf("session %s of user %s holds the claims of run %s: end it as that user or as an administrator, by "+
					"SELECT pg_terminate_backend(%s)", pid, user, f.Run, pid),
			}
		}
	}
	return strings.Join(left, ", "), nil
}

// ends reports whether a session belongs to what the fence may end: the shard, or all of the run.
func ends(f sqlload.Fence, session string) bool {
	if f.Run == "" {
		return false
	}
	whole := sessionName(f.Run, f.Shard)
	return session == whole || f.Shard == "" && strings.HasPrefix(session, whole+" ")
}

// endRun ends the sessions of the fence's run on all hosts, and waits until they are gone.
func (l *opened) endRun(ctx context.Context, f sqlload.Fence) error {
	if f.Run == "" {
		return nil
	}
	for _, e := range l.hosts.List {
		err := l.endSessions(ctx, e, func(_ backend, session string) bool { return ends(f, session) })
		if err != nil {
			return err
		}
	}
	return nil
}
