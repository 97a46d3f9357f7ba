package mysql

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestMyISAM(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d := documents(t, 20)
		s.exec(t, fmt.Sprintf("CREATE TABLE %s (document_id BIGINT, payload LONGBLOB) ENGINE=MyISAM",
			tableName{s.target.Database, "old"}.quoted()))
		db := s.open(t, s.table("old"), preparation(d, contractOf(loadData, 1)))
		assert.Equal(t, loader.DedupNone, db.Caps().Dedup)
		assert.False(t, db.Caps().Atomic)
		assert.Equal(t, "engine MyISAM of table "+db.name.String()+" keeps rows after a rollback", db.Caps().Reason)

		_, err := db.Probe(t.Context(), contractOf(loadData, 1), batchOf(t, d, batch.TSV, id(0), 7, 1))
		assert.Error(t, err, "MySQL warns of the engine besides")
		assert.EqualValues(t, 1, s.rowsIn(t, "old"), "the row stays, since it may be somebody's")
	})
}

// tables is the table t for the tests that all servers with transactions share.
func (s *testServer) tables(t *testing.T) backendtest.Tables {
	return backendtest.Tables{
		Driver: New(), Deps: s.deps, Target: s.table("t"), Preparation: preparation(documents(t, 20), contractOf(loadData, 2)),
		Name:  s.table1(),
		Exec:  func(statement string) { s.exec(t, statement) },
		Count: func() int64 { return s.rowsIn(t, "t") },
	}
}

func TestTables(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		t.Run("life", func(t *testing.T) { s.tables(t).Life(t) })
		t.Run("hold", func(t *testing.T) { s.tables(t).Hold(t, "KILL ") })
		t.Run("resume", func(t *testing.T) { s.tables(t).Resume(t, tableName{s.target.Database, "terapush_claims"}.quoted()) })
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
			with.Dates(t, "%s", "MODIFY t DATETIME(3) NOT NULL", "MODIFY d DATETIME NOT NULL",
				"MODIFY t TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)")
		})
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
				assert.EqualError(t, err, "check the claim table: claims in "+claims+" cannot be relied on: "+c.wrong+
					" (ALTER TABLE "+claims+" "+c.repair+"; or drop it if no unfinished run needs its claims, and the next run makes it again)")
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
		before := identityOf(t, s.open(t, s.table("a_b"), preparation(d, contractOf(loadData, 2))))
		assert.Regexp(t, `^table id \d+,\d+$`, before)
		for _, other := range []string{"aXb", "A_B", "A_b", "a_b_", "a_bc"} {
			create(other, halves)
		}
		create("plain", "")
		create("Plain", "")
		assert.Equal(t, before, identityOf(t, s.open(t, s.table("a_b"), preparation(d, contractOf(loadData, 2)))))
		assert.Regexp(t, `^table id \d+$`, identityOf(t, s.open(t, s.table("plain"), preparation(d, contractOf(loadData, 2)))))
	})
}

// A user with few privileges, and a password of every printable character, over every kind of connection.
func TestUser(t *testing.T) {
	var printable strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		printable.WriteByte(c)
	}
	password := printable.String()
	eachServer(t, func(t *testing.T, s *testServer) {
		target, account := s.account(t, password, "SELECT, INSERT")
		d, contract := documents(t, 20), contractOf(loadData, 2)
		s.exec(t, newStatements(tableName{s.target.Database, "t"}, mySQL, d.Schema()).createTable(false))

		for _, mode := range []loader.TLSMode{loader.TLSOff, loader.TLSPrefer} {
			target.TLS = mode
			l, err := New().Open(t.Context(), target, s.deps)
			require.NoError(t, err, mode)
			_, err = l.Prepare(t.Context(), preparation(d, contract))
			require.NoError(t, l.Close())
			assert.ErrorContains(t, err, "create the claim table `"+s.target.Database+"`.`terapush_claims`: ")
			assert.ErrorContains(t, err, "(GRANT CREATE, SELECT, INSERT, DELETE ON `"+s.target.Database+"`.`terapush_claims` TO "+account+","+
				" or do without exactly once: --delivery at-least-once)")
			assert.Equal(t, loader.ClassPermission, New().Classify(err).Class)
		}

		// Somebody else makes the claim table: then SELECT, INSERT and DELETE on it are enough, without PROCESS.
		s.exec(t, newStatements(tableName{s.target.Database, "t"}, mySQL, d.Schema()).createClaims())
		s.exec(t, "GRANT DELETE ON "+tableName{s.target.Database, "terapush_claims"}.quoted()+" TO "+account)
		db := s.open(t, target, preparation(d, contract))
		_, err := db.testSession(t, contract).Load(t.Context(), batchOf(t, d, batch.TSV, id(0), 0, 2))
		require.NoError(t, err)
		for number, want := range map[int64]loader.Applied{0: loader.Yes, 1: loader.No} {
			backendtest.Resolves(t, db, loader.Ref{ID: id(number), First: number * 2, Rows: 2}, want)
		}
		assert.Regexp(t, `^created `, identityOf(t, db))

		wrong := target
		wrong.Password += "!"
		_, err = New().Open(t.Context(), wrong, s.deps)
		require.ErrorContains(t, err, "Access denied for user")
		assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), password[10:])
	})
}

func TestRefusals(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
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
				assert.ErrorContains(t, err, text)
			}
			assert.Equal(t, c.class, New().Classify(err).Class, err)
		}
	})
}

func TestSet(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 20), contractOf(loadData, 2)
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
	contract := contractOf(loadData, 2)
	db := prepared(t, target, d, silent(t, contract))
	backendtest.Session(t, db, contract)
	backendtest.Resolves(t, db, loader.Ref{ID: id(1), Rows: 2}, loader.No)
	_ = db.Count(t.Context(), loader.Grouping{Size: 1}, nil)
	assert.Equal(t, int64(4), connections.Load(), "that which asks for the variables, control, the session, Resolve's")
	assert.Equal(t, int(connections.Load()), s.count(set))
	assert.Contains(t, strings.Join(s.statements(), "; "), ", max_statement_time = 0, sql_big_selects = 1, sql_safe_updates = 0; "+set,
		"the user's settings win")
}

// Of several hosts every connection takes one that can be reached, and Resolve wants nothing of one that cannot.
func TestSeveralHosts(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		good := s.target.Hosts[0]
		for i, hosts := range [][]string{{good, "127.0.0.1:1"}, {"127.0.0.1:1", good}} {
			d, contract := documents(t, 20), contractOf(loadData, 2)
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
	db := prepared(t, s.start(t, "mysql"), backendtest.Deps(), silent(t, contractOf(insert, 2)))
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

func TestSocket(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 512), contractOf(loadData, 2000)
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
			p := preparation(d, contractOf(loadData, 100))
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
