package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func TestMyISAM(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d := documents(t, 20)
		s.exec(t, fmt.Sprintf("CREATE TABLE %s (document_id BIGINT, payload LONGBLOB) ENGINE=MyISAM",
			tableName{s.target.Database, "old"}.quoted()))
		db := s.open(t, s.table("old"), preparation(d, contractOf(methodLoadData, 1)))
		assert.Equal(t, loader.DedupNone, db.Caps().Dedup)
		assert.False(t, db.Caps().Atomic)
		assert.Equal(t, "engine MyISAM of table "+db.name.String()+" keeps rows after a rollback", db.Caps().Reason)

		_, err := db.Probe(t.Context(), contractOf(methodLoadData, 1), batchOf(t, d, batch.TSV, id(0), 7, 1))
		assert.Error(t, err, "MySQL warns of the engine besides")
		assert.EqualValues(t, 1, s.rowsIn(t, "old"), "the row stays, since it may be somebody's")
	})
}

// tables is the table t for the tests that all servers with transactions share.
func (s *testServer) tables(t *testing.T) backendtest.Tables {
	return backendtest.Tables{
		Driver: New(), Deps: s.deps, Target: s.table("t"), Preparation: preparation(documents(t, 20), contractOf(s.target.Method, 2)),
		Name:  s.table1(),
		Exec:  func(statement string) { s.exec(t, statement) },
		Count: func() int64 { return s.rowsIn(t, "t") },
	}
}

func TestTables(t *testing.T) {
	everyServer(t, func(t *testing.T, s *testServer) {
		t.Run("life", func(t *testing.T) { s.tables(t).Life(t) })
		t.Run("arithmetic", func(t *testing.T) { s.tables(t).Arithmetic(t) })
		s.exec(t, "DROP TABLE "+s.table1())
		t.Run("next free", func(t *testing.T) {
			s.tables(t).NextFree(t, map[string]string{"": "9223372036854775807", "MODIFY k BIGINT UNSIGNED": "18446744073709551615"})
		})
		t.Run("microseconds", func(t *testing.T) {
			with := s.tables(t)
			with.Preparation.PrimaryKey = true
			with.Microseconds(t)
		})
		s.exec(t, "DROP TABLE "+s.table1())
		t.Run("dates", func(t *testing.T) {
			with := s.tables(t)
			with.Target.Settings = []loader.Setting{{Name: "time_zone", Value: "-11:30"}}
			if s.flavour == oceanBase { // the rows are written in load-data's format
				with.Target.Method, with.Preparation.Contract = methodLoadData, contractOf(methodLoadData, 2)
				with.Preparation.Contract.Dedup = loader.DedupNone
			}
			with.Dates(t, "%s", "MODIFY t DATETIME(3) NOT NULL", "MODIFY d DATETIME NOT NULL",
				"MODIFY t TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)")
		})
		for _, method := range []string{methodLoadData, methodInsert} {
			t.Run("types by "+method, func(t *testing.T) {
				with := s.tables(t)
				with.Target.Method, with.Preparation.Contract = method, contractOf(method, 2)
				with.Preparation.Contract.Dedup = loader.DedupNone
				others := "MODIFY small INT NULL, MODIFY whole BIGINT NULL, MODIFY mood VARCHAR(20) CHARACTER SET utf8mb4 NULL," +
					" MODIFY code VARCHAR(6) CHARACTER SET utf8mb4 NULL, MODIFY f4 DOUBLE NULL"
				if s.flavour != oceanBase { // error 1235
					others += ", MODIFY doc LONGTEXT CHARACTER SET utf8mb4 NULL"
				}
				binary := "MODIFY u BINARY(16) NULL"
				if method == methodInsert {
					binary += " -- method insert sends the text of a UUID"
				}
				var lacks []rows.Type
				if s.flavour != tiDB && (s.flavour != mySQL || method == methodInsert) {
					lacks = append(lacks, rows.Float32s)
				}
				with.Types(t, lacks, others, binary,
					"MODIFY yes TINYINT(1) NOT NULL -- column yes is NOT NULL, and some of the dataset's values are NULL")
			})
		}
	})
}

func TestClaimTable(t *testing.T) {
	const columns = "run VARCHAR(64) NOT NULL, batch BIGINT NOT NULL, first_key BIGINT NOT NULL, row_count BIGINT NOT NULL," +
		" connection BIGINT NOT NULL DEFAULT 0"
	const noKey, noRollback = "no primary or unique key is (run, batch)", `engine "MyISAM" keeps rows after a rollback`
	eachServer(t, func(t *testing.T, s *testServer) {
		claims := tableName{s.target.Database, "terapush_claims"}.quoted()
		for _, c := range []struct{ keys, engine, wrong, repair string }{
			{"", "InnoDB", noKey, "ADD UNIQUE KEY (run, batch)"},
			{", KEY (run, batch)", "InnoDB", noKey, "ADD UNIQUE KEY (run, batch)"},
			{", UNIQUE KEY (run(8), batch)", "InnoDB", noKey, "ADD UNIQUE KEY (run, batch)"},
			{", PRIMARY KEY (run, batch, first_key)", "InnoDB", noKey, "ADD UNIQUE KEY (run, batch)"},
			{", PRIMARY KEY (run, batch)", "MyISAM", noRollback, "ENGINE = InnoDB"},
			{", UNIQUE KEY (run, batch)", "InnoDB", "", ""},
		} {
			s.exec(t, "CREATE TABLE "+claims+" ("+columns+c.keys+") ENGINE = "+c.engine)
			if c.wrong != "" {
				_, _, err := s.tables(t).Prepare(t, nil)
				assert.Equal(t, "check the claim table: claims in "+claims+" cannot be relied on: "+c.wrong+
					" (ALTER TABLE "+claims+" "+c.repair+"; or drop it if no unfinished run needs its claims, and the next run makes it again)", loader.Explain(err))
				s.exec(t, "ALTER TABLE "+claims+" "+c.repair)
			}
			_, _, err := s.tables(t).Prepare(t, nil)
			assert.NoError(t, err, c)
			s.exec(t, "DROP TABLE "+claims)
		}
	})
}

func identityOf(t *testing.T, db *opened) string {
	c, err := db.connect(t.Context())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	found, err := db.Catalog.Locate(t.Context(), c, nil)
	require.NoError(t, err)
	return found.Identity
}

// To LIKE an underscore is any letter, and to the view's collation T is t. A partition is a table of its own.
func TestIdentityIsOfThisTable(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d := documents(t, 20)
		create := func(name, partitions string) {
			s.exec(t, "CREATE TABLE "+tableName{s.target.Database, name}.quoted()+
				" (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL) ENGINE = InnoDB"+partitions)
		}
		const halves = " PARTITION BY HASH (document_id) PARTITIONS 2"
		create("a_b", halves)
		before := identityOf(t, s.open(t, s.table("a_b"), preparation(d, contractOf(methodLoadData, 2))))
		assert.Regexp(t, `^table id \d+,\d+$`, before)
		for _, other := range []string{"aXb", "A_B", "A_b", "a_b_", "a_bc"} {
			create(other, halves)
		}
		create("plain", "")
		create("Plain", "")
		assert.Equal(t, before, identityOf(t, s.open(t, s.table("a_b"), preparation(d, contractOf(methodLoadData, 2)))))
		assert.Regexp(t, `^table id \d+$`, identityOf(t, s.open(t, s.table("plain"), preparation(d, contractOf(methodLoadData, 2)))))
	})
}

// A user with few privileges, and a password of every printable character, over every kind of connection.
func TestUser(t *testing.T) {
	var printable strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		printable.WriteByte(c)
	}
	password := printable.String()
	transactional(t, func(t *testing.T, s *testServer) {
		target, account := s.account(t, password, "SELECT, INSERT")
		d, contract := documents(t, 20), contractOf(methodLoadData, 2)
		s.exec(t, newStatements(tableName{s.target.Database, "t"}, mySQL, d.Schema()).createTable())

		for _, mode := range []loader.TLSMode{loader.TLSOff, loader.TLSPrefer} {
			target.TLS = mode
			l, err := New().Open(t.Context(), target, s.deps)
			require.NoError(t, err, mode)
			_, err = l.Prepare(t.Context(), preparation(d, contract))
			require.NoError(t, l.Close())
			assert.ErrorContains(t, err, "create the claim table `"+s.target.Database+"`.`terapush_claims`: ")
			assert.Contains(t, loader.Explain(err), "(GRANT CREATE, SELECT, INSERT, DELETE ON `"+s.target.Database+"`.`terapush_claims` TO "+account+","+
				" or do without exactly once: --delivery at-least-once)")
			assert.Equal(t, loader.ClassPermission, New().Classify(err).Class)
		}

		// Somebody else makes the claim table: then SELECT, INSERT and DELETE on it are enough, without PROCESS.
		made := newStatements(tableName{s.target.Database, "t"}, mySQL, d.Schema())
		s.exec(t, made.createClaims())
		s.exec(t, made.createRuns())
		s.exec(t, "GRANT DELETE ON "+made.Claims+" TO "+account)
		s.exec(t, "GRANT UPDATE, DELETE ON "+made.Runs()+" TO "+account)
		s.exec(t, "GRANT LOCK TABLES ON "+quote(s.target.Database)+".* TO "+account)
		db := s.open(t, target, preparation(d, contract))
		_, err := db.testSession(t, contract).Load(t.Context(), batchOf(t, d, batch.TSV, id(0), 0, 2))
		require.NoError(t, err)
		for number, want := range map[int64]loader.Applied{0: loader.Yes, 1: loader.No} {
			backendtest.Resolves(t, db, loader.Ref{ID: id(number), First: number * 2, Rows: 2}, want)
		}
		assert.Regexp(t, map[bool]string{false: `^created `, true: `^table id `}[s.flavour == tiDB], identityOf(t, db))

		wrong := target
		wrong.Password += "!"
		_, err = New().Open(t.Context(), wrong, s.deps)
		require.ErrorContains(t, err, "Access denied for user")
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), password[10:])
	})
}

func TestRefusals(t *testing.T) {
	everyServer(t, func(t *testing.T, s *testServer) {
		for text, c := range map[string]struct {
			change func(*loader.Target)
			class  loader.Class
		}{
			"Unknown database 'no such' (create the database, or correct its name in the URL)": {
				func(t *loader.Target) { t.Database = "no such" }, loader.ClassMissing,
			},
			"TLS": {func(t *loader.Target) { t.TLS = loader.TLSVerify }, loader.ClassPermission},
			"(the server has no such session variable; correct --set)": {
				func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "no_such_thing", Value: "1"}} }, loader.ClassMissing,
			},
		} {
			target := s.table("t")
			c.change(&target)
			_, err := New().Open(t.Context(), target, s.deps)
			if assert.Error(t, err) && text != "TLS" {
				assert.Contains(t, loader.Explain(err), text)
			}
			assert.Equal(t, c.class, New().Classify(err).Class, err)
		}
	})
}

func TestSet(t *testing.T) {
	transactional(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 20), contractOf(methodLoadData, 2)
		target := s.table("t")
		target.Settings = []loader.Setting{{Name: "unique_checks", Value: "0"}, {Name: "innodb_lock_wait_timeout", Value: "7"}}
		db := s.open(t, target, preparation(d, contract))
		session := db.testSession(t, contract)
		var unique, wait, auto int
		require.NoError(t, session.conn.QueryRowContext(t.Context(),
			"SELECT @@unique_checks, @@innodb_lock_wait_timeout, @@autocommit").Scan(&unique, &wait, &auto))
		assert.Equal(t, []int{0, 7, 0}, []int{unique, wait, auto})
		assert.Equal(t, "0", db.Server().Settings["unique_checks"])
		assert.NotEmpty(t, db.Server().Settings["innodb_flush_log_at_trx_commit"])
	})
}

// Settings that people give a server, and that our statements could break on, or mean something else under.
func TestUnderSettingsOfTheServer(t *testing.T) {
	backendtest.Server(t, "TERAPUSH_TEST_MARIADB") // a scratch server is of its programs
	s := newTestServer(t, backendtest.Scratch(t, "mariadb"))
	for _, setting := range []string{
		"max_join_size = 10", "max_statement_time = 0.001", "sql_select_limit = 1", "sql_safe_updates = 1",
		"group_concat_max_len = 4", "div_precision_increment = 0", "tx_isolation = 'SERIALIZABLE'", "autocommit = 0",
		"completion_type = CHAIN", "default_storage_engine = MyISAM", "old_mode = ''", "sql_auto_is_null = 1",
		"sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION'",
	} {
		s.exec(t, "SET GLOBAL "+setting)
	}
	account, _ := s.account(t, `it's \ "x"`, "ALL") // an administrator is spared some of them
	with := s.tables(t)
	with.Target = account
	t.Run("arithmetic", func(t *testing.T) { with.Arithmetic(t) })
	s.exec(t, "DROP TABLE "+s.table1())
	t.Run("claims", func(t *testing.T) {
		contract := contractOf(methodLoadData, 2)
		l := s.open(t, account, preparation(documents(t, 20), contract))
		session, b := l.testSession(t, contract), batchOf(t, documents(t, 20), batch.TSV, id(0), 0, 2)
		for _, want := range []loader.Ack{{Rows: 2}, {Rows: 2, AlreadyApplied: true}} {
			ack, err := session.Load(t.Context(), b)
			require.NoError(t, err)
			assert.Equal(t, want, ack)
		}
		require.NoError(t, session.Close()) // a serializable transaction has locked what it has read
		backendtest.Resolves(t, l, loader.RefOf(b), loader.Yes)
		backendtest.Resolves(t, l, loader.Ref{ID: id(1), First: 2, Rows: 2}, loader.No)
		assert.EqualValues(t, 2, s.rowsIn(t, "t"))
	})
}

// What --set says holds for every connection: a limit on the time of statements is one on the proof and on Resolve.
func TestSettingsReachEveryConnection(t *testing.T) {
	const set = "SET SESSION max_statement_time = 7"
	s := &fakeServer{vars: map[string]string{"version": "10.11.8-MariaDB"}}
	target := s.start(t, "mariadb")
	target.Settings = []loader.Setting{{Name: "max_statement_time", Value: "7"}}
	var connections atomic.Int64
	d := backendtest.Deps()
	dial := d.Dial
	d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return dial(ctx, network, address)
	}
	contract := contractOf(methodLoadData, 2)
	db := prepared(t, target, d, silent(t, contract))
	backendtest.Session(t, db, contract)
	backendtest.Resolves(t, db, loader.Ref{ID: id(1), Rows: 2}, loader.No)
	_ = db.Count(t.Context(), loader.Grouping{Size: 1}, nil)
	assert.Equal(t, int64(4), connections.Load(), "that which asks for the variables, control, the session, Resolve's")
	assert.Equal(t, int(connections.Load()), s.count(set))
	first := s.statements()
	for i, statement := range first {
		if strings.HasPrefix(statement, "SET SESSION sql_mode") {
			assert.Contains(t, first[i-1], ", max_statement_time = 0, sql_big_selects = 1, sql_safe_updates = 0")
			assert.Equal(t, set, first[i+1], "the user's settings win")
		}
	}
}

// A server that knows another set of variables and views keeps no push off; what the user has set, and what a session's
// promises rest on, is no wish.
func TestWishesThatAreRefused(t *testing.T) {
	unknown := func(refused ...string) *fakeServer {
		return &fakeServer{vars: map[string]string{"version": "8.0.99-other"}, answer: func(query string) *fakeAnswer {
			switch {
			case slices.ContainsFunc(refused, func(part string) bool { return strings.Contains(query, part) }):
				return &fakeAnswer{err: &mysql.MySQLError{Number: 1193, Message: "Unknown system variable"}}
			case strings.Contains(query, "innodb_tables"):
				return &fakeAnswer{err: &mysql.MySQLError{Number: 1109, Message: "Unknown table 'innodb_tables'"}}
			case strings.Contains(query, "information_schema.statistics"):
				return &fakeAnswer{err: &mysql.MySQLError{Number: 1142, Message: "SELECT command denied"}}
			case strings.Contains(query, "table_type"):
				return rowsOf([]string{"BASE TABLE", "made by terapush", "InnoDB", "YES", "2026-01-01"})
			case strings.Contains(query, "column_type"):
				return documentsColumns()
			}
			return nil
		}}
	}
	s := unknown("sql_select_limit", "sql_big_selects", "net_read_timeout")
	contract := contractOf(methodInsert, 2)
	contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	target := s.start(t, "mysql")
	target.Method = methodInsert
	db := prepared(t, target, backendtest.Deps(), preparation(documents(t, 10), contract))
	db.testSession(t, contract)
	assert.Equal(t, "created 2026-01-01", identityOf(t, db))
	parts, err := db.Parts(t.Context(), loader.KeyRange{Last: 100}, 4)
	require.NoError(t, err)
	assert.Equal(t, []string{""}, parts, "it does not say how to split the table")
	assert.NotZero(t, s.count("SET SESSION net_write_timeout = 300"), "the others are set")
	assert.NotZero(t, s.count("SET SESSION information_schema_stats_expiry = 0"))

	for refused, want := range map[string]string{
		"sql_mode":   "SET SESSION sql_mode = ",
		"their_name": "SET SESSION their_name = 7: Error 1193 (HY000): Unknown system variable (the server has no such session variable; correct --set)",
	} {
		target := unknown(refused).start(t, "mysql")
		target.Settings = []loader.Setting{{Name: "their_name", Value: "7"}}
		_, err := New().Open(t.Context(), target, backendtest.Deps())
		assert.Contains(t, loader.Explain(err), want)
	}
}

// Of several hosts every connection takes one that can be reached, and Resolve wants nothing of one that cannot.
func TestSeveralHosts(t *testing.T) {
	transactional(t, func(t *testing.T, s *testServer) {
		good := s.target.Hosts[0]
		for i, hosts := range [][]string{{good, "127.0.0.1:1"}, {"127.0.0.1:1", good}} {
			d, contract := documents(t, 20), contractOf(methodLoadData, 2)
			target := s.table(fmt.Sprintf("t%d", i))
			target.Hosts = hosts
			db := s.open(t, target, preparation(d, contract))
			for n := range int64(2) {
				b := textBatch(id(n), 2, "1\ta\n2\tb\n")
				_, err := db.testSession(t, contract).Load(t.Context(), b)
				require.NoError(t, err)
				other := loader.RefOf(b)
				other.ID.Number = 100 + n
				backendtest.Resolves(t, db, other, loader.No)
			}
		}
	})
}

// A statement that would be longer than the server's max_allowed_packet is sent in pieces.
func TestFetchInPieces(t *testing.T) {
	s := &fakeServer{vars: map[string]string{"version": "8.4.0", "max_allowed_packet": "1024"}}
	db := prepared(t, s.start(t, "mysql"), backendtest.Deps(), silent(t, contractOf(methodInsert, 2)))
	numbers := make([]int64, 1000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	require.NoError(t, db.Fetch(t.Context(), numbers, func(int64, []any) error { return nil }))
	asked := 0
	for _, query := range s.statements() {
		if _, list, is := strings.Cut(query, " IN ("); is {
			assert.Less(t, len(query), 1024)
			asked += strings.Count(list, ",") + 1
		}
	}
	assert.Equal(t, len(numbers), asked)
}

// A key of 16 bytes is asked for by those, and one of two columns by both.
func TestFetchByKey(t *testing.T) {
	const uuids = "{k: {type: uuid, uuid: v4}, n: {type: int, uniform: {min: 1, max: 9}}}"
	const pairs = "{k: {type: int, sequence: {start: 1, every: 3}}, n: {type: int, sequence: {start: 1, cycle: 3}}}\nkey: [k, n]"
	transactional(t, func(t *testing.T, s *testServer) {
		for i, c := range []struct{ columns, table string }{
			{uuids, "(k BINARY(16) PRIMARY KEY, n INT NOT NULL)"}, {pairs, "(k INT, n INT, PRIMARY KEY (n, k))"},
		} {
			spec, err := dataset.ParseSpec("k.yaml", []byte("version: 1\ncolumns: "+c.columns+"\n"), nil)
			require.NoError(t, err)
			d, err := spec.Compile(7)
			require.NoError(t, err)
			s.exec(t, "CREATE TABLE "+s.table1()+" "+c.table)
			contract := contractOf(methodLoadData, 20)
			p := preparation(d, contract)
			p.UUID = dataset.UUIDOf(d)
			db := s.open(t, s.table("t"), p)
			_, err = db.testSession(t, contract).Load(t.Context(), batchOf(t, d, batch.TSV, id(int64(i)), 0, 20))
			require.NoError(t, err)

			found := 0
			require.NoError(t, db.Fetch(t.Context(), []int64{0, 7, 19, 20}, func(number int64, values []any) error {
				found++
				assert.Equal(t, backendtest.Row(d, number), values)
				return nil
			}))
			assert.Equal(t, 3, found, c.table)
			s.exec(t, "DROP TABLE "+s.table1())
		}
	})
}

func TestSocket(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 512), contractOf(methodLoadData, 2000)
		var socket string
		require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT @@socket").Scan(&socket))
		if _, err := os.Stat(socket); err != nil {
			t.Skip("the server's socket is elsewhere")
		}
		target := s.table("t")
		target.TLS, target.Params = loader.TLSAuto, url.Values{"socket": {socket}}
		db := s.open(t, target, preparation(d, contract))
		assert.Equal(t, socket, db.Server().Endpoint)
		_, err := db.testSession(t, contract).Load(t.Context(), batchOf(t, d, batch.TSV, id(0), 0, 2000))
		require.NoError(t, err)
	})
}

// A table with a primary key is counted by ranges of it; one without is one part.
func TestSplit(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d := documents(t, 10)
		for number, primary := range []bool{false, true} {
			p := preparation(d, contractOf(methodLoadData, 100))
			p.PrimaryKey, p.Create = primary, loader.CreateRecreate
			l := s.open(t, s.table("t"), p)
			_, err := l.testSession(t, p.Contract).Load(t.Context(), batchOf(t, d, batch.TSV, id(int64(number)), 0, 100))
			require.NoError(t, err)
			parts := backendtest.Parts(t, l, loader.KeyRange{Last: 99}, 6)
			if primary {
				assert.Len(t, parts, 6)
				assert.Equal(t, "`document_id` BETWEEN 0 AND 16", parts[0])
			} else {
				assert.Equal(t, []string{""}, parts)
			}
		}
	})
}

// Without an index on the key rows are read at places, not by a scan; a gap is a place without a row.
func TestSample(t *testing.T) {
	onServers(t, []flavour{tiDB}, func(t *testing.T, s *testServer) {
		contract := contractOf(methodLoadData, 100)
		db := s.open(t, s.table("t"), preparation(documents(t, 20), contract))
		numbers := func() (found []int64) {
			require.NoError(t, db.Sample(t.Context(), 10, func(number int64, values []any) error {
				found = append(found, number)
				assert.Len(t, values[1], 20)
				return nil
			}))
			return found
		}
		assert.Empty(t, numbers(), "the table is empty")
		_, err := db.testSession(t, contract).Load(t.Context(), batchOf(t, documents(t, 20), batch.TSV, id(0), 0, 100))
		require.NoError(t, err)
		found := numbers()
		assert.Len(t, found, 10)
		assert.Less(t, slices.Min(found), int64(10))
		assert.GreaterOrEqual(t, slices.Max(found), int64(90), "from all over the table")
		var plan strings.Builder
		rows, err := s.db.QueryContext(t.Context(), "EXPLAIN FORMAT = 'brief' SELECT * FROM "+s.table1()+" WHERE _tidb_rowid IN (1, 11)")
		require.NoError(t, err)
		for rows.Next() {
			var step, ignored sql.NullString
			require.NoError(t, rows.Scan(&step, &ignored, &ignored, &ignored, &ignored))
			plan.WriteString(step.String)
		}
		require.NoError(t, rows.Err())
		assert.Contains(t, plan.String(), "Batch_Point_Get")
		assert.NotContains(t, plan.String(), "Scan")
		s.exec(t, "DELETE FROM "+s.table1()+" WHERE document_id < 50")
		s.exec(t, "ALTER TABLE "+s.table1()+" ADD KEY (document_id)")
		assert.Empty(t, numbers(), "the index finds rows by their numbers")
	})
	eachServer(t, func(t *testing.T, s *testServer) {
		db := s.open(t, s.table("t"), preparation(documents(t, 20), contractOf(methodLoadData, 2)))
		require.NoError(t, db.Sample(t.Context(), 10, func(int64, []any) error { panic("only a scan would find it") }))
	})
}
