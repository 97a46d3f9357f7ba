package mysql

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// intentOf is a push of 1 GiB of documents.
func intentOf(t testing.TB, method string) loader.Intent {
	return loader.Intent{
		Preparation: preparation(documents(t, 20), contractOf(method, 1000)), Workers: 4, BatchBytes: 16 << 20, TotalBytes: 1 << 30, Advice: true,
	}
}

func examine(t testing.TB, to loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	l, err := New().Open(t.Context(), to, testDeps())
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	findings, err := l.(loader.Checker).CheckServer(t.Context(), i)
	require.NoError(t, err)
	require.NotEmpty(t, findings)
	for _, f := range findings {
		require.NotEmpty(t, f.Found, f.Check)
		require.False(t, f.Grade == loader.GradeOK && f.Fix != "" || (f.Grade == loader.GradeWarn || f.Grade == loader.GradeFail) && f.Fix == "", "%+v", f)
	}
	return findings
}

// complaints are the findings that are not ok, without what the servers for tests are known for: they give durability up.
func complaints(findings []loader.Finding) (found []loader.Finding) {
	for _, f := range findings {
		if f.Grade != loader.GradeOK && !strings.HasPrefix(f.Found, "innodb_flush_log_at_trx_commit is 2") {
			found = append(found, f)
		}
	}
	return found
}

// only requires that one thing is named, and how.
func only(t *testing.T, findings []loader.Finding, check string, grade loader.Grade, found, fix string) {
	t.Helper()
	wrong := complaints(findings)
	require.Len(t, wrong, 1, "%+v", wrong)
	require.Equal(t, check, wrong[0].Check, "%+v", wrong)
	require.Equal(t, grade, wrong[0].Grade, "%+v", wrong)
	require.Contains(t, wrong[0].Found, found)
	require.Contains(t, wrong[0].Fix, fix)
}

// ordinary is an account that may do what a push needs in the test's database, and no more.
func ordinary(t *testing.T, s *testServer) (to loader.Target, account string) {
	user := "u" + strings.TrimPrefix(s.target.Database, "tp-")
	account = "'" + user + "'@'%'"
	s.exec(t, "CREATE USER "+account+" IDENTIFIED BY 'x'")
	t.Cleanup(func() { s.exec(t, "DROP USER "+account) })
	s.exec(t, "GRANT SELECT, INSERT, DELETE, CREATE ON "+quote(s.target.Database)+".* TO "+account)
	to = s.table("t")
	to.User, to.Password = user, "x"
	return to, account
}

// One thing is broken at a time, for one account or in one database, and exactly that is named.
func TestExamineNamesWhatIsBroken(t *testing.T) {
	const made = "CREATE TABLE $s.t (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL) ENGINE = InnoDB"
	const claimed = "; CREATE TABLE $s.terapush_claims (run VARCHAR(64), batch BIGINT, first_key BIGINT, row_count BIGINT, connection BIGINT DEFAULT 0, PRIMARY KEY (run, batch)) ENGINE = InnoDB"
	for name, c := range map[string]struct {
		given             string
		change            func(*loader.Target, *loader.Intent)
		check, found, fix string // no check: all is well
		grade             loader.Grade
		maria             bool // MariaDB only
	}{
		"nothing":               {},
		"nothing, with a table": {given: made + claimed},
		"may not create": {
			given: "REVOKE CREATE ON $s.* FROM $a", check: "privileges", grade: loader.GradeFail,
			found: "CREATE on $d.t and CREATE on $d.terapush_claims", fix: "GRANT CREATE ON $s.`t` TO $a; GRANT CREATE ON $s.`terapush_claims` TO $a",
		},
		"need not create": {given: made + claimed + "; REVOKE CREATE ON $s.* FROM $a"},
		"may not insert": {
			given: made + claimed + "; REVOKE INSERT ON $s.* FROM $a; GRANT INSERT ON $s.terapush_claims TO $a", check: "privileges", grade: loader.GradeFail,
			found: "this account lacks INSERT on $d.t", fix: "GRANT INSERT ON $s.`t` TO $a",
		},
		"may not claim": {
			given: made + claimed + "; REVOKE DELETE ON $s.* FROM $a", check: "privileges", grade: loader.GradeWarn,
			found: "DELETE on $d.terapush_claims", fix: "GRANT DELETE ON $s.`terapush_claims` TO $a",
		},
		"claims nothing": {
			given:  made + claimed + "; REVOKE DELETE ON $s.* FROM $a",
			change: func(_ *loader.Target, i *loader.Intent) { i.Contract.Dedup = loader.DedupNone },
		},
		"may not truncate": {
			given:  made + " COMMENT = 'made by terapush'",
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateTruncate },
			check:  "privileges", grade: loader.GradeFail, found: "lacks DROP on $d.t", fix: "GRANT DROP ON $s.`t` TO $a",
		},
		"not ours to truncate": {
			given: made + "; GRANT DROP ON $s.* TO $a", change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateTruncate },
			check: "table", grade: loader.GradeFail, found: "was not made by terapush", fix: "--yes-drop",
		},
		"table is missing": {
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateNever },
			check:  "table", grade: loader.GradeFail, found: "table $s.`t` does not exist", fix: "--create if-missing",
		},
		"another table": {
			given: "CREATE TABLE $s.t (document_id INT, payload LONGBLOB) ENGINE = InnoDB",
			check: "table", grade: loader.GradeFail, found: "column document_id is int",
		},
		"a table without transactions": {
			given:  "CREATE TABLE $s.t (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL) ENGINE = MyISAM",
			change: func(_ *loader.Target, i *loader.Intent) { i.Contract.Dedup = loader.DedupNone },
			check:  "delivery", grade: loader.GradeWarn, found: "engine MyISAM of table $d.t keeps rows after a rollback", fix: "ALTER TABLE $s.`t` ENGINE = InnoDB",
		},
		"claims without a key": {
			given: made + claimed + "; ALTER TABLE $s.terapush_claims DROP PRIMARY KEY", check: "claim table", grade: loader.GradeFail,
			found: "no primary or unique key is (run, batch)", fix: "ADD UNIQUE KEY (run, batch)",
		},
		"claims are gone": {
			given: made, change: func(_ *loader.Target, i *loader.Intent) { i.Resume = true },
			check: "claim table", grade: loader.GradeFail, found: "is gone", fix: "start a new run",
		},
		"account's connections": {
			given: "ALTER USER $a WITH MAX_USER_CONNECTIONS 5", check: "connection limit", grade: loader.GradeWarn,
			found: "5 free (this account has max_user_connections 5)", fix: "ALTER USER $a WITH MAX_USER_CONNECTIONS ",
		},
		"server's connections": {
			change: func(_ *loader.Target, i *loader.Intent) { i.Workers = 500 },
			check:  "connection limit", grade: loader.GradeWarn, found: "max_connections 200", fix: "SET GLOBAL max_connections = 5",
		},
		"indexes, triggers": {
			given: made + "; CREATE TABLE $s.other (id BIGINT PRIMARY KEY) ENGINE = InnoDB; ALTER TABLE $s.t ADD PRIMARY KEY (document_id), ADD KEY slow (payload(9)), " +
				"ADD CONSTRAINT known FOREIGN KEY (document_id) REFERENCES $s.other (id); CREATE TRIGGER $s.each_row BEFORE INSERT ON $s.t FOR EACH ROW SET @n = 1; " +
				"GRANT TRIGGER ON $s.* TO $a",
			check: "indexes, triggers", grade: loader.GradeWarn, found: "$d.t has foreign key known, index slow, trigger each_row: every row pays",
			fix: "--set foreign_key_checks=0, which skips the check; ALTER TABLE $s.`t` DROP INDEX `slow`; DROP TRIGGER $s.`each_row`",
		},
		"statements are ended": {
			maria: true, given: "ALTER USER $a WITH MAX_STATEMENT_TIME 4", check: "timeouts", grade: loader.GradeWarn,
			found: "max_statement_time of this account ends loads after 4s", fix: "--set max_statement_time=0",
		},
		"statements are not ended after all": {
			maria: true, given: "ALTER USER $a WITH MAX_STATEMENT_TIME 4",
			change: func(to *loader.Target, _ *loader.Intent) {
				to.Settings = []loader.Setting{{Name: "max_statement_time", Value: "0"}}
			},
		},
		"INSERTs larger than a packet": {
			change: func(to *loader.Target, i *loader.Intent) {
				to.Method, i.Contract, i.BatchBytes = insert, contractOf(insert, 1000), 512<<20
			},
			check: "max_allowed_packet", grade: loader.GradeFail, found: "a batch is one INSERT of 512 MiB", fix: "SET GLOBAL max_allowed_packet = 536936448",
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *testServer) {
				to, account := ordinary(t, s)
				names := strings.NewReplacer("$s", quote(s.target.Database), "$d", s.target.Database, "$a", account)
				if strings.HasSuffix(t.Name(), "mysql") && c.maria {
					t.Skip("MariaDB's")
				}
				for text := range strings.SplitSeq(c.given, "; ") {
					if text != "" {
						s.exec(t, names.Replace(text))
					}
				}
				i := intentOf(t, loadData)
				if c.change != nil {
					c.change(&to, &i)
				}
				findings := examine(t, to, i)
				if c.check == "" {
					require.Empty(t, complaints(findings))
					return
				}
				only(t, findings, c.check, c.grade, names.Replace(c.found), names.Replace(c.fix))
			})
		})
	}
}

// A privilege that comes with a role is one; a global one that was partly revoked is none.
func TestExamineRoles(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		to, account := ordinary(t, s)
		role := "'r" + s.target.Database + "'"
		s.exec(t, "CREATE ROLE "+role)
		defer s.exec(t, "DROP ROLE "+role)
		s.exec(t, "REVOKE INSERT ON "+quote(s.target.Database)+".* FROM "+account)
		s.exec(t, "GRANT INSERT ON "+quote(s.target.Database)+".* TO "+role)
		s.exec(t, "GRANT "+role+" TO "+account)
		only(t, examine(t, to, intentOf(t, loadData)), "privileges", loader.GradeFail, "lacks INSERT on", "GRANT INSERT ON")
		if strings.HasSuffix(t.Name(), "mariadb") {
			s.exec(t, "SET DEFAULT ROLE "+role+" FOR "+account)
		} else {
			s.exec(t, "SET DEFAULT ROLE "+role+" TO "+account)
		}
		require.Empty(t, complaints(examine(t, to, intentOf(t, loadData))))
	})
}

// Nothing is made or changed by looking.
func TestExamineChangesNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		examine(t, s.table("t"), intentOf(t, loadData))
		require.Zero(t, s.count(t, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", s.target.Database))
	})
}

// An end of the time, or of the server, is an error, and no finding.
func TestExamineEnds(t *testing.T) {
	s := &fakeServer{vars: map[string]string{"version": "9.7.4"}}
	l, err := New().Open(t.Context(), s.start(t, "mysql"), testDeps())
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.(loader.Checker).CheckServer(ctx, intentOf(t, loadData))
	require.ErrorIs(t, err, context.Canceled)
}

// A server that hangs half way says nothing that would stop a push.
func TestExamineOfAServerThatHangs(t *testing.T) {
	for _, silent := range []string{"SHOW GRANTS", "FROM information_schema.tables", "terapush_claims"} {
		t.Run(silent, func(t *testing.T) {
			hang, armed := make(chan struct{}), atomic.Bool{}
			s := &fakeServer{vars: map[string]string{"version": "9.7.4"}, answer: fakeGrants(func(query string) *fakeAnswer {
				if armed.Load() && strings.Contains(query, silent) {
					<-hang
				}
				return nil
			})}
			l, err := New().Open(t.Context(), s.start(t, "mysql"), testDeps())
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			defer close(hang)
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			i := intentOf(t, loadData)
			i.Create = loader.CreateIfMissing
			findings, err := l.(loader.Checker).CheckServer(ctx, i)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			for _, f := range findings {
				require.NotEqual(t, loader.GradeFail, f.Grade, "%+v", f)
			}
		})
	}
}

// Variables of a whole server are broken one at a time on one that is the test's own.
func TestExamineServerVariables(t *testing.T) {
	s := scratch(t)
	i := intentOf(t, loadData)
	wrong := complaints(examine(t, s.table("t"), i)) // its log holds 16 MiB and its pool 64
	require.Len(t, wrong, 2, "%+v", wrong)
	require.Equal(t, "redo log", wrong[0].Check)
	require.Contains(t, wrong[0].Found, "innodb_log_file_size holds 16 MiB")
	require.Contains(t, wrong[0].Fix, "2147483648")
	require.Equal(t, "buffer pool", wrong[1].Check)
	require.Contains(t, wrong[1].Found, "64 MiB")

	to, account := ordinary(t, s)
	i.TotalBytes = 8 << 20
	require.Empty(t, complaints(examine(t, to, i)))
	for _, c := range []struct{ given, undo, check, found, fix string }{
		{"SET GLOBAL local_infile = 0", "SET GLOBAL local_infile = 1", "local_infile", "OFF", "SET GLOBAL local_infile = 1"},
		{"SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "server", "read_only is ON", "SET GLOBAL read_only = OFF"},
		{"SET GLOBAL max_connections = 10", "SET GLOBAL max_connections = 200", "connection limit", "max_connections 10, ", "SET GLOBAL max_connections = 11"},
		{"SET GLOBAL innodb_force_primary_key = 1", "SET GLOBAL innodb_force_primary_key = 0", "primary key", "without a key", "--primary-key"},
	} {
		t.Run(c.check, func(t *testing.T) {
			i, to := i, to
			if c.check == "connection limit" {
				i.Workers = 6
			}
			s.exec(t, c.given)
			defer s.exec(t, c.undo)
			findings := examine(t, to, i)
			if c.check == "connection limit" { // a statement of the test's own may be in between
				require.Equal(t, c.check, complaints(findings)[0].Check)
				require.Contains(t, complaints(findings)[0].Found, c.found)
				return
			}
			only(t, findings, c.check, loader.GradeFail, c.found, c.fix)
		})
	}
	t.Run("read_only, and a privilege that stood above once", func(t *testing.T) {
		s.exec(t, "SET GLOBAL read_only = 1")
		defer s.exec(t, "SET GLOBAL read_only = 0")
		s.exec(t, "GRANT SUPER ON *.* TO "+account)
		defer s.exec(t, "REVOKE SUPER ON *.* FROM "+account)
		only(t, examine(t, to, i), "server", loader.GradeFail, "read_only is ON", "")
	})
	t.Run("flushed more than once", func(t *testing.T) {
		s.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 3")
		defer s.exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
		require.Empty(t, complaints(examine(t, to, i)))
	})
	t.Run("read_only, and a privilege that stands above", func(t *testing.T) {
		s.exec(t, "SET GLOBAL read_only = 1")
		defer s.exec(t, "SET GLOBAL read_only = 0")
		s.exec(t, "GRANT READ ONLY ADMIN ON *.* TO "+account)
		require.Empty(t, complaints(examine(t, to, i)))
	})
	t.Run("a key is made", func(t *testing.T) {
		s.exec(t, "SET GLOBAL innodb_force_primary_key = 1")
		defer s.exec(t, "SET GLOBAL innodb_force_primary_key = 0")
		i := i
		i.PrimaryKey = true
		require.Empty(t, complaints(examine(t, to, i)))
	})
}

// scratch is a small MariaDB of the test's own.
func scratch(t *testing.T) *testServer {
	t.Helper()
	if os.Getenv("TERAPUSH_TEST_MARIADB") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("TERAPUSH_TEST_MARIADB is not set, and CI must test every server")
		}
		t.Skip("TERAPUSH_TEST_MARIADB is not set: no MariaDB is installed")
	}
	dir, err := os.MkdirTemp("", "terapush-examine-") // t.TempDir's is closed to the server's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script := func(args ...string) string {
		out, err := exec.Command("../../../scripts/servers", args...).CombinedOutput()
		require.NoError(t, err, "scripts/servers %s: %s", args, out)
		return string(out)
	}
	home := filepath.Join(dir, "server")
	t.Cleanup(func() { script("scratch-kill", home) })
	return newTestServer(t, regexp.MustCompile(`mariadb://\S+`).FindString(script("scratch", "mariadb", home)))
}

// fakeGrants answers the doctor on a server that is none: everything is allowed, nothing is there.
func fakeGrants(more func(query string) *fakeAnswer) func(string) *fakeAnswer {
	return func(query string) *fakeAnswer {
		if a := more(query); a != nil {
			return a
		}
		switch {
		case query == "SELECT CURRENT_USER()":
			return &fakeAnswer{rows: [][]string{{"u@%"}}}
		case query == "SHOW GRANTS":
			return &fakeAnswer{rows: [][]string{{"GRANT ALL PRIVILEGES ON *.* TO 'u'@'%'"}}}
		case strings.Contains(query, "Threads_connected"):
			return &fakeAnswer{rows: [][]string{{"Threads_connected", "1"}}}
		}
		return nil
	}
}

// What depends on variables alone, on servers of which some cannot be had.
func TestExamineVariables(t *testing.T) {
	mysqls := func(more ...string) map[string]string {
		vars := map[string]string{
			"version": "8.0.36", "local_infile": "ON", "max_connections": "200", "max_allowed_packet": "67108864",
			"innodb_redo_log_capacity": "4294967296", "innodb_buffer_pool_size": "4294967296", "innodb_doublewrite": "ON",
			"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "ON", "binlog_cache_size": "33554432",
			"max_binlog_cache_size": "18446744073709547520", "max_user_connections": "0",
		}
		for n := 0; n < len(more); n += 2 {
			vars[more[n]] = more[n+1]
		}
		return vars
	}
	for name, c := range map[string]struct {
		vars              map[string]string
		set               []loader.Setting
		check, found, fix string
		grade             loader.Grade
	}{
		"nothing": {vars: mysqls()},
		"small redo log": {
			vars: mysqls("innodb_redo_log_capacity", "104857600"), check: "redo log", grade: loader.GradeWarn,
			found: "innodb_redo_log_capacity holds 100 MiB", fix: "SET GLOBAL innodb_redo_log_capacity = 2147483648",
		},
		"small redo log of an older version": {
			vars: mysqls("innodb_redo_log_capacity", "", "innodb_log_file_size", "50331648", "innodb_log_files_in_group", "2"), check: "redo log",
			grade: loader.GradeWarn, found: "innodb_log_file_size holds 96 MiB", fix: "in the server's configuration",
		},
		"small redo log of Aurora's storage, which has none": {vars: mysqls("aurora_version", "3.07.1", "innodb_redo_log_capacity", "104857600")},
		"small buffer pool": {
			vars: mysqls("innodb_buffer_pool_size", "134217728"), check: "buffer pool", grade: loader.GradeWarn, found: "128 MiB", fix: "SET GLOBAL innodb_buffer_pool_size",
		},
		"binary log spills": {
			vars: mysqls("binlog_cache_size", "32768"), check: "binary log", grade: loader.GradeWarn,
			found: "binlog_cache_size is 32 KiB, and a batch of 16 MiB goes through a temporary file", fix: "SET GLOBAL binlog_cache_size = 16777216 (of each session: 64 MiB for 4 workers)",
		},
		"binary log is left out": {vars: mysqls("binlog_cache_size", "32768"), set: []loader.Setting{{Name: "sql_log_bin", Value: "0"}}},
		"no binary log":          {vars: mysqls("binlog_cache_size", "32768", "log_bin", "OFF", "sync_binlog", "0")},
		"log not flushed": {
			vars: mysqls("innodb_flush_log_at_trx_commit", "0"), check: "durability", grade: loader.GradeWarn, found: "a crash of the server loses", fix: "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
		},
		"binary log not flushed": {
			vars: mysqls("sync_binlog", "0"), check: "durability", grade: loader.GradeWarn, found: "sync_binlog is 0", fix: "SET GLOBAL sync_binlog = 1",
		},
		"torn pages": {
			vars: mysqls("innodb_doublewrite", "OFF"), check: "durability", grade: loader.GradeWarn, found: "innodb_doublewrite is OFF", fix: "innodb_doublewrite = ON",
		},
		"replica": {
			vars: mysqls("super_read_only", "ON"), check: "server", grade: loader.GradeFail, found: "super_read_only is ON", fix: "name the primary",
		},
		"group replication": {
			vars:  mysqls("group_replication_group_name", "g", "group_replication_transaction_size_limit", "0"),
			check: "primary key", grade: loader.GradeWarn, found: "group replication", fix: "--primary-key",
		},
		"managed": {
			vars: mysqls("sql_require_primary_key", "ON"), check: "primary key", grade: loader.GradeFail, found: "sql_require_primary_key is ON", fix: "--primary-key",
		},
		"managed, with a key that nobody sees": {vars: mysqls("sql_require_primary_key", "ON", "sql_generate_invisible_primary_key", "ON")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{vars: c.vars, answer: fakeGrants(func(string) *fakeAnswer { return nil })}
			to := s.start(t, "mysql")
			to.Settings = c.set
			findings := examine(t, to, intentOf(t, loadData))
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, c.grade, c.found, c.fix)
		})
	}
}

// TiDB, scripted: what it answers follows its manual.
func TestExamineTiDB(t *testing.T) {
	const table = "information_schema.tables t WHERE table_schema = 'db' AND table_name = 'documents'"
	for name, c := range map[string]struct {
		version, quota, sharding, grants string
		check, found, fix                string
		grade                            loader.Grade
	}{
		"nothing":              {sharding: "SHARD_BITS=4"},
		"the quota":            {quota: "1048576", check: "transaction size", grade: loader.GradeWarn, found: "tidb_mem_quota_query is 1.0 MiB", fix: "--set tidb_mem_quota_query=100663296"},
		"rows in order":        {sharding: "NOT_SHARDED", check: "hot region", grade: loader.GradeWarn, found: "all sessions write to one region", fix: "ALTER TABLE `db`.`documents` SHARD_ROW_ID_BITS = 4"},
		"keys in order":        {sharding: "NOT_SHARDED(PK_IS_HANDLE)", check: "hot region", grade: loader.GradeWarn, found: "PK_IS_HANDLE", fix: "NONCLUSTERED"},
		"privileges of a role": {grants: "GRANT 'r'@'%' TO 'u'@'%'", check: "privileges", grade: loader.GradeUnknown, found: "SELECT, INSERT, CREATE on db.documents", fix: "GRANT SELECT, INSERT, CREATE"},
		"commits by itself":    {version: "v7.5.0", check: "delivery", grade: loader.GradeWarn, found: "commits LOAD DATA by itself", fix: "--method insert"},
	} {
		t.Run(name, func(t *testing.T) {
			version := "v8.5.1"
			if c.version != "" {
				version = c.version
			}
			s := &fakeServer{vars: map[string]string{"version": "8.0.11-TiDB-" + version, "max_connections": "0", "tidb_mem_quota_query": "1073741824"}}
			if c.quota != "" {
				s.vars["tidb_mem_quota_query"] = c.quota
			}
			s.answer = fakeGrants(func(query string) *fakeAnswer {
				switch {
				case query == "SHOW GRANTS" && c.grants != "":
					return &fakeAnswer{rows: [][]string{{c.grants}}}
				case strings.Contains(query, "tidb_row_id_sharding_info"):
					return &fakeAnswer{rows: [][]string{{c.sharding}}}
				case strings.Contains(query, "table_type") && strings.Contains(query, table) && c.sharding != "":
					return &fakeAnswer{rows: [][]string{{"BASE TABLE", "", "InnoDB", "YES", "2026-01-01"}}}
				case strings.Contains(query, "column_type"):
					return documentsColumns()
				}
				return nil
			})
			i := intentOf(t, loadData)
			if version == "v7.5.0" {
				i.Contract.Dedup = loader.DedupNone
			}
			findings := examine(t, s.start(t, "tidb"), i)
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, c.grade, c.found, c.fix)
		})
	}
}

// SingleStore, scripted.
func TestExamineSingleStore(t *testing.T) {
	s, p := newPipelineServer(t)
	for _, usage := range []bool{false, true} {
		s.fakeServer.mu.Lock()
		s.fakeServer.answer = fakeGrants(func(query string) *fakeAnswer {
			if query == "SHOW GRANTS" && usage {
				return &fakeAnswer{rows: [][]string{{"GRANT USAGE ON *.* TO 'u'@'%'"}}}
			}
			return nil
		})
		s.fakeServer.mu.Unlock()
		findings, err := p.CheckServer(t.Context(), intentOf(t, pipeline))
		require.NoError(t, err)
		findings = slices.DeleteFunc(findings, func(f loader.Finding) bool { return f.Check == "store from the server" }) // never known
		if !usage {
			require.Empty(t, complaints(findings))
			continue
		}
		only(t, findings, "privileges", loader.GradeUnknown, "SELECT, INSERT, CREATE on db.documents", "TO 'u'@'%'")
	}
}
