package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process that was frozen, in the middle of a batch's transaction or between two, comes back after another one has taken
// its run over, forgotten it, or filled the table anew. It puts nothing in, and says so by its exit code.
func TestStale(t *testing.T) {
	t.Parallel()
	const killed = "its server killed, and resumed"
	few := scaled(backEnds(), everyServer())
	for name, c := range map[string]struct {
		on  []kind
		act func(t *testing.T, s *stale)
	}{
		"resumed on a copy": {everyServer(), func(t *testing.T, s *stale) {
			s.on("copy").push("--resume", "last").run(t).ends(t, 0)
		}},
		"resumed twice at once": {few, func(t *testing.T, s *stale) {
			one, two := s.on("copy").push("--resume", "last").start(t), s.on("copy2").push("--resume", "last").start(t)
			first, second := one.wait(t), two.wait(t)
			codes, said := []int{first.code, second.code}, first.stderr+second.stderr
			assert.Contains(t, codes, 0, "one of them has it at the end: %s", said)
			assert.Subset(t, []int{0, 5, 9}, codes, said)
		}},
		"another run asks": {few, func(t *testing.T, s *stale) {
			for _, create := range []string{"recreate", "truncate", "if-missing"} {
				r := s.on("other").push(s.load.flags("--create", create)...).run(t).ends(t, 5)
				r.says(t, "belongs to run "+s.run(t), "terapush forget TARGET --run "+s.run(t))
			}
			s.on("copy").push("--resume", "last").run(t).ends(t, 0)
		}},
		"forgotten, and another run recreates": {everyServer(), func(t *testing.T, s *stale) {
			s.forgets(t)
			s.on("other").push(s.load.flags("--create", "recreate")...).run(t).ends(t, 0)
		}},
		"forgotten, and another run truncates": {few, func(t *testing.T, s *stale) {
			s.forgets(t)
			s.on("other").push(s.load.flags("--create", "truncate")...).run(t).ends(t, 0)
		}},
		// TiDB ends no session that is in a transaction.
		"its sessions ended, and resumed": {scaled(few, append(sqlServers(), oceanBase)), func(t *testing.T, s *stale) {
			require.NoError(t, s.endSessions())
			s.on("copy").push("--resume", "last").run(t).ends(t, 0)
		}},
		"resumed, verified and forgotten": {few, func(t *testing.T, s *stale) {
			copied := s.on("copy")
			copied.push("--resume", "last").run(t).ends(t, 0)
			copied.again(t, "verify", "--verify", "full").run(t).ends(t, 0)
			copied.again(t, "forget").run(t).ends(t, 0)
		}},
		// The store of a single tidb-server does not survive it, and seekdb keeps the locks of transactions for ever.
		killed: {scaled(few, sqlServers()), func(t *testing.T, s *stale) {
			s.server.kill(t)
			s.server.up(t)
			s.on("copy").push("--resume", "last").run(t).ends(t, 0)
		}},
	} {
		for _, k := range c.on {
			t.Run(fmt.Sprintf("%s/%s", name, k), func(t *testing.T) {
				t.Parallel()
				rounds := 4
				if slices.Contains(backEnds(), k) {
					rounds = 8
				}
				var server *scratch
				if name == killed {
					server = newScratch(t, k)
				}
				inside := 0
				for range scaled(1, rounds) {
					s := freeze(t, k, server)
					if s.inTransaction(t) {
						inside++
					}
					c.act(t, s)
					s.signal(t, syscall.SIGCONT)
					s.wait(t).ends(t, 9).says(t, "run "+s.id+" ")
					s.isExact(t, s.load)
				}
				t.Logf("frozen in the middle of a transaction %d times", inside)
			})
		}
	}
}

// stale is a push that is frozen, with some batches in.
type stale struct {
	*database
	*process
	server *scratch // its own, if the test kills it
	load   load
	id     string
}

func freeze(t *testing.T, k kind, server *scratch) *stale {
	t.Helper()
	s := &stale{server: server, load: small(20_000)}
	if server != nil {
		s.database = server.database(t)
	} else {
		s.database = newDatabase(t, k)
	}
	method := s.exact()
	if k != oceanBase {
		method = s.methods()[rand.IntN(2)]
	}
	s.process = s.push(s.load.flags("--method", method, "--max-rate", "1MiB/s", "--workers", "4", "--verify", "full")...).start(t)
	s.untilClaims(t, s.process, 5+rand.Int64N(30))
	for inside := rand.IntN(2) == 0; ; { // a transaction is short: try until one is open, while there are batches
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
		s.signal(t, syscall.SIGSTOP)
		if !inside || s.inTransaction(t) || s.claims() > s.load.batches()/2 {
			break
		}
		s.signal(t, syscall.SIGCONT)
	}
	s.id = s.database.run(t)
	for _, name := range []string{"copy", "copy2"} {
		to := filepath.Join(filepath.Dir(s.state), name)
		require.NoError(t, os.CopyFS(to, os.DirFS(s.state)))
	}
	return s
}

func (s *stale) run(t *testing.T) string { t.Helper(); return s.id }

// on is the same database with another state folder.
func (s *stale) on(state string) *database {
	d := *s.database
	d.state = filepath.Join(filepath.Dir(s.state), state)
	return &d
}

// forgets frees the table as the message about an open run says, on a machine that does not know the run.
func (s *stale) forgets(t *testing.T) {
	t.Helper()
	invocation{args: []string{"forget", s.target(), "--run", s.id, "--state-dir", s.on("other").state}}.run(t).ends(t, 0)
}

// inTransaction reports whether a session of the frozen process has one open.
func (s *stale) inTransaction(t *testing.T) bool {
	t.Helper()
	query := ""
	switch s.kind {
	case postgres:
		query = "SELECT COUNT(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND application_name LIKE 'terapush/%' " +
			"AND datname = '" + s.name() + "'"
	case tiDB:
		query = "SELECT COUNT(*) FROM information_schema.tidb_trx WHERE db = '" + s.name() + "'"
	case oceanBase:
		query = "SELECT COUNT(*) FROM oceanbase.V$OB_TRANSACTION_SCHEDULERS x JOIN " + s.sessions() + " p ON p.id = x.session_id " +
			"WHERE x.state LIKE '%ACTIVE' AND p.db = '" + s.name() + "'"
	case mySQL: // whose innodb_trx fails as its processlist does
		query = "SELECT COUNT(*) FROM performance_schema.events_transactions_current x JOIN performance_schema.threads t USING (thread_id) " +
			"WHERE x.state = 'ACTIVE' AND t.processlist_db = '" + s.name() + "'"
	default:
		query = "SELECT COUNT(*) FROM information_schema.innodb_trx x JOIN " + s.sessions() + " p ON p.id = x.trx_mysql_thread_id " +
			"WHERE p.db = '" + s.name() + "'"
	}
	return s.number(t, query) > 0
}

// sessions is the list of MySQL's or MariaDB's sessions. MySQL's own information_schema.processlist fails while a session sends raw
// bytes.
func (s *stale) sessions() string {
	if s.kind == mySQL {
		return "(SELECT processlist_id AS id, processlist_db AS db FROM performance_schema.threads)"
	}
	return "information_schema.processlist"
}

// endSessions ends all sessions in the database but this one.
func (s *stale) endSessions() error {
	if s.kind == postgres {
		return s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + s.name() + "' AND pid <> pg_backend_pid()")
	}
	var ids []int64
	err := s.query("SELECT id FROM "+s.sessions()+" p WHERE id <> CONNECTION_ID() AND db = '"+s.name()+"'",
		func(scan func(...any) error) error {
			var id int64
			if err := scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
			return nil
		})
	for _, id := range ids {
		_ = s.exec(fmt.Sprintf("KILL %d", id)) // it may have ended
	}
	return err
}
