package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// examined answers what an examination asks beside what a load asks.
type examined struct {
	settings    map[string][2]string // by name: value and unit
	pid         string               // what the server calls this connection
	standby     string
	hidden      string // a statement, by a part of it, that this user may not say
	replication []string
	table       []string // privileges, indexes, triggers, foreign keys
	tablets     []string
}

// before makes a fake ask x first.
func (x *examined) before(f *fake, answer func(*fakeConn, string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = func(c *fakeConn, sql string) bool { return x.answer(c, sql) || answer(c, sql) }
}

func (x *examined) answer(c *fakeConn, sql string) (known bool) {
	switch {
	case x.hidden != "" && strings.Contains(sql, x.hidden):
		c.fails("42501", "permission denied for view "+x.hidden)
	case strings.HasPrefix(sql, "SELECT name, setting"):
		var rows [][]string
		for name, s := range x.settings {
			rows = append(rows, []string{name, s[0], s[1], "configuration file"})
		}
		c.rows(rows...)
	case strings.Contains(sql, "FROM pg_roles"):
		c.rows([]string{"u", "u", "d", "public", x.standby, x.pid, "f", "-1", "-1", "3", "1", "2"})
	case strings.HasPrefix(sql, "SELECT current_user, current_user"): // Redshift
		c.rows([]string{"u", "u", "d", "public"})
	case strings.Contains(sql, "has_schema_privilege"):
		c.rows([]string{"t"})
	case strings.Contains(sql, "row_security_active"):
		c.rows(x.table)
	case strings.Contains(sql, "yb_table_properties"):
		c.rows(x.tablets)
	case strings.Contains(sql, "pg_locks"):
		c.rows()
	case strings.Contains(sql, "pg_stat_replication"):
		c.rows(x.replication)
	default:
		return false
	}
	return true
}

// A server that hangs half way says nothing that would stop a push.
func TestExamineOfAServerThatHangs(t *testing.T) {
	for _, silent := range []string{"SET lock_timeout", "FROM pg_roles", "obj_description", "row_security_active", "pg_stat_replication"} {
		t.Run(silent, func(t *testing.T) {
			a, hang := newCloud(t, auroraVersion), make(chan struct{})
			defer close(hang)
			healthy().before(a.fake, a.answer)
			inner := a.fake.answer
			a.fake.answer = func(c *fakeConn, sql string) bool {
				if strings.Contains(sql, silent) {
					<-hang
				}
				return inner(c, sql)
			}
			to := a.target("copy")
			to.Table, to.Via = "people", nil
			i := intent(t)
			i.Schema = people()
			l, err := postgres.New().Open(t.Context(), to, deps())
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			findings, err := l.(loader.Checker).CheckServer(ctx, i)
			require.Error(t, err)
			for _, f := range findings {
				require.NotEqual(t, loader.GradeFail, f.Grade, "%+v", f)
			}
		})
	}
}

// healthy is a server that nothing is wrong with. The fakes call every connection 1.
func healthy() *examined {
	return &examined{
		pid: "1", standby: "f",
		settings: map[string][2]string{
			"max_connections": {"100", ""}, "superuser_reserved_connections": {"3", ""}, "fsync": {"on", ""}, "full_page_writes": {"on", ""},
			"synchronous_commit": {"on", ""}, "max_wal_size": {"16384", "MB"}, "checkpoint_timeout": {"900", "s"},
			"checkpoint_completion_target": {"0.9", ""}, "archive_mode": {"on", ""}, "statement_timeout": {"0", "ms"},
		},
		replication: []string{"0", "0", "", "", "f"},
		table:       []string{"t", "t", "t", "f", "", "", "", ""},
		tablets:     []string{"6", "1"},
	}
}

// What depends on settings that no session can change, and on products that cannot be had.
func TestExamineScripted(t *testing.T) {
	for name, c := range map[string]struct {
		broken            func(*examined)
		check, found, fix string
		grade             loader.Grade
	}{
		"nothing": {broken: func(*examined) {}},
		"a standby": {
			broken: func(x *examined) { x.standby, x.hidden = "t", "pg_current_wal_lsn" },
			check:  "server", grade: loader.GradeFail, found: "is a standby and takes no rows", fix: "name the primary",
		},
		"a pooler": {
			broken: func(x *examined) { x.pid = "4711" },
			check:  "pooler", grade: loader.GradeWarn, found: "calls this connection 1, the server 4711", fix: "default_pool_size of at least 6",
		},
		"torn pages": {
			broken: func(x *examined) { x.settings["full_page_writes"] = [2]string{"off", ""} },
			check:  "durability", grade: loader.GradeWarn, found: "torn pages", fix: "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()",
		},
		"Aurora, which tears no pages and has no checkpoints": {
			broken: func(x *examined) {
				x.settings["full_page_writes"], x.settings["max_wal_size"] = [2]string{"off", ""}, [2]string{"64", "MB"}
				x.settings["apg_enable_batch_mode_function_execution"] = [2]string{"on", ""}
			},
		},
		"RDS": {
			broken: func(x *examined) {
				x.settings["rds.extensions"], x.settings["max_wal_size"] = [2]string{"", ""}, [2]string{"256", "MB"}
			},
			check: "checkpoints", grade: loader.GradeWarn, found: "about every 135 MiB of log, 7 for 1.0 GiB of rows", fix: "set max_wal_size to '4GB' in the parameter group",
		},
		"archiving fails": {
			broken: func(x *examined) { x.replication[4] = "t" },
			check:  "replication", grade: loader.GradeWarn, found: "archiving of the log fails", fix: "archive_command",
		},
		"a slot with a bound": {
			broken: func(x *examined) {
				x.replication[2], x.replication[3] = "one, two", "1048576"
				x.settings["max_slot_wal_keep_size"] = [2]string{"1024", "MB"}
			},
			check: "replication", grade: loader.GradeWarn, found: "slot one, two, for which the server keeps its log: 1.0 MiB so far, up to 1.0 GiB", fix: "pg_drop_replication_slot('one')",
		},
		"a standby that is there": {
			broken: func(x *examined) {
				x.settings["synchronous_standby_names"], x.replication[0] = [2]string{"far", ""}, "1"
			},
			check: "replication", grade: loader.GradeWarn, found: "every commit waits", fix: "--set synchronous_commit=local",
		},
		"a standby that nobody may see": {
			broken: func(x *examined) {
				x.settings["synchronous_standby_names"], x.replication[1] = [2]string{"far", ""}, "1"
			},
			check: "replication", grade: loader.GradeUnknown, found: "this user may not see", fix: `GRANT pg_monitor TO "u"`,
		},
		"views that nobody may see": {
			broken: func(x *examined) { x.hidden = "pg_stat_replication" },
			check:  "replication", grade: loader.GradeUnknown, found: "permission denied", fix: `GRANT pg_monitor TO "u"`,
		},
		"transactions that are ended": {
			broken: func(x *examined) {
				x.settings["statement_timeout"], x.settings["transaction_timeout"] = [2]string{"9000", "ms"}, [2]string{"8000", "ms"}
			},
			check: "timeouts", grade: loader.GradeWarn, found: "transaction_timeout is 8s and ends longer loads: each session would have to load 2.0 MiB/s", fix: "--set transaction_timeout=0",
		},
		"connections kept for others": {
			broken: func(x *examined) { x.settings["reserved_connections"] = [2]string{"91", ""} },
			check:  "connection limit", grade: loader.GradeWarn, found: "4 free (max_connections 100, 94 reserved, 2 in use), and the run opens 6", fix: "ALTER SYSTEM SET max_connections = 102, and restart the server, or --workers 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := healthy()
			c.broken(x)
			a := newCloud(t, auroraVersion)
			x.before(a.fake, a.answer)
			to := a.target("copy")
			to.Table, to.Via = "people", nil
			i := intent(t)
			i.Schema = people()
			findings := examine(t, to, i)
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, c.grade, c.found, c.fix)
		})
	}
}

func TestExamineYugabyte(t *testing.T) {
	for name, c := range map[string]struct {
		broken            func(*examined, *loader.Target, *loader.Intent)
		check, found, fix string
	}{
		"nothing": {broken: func(*examined, *loader.Target, *loader.Intent) {}},
		"a large transaction": {
			broken: func(_ *examined, _ *loader.Target, i *loader.Intent) { i.Contract.BatchRows = 30_000 },
			check:  "transaction size", found: "a batch of 30000 rows is one distributed transaction; the server's own COPY commits every 20000 rows",
			fix: "--batch-rows 20000, or --rows-per-transaction 20000",
		},
		"a key in order": {
			broken: func(x *examined, _ *loader.Target, _ *loader.Intent) { x.tablets = []string{"3", "0"} },
			check:  "tablets", found: "all go to one tablet of 3", fix: `PRIMARY KEY ("document_id" HASH)`,
		},
		"an index, and no transactions": {
			broken: func(x *examined, to *loader.Target, i *loader.Intent) {
				x.table[4], i.Contract.Dedup = "slow", loader.DedupNone
				to.Options["disable-transactional-writes"] = "true"
			},
			check: "indexes, triggers", found: "without transactions an index can end up without its rows", fix: "DROP INDEX slow",
		},
		"a trigger, and rows per transaction": {
			broken: func(x *examined, to *loader.Target, i *loader.Intent) {
				x.table[5], i.Contract.Dedup = "each", loader.DedupRange
				to.Options["rows-per-transaction"] = "20"
			},
			check: "indexes, triggers", found: "YugabyteDB ignores rows-per-transaction on a table with triggers", fix: "DISABLE TRIGGER USER",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := healthy(), newYugabyte(t)
			x.settings["yb_default_copy_from_rows_per_transaction"] = [2]string{"20000", ""}
			to, i := y.target(), intent(t)
			c.broken(x, &to, &i)
			x.before(y.fake, y.answer)
			findings := examine(t, to, i)
			for _, f := range findings {
				require.NotContains(t, []string{"durability", "checkpoints", "replication"}, f.Check, "its storage is not PostgreSQL's")
			}
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, loader.GradeWarn, c.found, c.fix)
		})
	}
}

// Redshift is asked nothing that it does not know.
func TestExamineRedshift(t *testing.T) {
	x, r := healthy(), newCloud(t, redshiftVersion)
	x.settings = map[string][2]string{"statement_timeout": {"1000", "ms"}}
	x.before(r.fake, r.answer)
	i := intent(t)
	i.Schema, i.Contract, i.BatchBytes = people(), contract("s3-copy", batch.CSV), 1<<20
	i.Contract.GroupBatches, i.Contract.Commits = 4, 1
	found := examine(t, r.target("s3-copy"), i)
	store := slices.IndexFunc(found, func(f loader.Finding) bool { return f.Check == "store from the server" })
	require.Equal(t, loader.GradeUnknown, found[store].Grade, "nobody here can see that")
	only(t, slices.Delete(found, store, store+1), "timeouts", loader.GradeWarn, "each session would have to load 4.0 MiB/s", "--set statement_timeout=0")
	for _, unknown := range []string{"pg_stat_activity", "pg_locks", "row_security_active", "pg_stat_replication"} {
		require.Empty(t, r.queries(unknown))
	}
}
