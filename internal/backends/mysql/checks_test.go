package mysql

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
)

var warn, fail = backendtest.Warn, backendtest.Fail

func intentOf(t testing.TB, method string) loader.Intent {
	return backendtest.Intent(preparation(documents(t, 20), contractOf(method, 1000)))
}

// complaints are the findings that are not ok. The servers for tests give durability up.
func complaints(t testing.TB, to loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	return backendtest.Complaints(backendtest.Doctor(t, New(), backendtest.Deps(), to, i), "innodb_flush_log_at_trx_commit is 2")
}

// atLeastOnce needs no claims.
func atLeastOnce(_ *loader.Target, i *loader.Intent) { i.Contract.Dedup = loader.DedupNone }

// One thing is broken at a time, for one account or in one database, and exactly that is named.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	const (
		made    = "CREATE TABLE $s.t (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL) ENGINE = InnoDB COMMENT = 'made by terapush'; "
		claimed = made + "CREATE TABLE $s.terapush_claims (run VARCHAR(64), batch BIGINT, first_key BIGINT, row_count BIGINT, " +
			"connection BIGINT DEFAULT 0, PRIMARY KEY (run, batch)) ENGINE = InnoDB; " +
			"CREATE TABLE $s.terapush_runs (name VARCHAR(64), run VARCHAR(64), part VARCHAR(64), state VARCHAR(64), epoch VARCHAR(64), " +
			"target VARCHAR(255), owner VARCHAR(255), appends BIGINT, fingerprint BIGINT, first_key BIGINT, last_key BIGINT, " +
			"changed BIGINT, PRIMARY KEY (run, part)) ENGINE = InnoDB; "
	)
	for name, c := range map[string]struct {
		given  string
		create loader.CreateMode
		change func(*loader.Target, *loader.Intent)
		want   loader.Finding // none: all is well
	}{
		"nothing":               {},
		"nothing, with a table": {given: claimed},
		"may not create": {
			given: "REVOKE CREATE ON $s.* FROM $a",
			want: fail("privileges", "CREATE on $d.t and CREATE on $d.terapush_claims and CREATE on $d.terapush_runs",
				"GRANT CREATE ON $s.`t` TO $a; GRANT CREATE ON $s.`terapush_claims` TO $a; GRANT CREATE ON $s.`terapush_runs` TO $a"),
		},
		"need not create": {given: claimed + "REVOKE CREATE ON $s.* FROM $a"},
		"may not insert": {
			given: claimed + "REVOKE INSERT ON $s.* FROM $a; GRANT INSERT ON $s.terapush_claims TO $a; GRANT INSERT ON $s.terapush_runs TO $a",
			want:  fail("privileges", "this account lacks INSERT on $d.t", "GRANT INSERT ON $s.`t` TO $a"),
		},
		"may not forget": {
			given: claimed + "REVOKE DELETE ON $s.* FROM $a; GRANT DELETE ON $s.terapush_runs TO $a",
			want:  warn("privileges", "DELETE on $d.terapush_claims", "GRANT DELETE ON $s.`terapush_claims` TO $a"),
		},
		"claims nothing": {given: claimed + "REVOKE DELETE ON $s.* FROM $a", change: atLeastOnce},
		"may not lock": {
			given: claimed + "REVOKE LOCK TABLES ON $s.* FROM $a",
			want:  fail("privileges", "this account lacks LOCK TABLES on $d.*", "GRANT LOCK TABLES ON $s.* TO $a"),
		},
		"may not truncate": {
			given: made, create: loader.CreateTruncate,
			want: fail("privileges", "lacks DROP on $d.t", "GRANT DROP ON $s.`t` TO $a"),
		},
		"table is missing": {create: loader.CreateNever, want: fail("table", "table $s.`t` does not exist", "--create if-missing")},
		"a table without transactions": {
			given: "CREATE TABLE $s.t (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL) ENGINE = MyISAM", change: atLeastOnce,
			want: warn("delivery", "engine MyISAM of table $d.t keeps rows after a rollback", "ALTER TABLE $s.`t` ENGINE = InnoDB"),
		},
		"claims without a key": {
			given: claimed + "ALTER TABLE $s.terapush_claims DROP PRIMARY KEY",
			want:  fail("claim table", "no primary or unique key is (run, batch)", "ADD UNIQUE KEY (run, batch)"),
		},
		"account's connections": {
			given: "ALTER USER $a WITH MAX_USER_CONNECTIONS 5",
			want:  warn("connection limit", "5 free (this account has max_user_connections 5)", "ALTER USER $a WITH MAX_USER_CONNECTIONS "),
		},
		"server's connections": {
			change: func(_ *loader.Target, i *loader.Intent) { i.Workers = 500 },
			want:   warn("connection limit", "max_connections 200", "SET GLOBAL max_connections = 5"),
		},
		"indexes, triggers": {
			given: made + "CREATE TABLE $s.other (id BIGINT PRIMARY KEY) ENGINE = InnoDB; ALTER TABLE $s.t ADD PRIMARY KEY (document_id), ADD KEY slow (payload(9)), " +
				"ADD CONSTRAINT known FOREIGN KEY (document_id) REFERENCES $s.other (id); CREATE TRIGGER $s.each_row AFTER INSERT ON $s.t FOR EACH ROW SET @n = 1; " +
				"GRANT TRIGGER ON $s.* TO $a",
			want: warn("indexes, triggers", "$d.t has foreign key known, index slow, trigger each_row: every row pays",
				"--set foreign_key_checks=0, which skips the check; ALTER TABLE $s.`t` DROP INDEX `slow`; DROP TRIGGER $s.`each_row`"),
		},
		"INSERTs larger than a packet": {
			change: func(to *loader.Target, i *loader.Intent) {
				to.Method, i.Contract, i.BatchBytes = methodInsert, contractOf(methodInsert, 1000), 512<<20
			},
			want: fail("max_allowed_packet", "a batch is one INSERT of 512 MiB", "SET GLOBAL max_allowed_packet = 536936448"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *testServer) {
				to, account := s.account(t, "x", "SELECT, INSERT, UPDATE, DELETE, CREATE, LOCK TABLES")
				names := strings.NewReplacer("$s", quote(s.target.Database), "$d", s.target.Database, "$a", account)
				for text := range strings.SplitSeq(c.given, "; ") {
					if text != "" {
						s.exec(t, names.Replace(text))
					}
				}
				i, want := intentOf(t, methodLoadData), c.want
				if c.create != "" {
					i.Create = c.create
				}
				if c.change != nil {
					c.change(&to, &i)
				}
				want.Found, want.Fix = names.Replace(want.Found), names.Replace(want.Fix)
				backendtest.Only(t, want, complaints(t, to, i))
			})
		})
	}
}

// A privilege that comes with an active role is one. Nothing is made by the checks.
func TestDoctorKnowsRoles(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		to, account := s.account(t, "x", "SELECT, UPDATE, DELETE, CREATE, LOCK TABLES")
		role := "'r" + s.target.Database + "'"
		s.exec(t, "CREATE ROLE "+role)
		defer s.exec(t, "DROP ROLE "+role)
		s.exec(t, "GRANT INSERT ON "+quote(s.target.Database)+".* TO "+role)
		s.exec(t, "GRANT "+role+" TO "+account)
		backendtest.Only(t, fail("privileges", "lacks INSERT on", "GRANT INSERT ON"), complaints(t, to, intentOf(t, methodLoadData)))
		s.exec(t, "SET DEFAULT ROLE "+role+map[bool]string{true: " FOR ", false: " TO "}[strings.HasSuffix(t.Name(), "mariadb")]+account)
		backendtest.Only(t, loader.Finding{}, complaints(t, to, intentOf(t, methodLoadData)))
		require.Zero(t, s.count(t, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?", s.target.Database))
	})
}

// A server that hangs half way says nothing that would stop a push.
func TestDoctorOfAServerThatHangs(t *testing.T) {
	for _, silent := range []string{"SHOW GRANTS", "FROM information_schema.tables", "terapush_claims"} {
		t.Run(silent, func(t *testing.T) {
			hang, armed := make(chan struct{}), atomic.Bool{}
			s := &fakeServer{vars: map[string]string{"version": "9.7.4"}, answer: fakeGrants(allGrants, func(query string) *fakeAnswer {
				if armed.Load() && strings.Contains(query, silent) {
					<-hang
				}
				return nil
			})}
			l := backendtest.Open(t, New(), s.start(t, "mysql"), backendtest.Deps())
			defer close(hang)
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			findings, err := l.(loader.Checker).CheckServer(ctx, intentOf(t, methodLoadData))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			for _, f := range findings {
				require.NotEqual(t, loader.GradeFail, f.Grade, "%+v", f)
			}
		})
	}
}

const allGrants = "GRANT ALL PRIVILEGES ON *.* TO 'u'@'%'"

// fakeGrants answers the checks with SHOW GRANTS; nothing is there, unless more has an answer.
func fakeGrants(grants string, more func(query string) *fakeAnswer) func(string) *fakeAnswer {
	return func(query string) *fakeAnswer {
		if more != nil {
			if a := more(query); a != nil {
				return a
			}
		}
		switch {
		case query == "SELECT CURRENT_USER()":
			return rowsOf([]string{"u@%"})
		case query == "SHOW GRANTS":
			return rowsOf([]string{grants})
		case strings.Contains(query, "Threads_connected"):
			return rowsOf([]string{"Threads_connected", "1"})
		}
		return nil
	}
}

// What depends on variables of a whole server, on servers of which some cannot be had.
func TestDoctorReadsVariables(t *testing.T) {
	const (
		tables  = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, LOCK TABLES ON *.* TO 'u'@'%'"
		mariaDB = "version=10.11.8-MariaDB"
	)
	for name, c := range map[string]struct {
		vars, set string // name=value, separated by blanks
		grants    string // allGrants if empty
		change    func(*loader.Intent)
		want      loader.Finding // none: all is well
	}{
		"nothing": {},
		"binary log too small": {
			vars: "max_binlog_cache_size=8388608",
			want: fail("transaction size", "max_binlog_cache_size is 8.0 MiB, and a batch of 16 MiB is one transaction",
				"--batch-bytes 4194304, or SET GLOBAL max_binlog_cache_size = 33554432"),
		},
		"a small one that is not in use": {vars: "max_binlog_cache_size=8388608", set: "sql_log_bin=0"},
		"group replication's transactions": {
			vars:   "group_replication_group_name=g group_replication_transaction_size_limit=8388608",
			change: func(i *loader.Intent) { i.PrimaryKey = true },
			want:   fail("transaction size", "group_replication_transaction_size_limit is 8.0 MiB", "--batch-bytes 4194304"),
		},
		"no binary log": {vars: "log_bin=OFF sync_binlog=0"},
		"log not flushed": {
			vars: "innodb_flush_log_at_trx_commit=0",
			want: warn("durability", "a crash of the server loses", "SET GLOBAL innodb_flush_log_at_trx_commit = 1"),
		},
		"log flushed more than once": {vars: mariaDB + " innodb_flush_log_at_trx_commit=3"},
		"binary log not flushed":     {vars: "sync_binlog=0", want: warn("durability", "sync_binlog is 0", "SET GLOBAL sync_binlog = 1")},
		"torn pages":                 {vars: "innodb_doublewrite=OFF", want: warn("durability", "innodb_doublewrite is OFF", "innodb_doublewrite = ON")},
		"replica":                    {vars: "super_read_only=ON", want: fail("server", "super_read_only is ON", "name the primary")},
		"read-only":                  {vars: "read_only=ON", grants: tables, want: fail("server", "read_only is ON", "SET GLOBAL read_only = OFF")},
		"read-only transactions":     {vars: "tx_read_only=ON", want: fail("server", "tx_read_only is ON", "--set tx_read_only=0")},
		"made writable by the user":  {vars: "tx_read_only=ON", set: "tx_read_only=0"},
		"read-only, and a privilege that stands above": {
			vars: mariaDB + " read_only=ON", grants: strings.Replace(tables, "CREATE", "CREATE, READ ONLY ADMIN", 1),
		},
		"read-only, and a privilege that stood above once": {
			vars: mariaDB + " read_only=ON", grants: strings.Replace(tables, "CREATE", "CREATE, SUPER", 1),
			want: fail("server", "read_only is ON", ""),
		},
		"local_infile":            {vars: "local_infile=OFF", want: fail("local_infile", "OFF", "SET GLOBAL local_infile = 1")},
		"just enough connections": {vars: "max_connections=8"},
		"one connection too few":  {vars: "max_connections=7", want: warn("connection limit", "max_connections 7, 0 in use", "SET GLOBAL max_connections = 8")},
		"group replication": {
			vars: "group_replication_group_name=g", want: warn("primary key", "group replication", "--primary-key"),
		},
		"managed":                {vars: "sql_require_primary_key=ON", want: fail("primary key", "sql_require_primary_key is ON", "--primary-key")},
		"Percona's cluster":      {vars: "pxc_strict_mode=ENFORCING", want: fail("primary key", "pxc_strict_mode is ENFORCING", "--primary-key")},
		"a permissive cluster":   {vars: "pxc_strict_mode=PERMISSIVE"},
		"managed, with a key":    {vars: "sql_require_primary_key=ON", change: func(i *loader.Intent) { i.PrimaryKey = true }},
		"managed, a hidden key":  {vars: "sql_require_primary_key=ON sql_generate_invisible_primary_key=ON"},
		"MariaDB, without a key": {vars: mariaDB + " innodb_force_primary_key=ON", want: fail("primary key", "without a key", "--primary-key")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{answer: fakeGrants(allGrants, nil), vars: map[string]string{
				"version": "8.0.36", "local_infile": "ON", "max_connections": "200", "max_allowed_packet": "67108864",
				"innodb_doublewrite": "ON", "innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "ON",
				"max_binlog_cache_size": "18446744073709547520", "max_user_connections": "0",
			}}
			for field := range strings.FieldsSeq(c.vars) {
				variable, value, _ := strings.Cut(field, "=")
				s.vars[variable] = value
			}
			if c.grants != "" {
				s.answer = fakeGrants(c.grants, nil)
			}
			to := s.start(t, "mysql")
			if variable, value, set := strings.Cut(c.set, "="); set {
				to.Settings = []loader.Setting{{Name: variable, Value: value}}
			}
			i := intentOf(t, methodLoadData)
			if c.change != nil {
				c.change(&i)
			}
			backendtest.Only(t, c.want, complaints(t, to, i))
		})
	}
}

// TiDB, scripted: what it answers follows its manual.
func TestDoctorOfTiDB(t *testing.T) {
	const table = "information_schema.tables t WHERE table_schema = 'db' AND table_name = 'documents'"
	for name, c := range map[string]struct {
		version, quota, sharding, grants string // defaults if empty; no sharding: no table
		want                             loader.Finding
	}{
		"nothing": {sharding: "SHARD_BITS=4"},
		"the quota": {
			quota: "1048576",
			want:  warn("transaction size", "tidb_mem_quota_query is 1.0 MiB", "--set tidb_mem_quota_query=100663296"),
		},
		"rows in order": {
			sharding: "NOT_SHARDED",
			want:     warn("hot region", "all sessions write to one region", "ALTER TABLE `db`.`documents` SHARD_ROW_ID_BITS = 4"),
		},
		"keys in order": {sharding: "NOT_SHARDED(PK_IS_HANDLE)", want: warn("hot region", "PK_IS_HANDLE", "NONCLUSTERED")},
		"privileges of a role": {
			grants: "GRANT 'r'@'%' TO 'u'@'%'",
			want:   backendtest.Unknown("privileges", "SELECT, INSERT, CREATE on db.documents", "GRANT SELECT, INSERT, CREATE"),
		},
		"commits by itself": {version: "v7.5.0", want: warn("delivery", "commits LOAD DATA by itself", "--method insert")},
	} {
		t.Run(name, func(t *testing.T) {
			i := intentOf(t, methodLoadData)
			s := &fakeServer{vars: map[string]string{"version": "8.0.11-TiDB-v8.5.1", "max_connections": "0", "tidb_mem_quota_query": "1073741824"}}
			if c.version != "" {
				s.vars["version"], i.Contract.Dedup = "8.0.11-TiDB-"+c.version, loader.DedupNone
			}
			if c.quota != "" {
				s.vars["tidb_mem_quota_query"] = c.quota
			}
			if c.grants == "" {
				c.grants = allGrants
			}
			s.answer = fakeGrants(c.grants, func(query string) *fakeAnswer {
				switch {
				case strings.Contains(query, "tidb_row_id_sharding_info"):
					return rowsOf([]string{c.sharding})
				case strings.Contains(query, "table_type") && strings.Contains(query, table) && c.sharding != "":
					return rowsOf([]string{"BASE TABLE", "", "InnoDB", "YES", "2026-01-01"})
				case strings.Contains(query, "column_type"):
					return documentsColumns()
				}
				return nil
			})
			backendtest.Only(t, c.want, complaints(t, s.start(t, "tidb"), i))
		})
	}
}

// SingleStore, scripted: a group may give what SHOW GRANTS does not name.
func TestDoctorOfSingleStore(t *testing.T) {
	s, p := newPipelineServer(t)
	for grants, want := range map[string]loader.Finding{
		allGrants:                       {},
		"GRANT USAGE ON *.* TO 'u'@'%'": backendtest.Unknown("privileges", "SELECT, INSERT, CREATE on db.documents", "TO 'u'@'%'"),
	} {
		s.mu.Lock()
		s.fakeServer.answer = fakeGrants(grants, nil)
		s.mu.Unlock()
		findings, err := p.CheckServer(t.Context(), intentOf(t, methodPipeline))
		require.NoError(t, err)
		findings = slices.DeleteFunc(findings, func(f loader.Finding) bool { return f.Check == "store from the server" }) // never known
		backendtest.Only(t, want, backendtest.Complaints(findings, "no such beginning"))
	}
}
