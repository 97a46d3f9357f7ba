package e2e_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fails runs a push that has to stop before it writes anything: exit 5, at once, with one clear message.
func (i invocation) fails(t *testing.T, says ...string) result {
	t.Helper()
	r := i.run(t).ends(t, 5).says(t, says...)
	assert.Less(t, r.took, 12*time.Second)
	assert.Equal(t, 1, strings.Count(r.stderr, "terapush: "), "one message: %s", r.stderr)
	assert.Equal(t, "preflight_failed", string(reportOf(t, r).Result.Outcome))
	return r
}

func TestCannotConnect(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.pushTo(d.target(through("127.0.0.1:"+freePort(t)))).fails(t, "connection refused", "127.0.0.1")
		d.pushTo(d.target(through("no-such-host.invalid"))).fails(t, "no-such-host.invalid")
		d.pushTo(d.target(through(deafServer(t)))).fails(t, "no answer within 10s")
		d.pushTo(d.target(func(u *url.URL) { u.Path = "/no_such_database" })).fails(t, "no_such_database", "create the database")
		assert.Empty(t, d.runs(t), "no run was begun")
	})
}

// deafServer accepts and says nothing.
func deafServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	// Nobody accepts: the kernel does, and connections wait in the listener's queue.
	return l.Addr().String()
}

func TestWrongPassword(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.user(t, "guest", "")
		r := d.pushTo(d.target(as(d.name()+"_guest", "not the password"))).fails(t, d.name()+"_guest", "check user")
		assert.NotContains(t, r.all(), "not the password")
		assert.NotContains(t, r.all(), "not%20the%20password")
	})
}

// user makes a user of the server with the password "secret" and the privileges, which name the database's tables. The
// user's name begins with the database's.
func (d *database) user(t *testing.T, name, privileges string) func(*url.URL) {
	t.Helper()
	full := d.name() + "_" + name
	if d.kind == postgres {
		d.must(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'secret'", full))
		t.Cleanup(func() {
			_ = d.exec("DROP OWNED BY " + full)
			_ = d.exec("DROP ROLE " + full)
		})
	} else {
		d.must(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'secret'", full))
		t.Cleanup(func() { _ = d.exec(fmt.Sprintf("DROP USER %s@'%%'", full)) })
	}
	for grant := range strings.SplitSeq(privileges, ";") {
		if grant = strings.TrimSpace(grant); grant != "" {
			who := full
			if d.kind != postgres {
				who += "@'%'"
			}
			d.must(t, fmt.Sprintf("GRANT %s TO %s", grant, who))
		}
	}
	return as(full, "secret")
}

// name is the database's.
func (d *database) name() string { return strings.TrimPrefix(d.url.Path, "/") }

// A user may fill the table and nothing else: exactly once needs the claim table, and the message names the grant.
func TestNoRightToClaim(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		filler := d.user(t, "filler", "SELECT, INSERT ON documents")
		l := small(2000)
		d.pushTo(d.target(filler), l.flags()...).fails(t, "terapush_claims", "GRANT CREATE", "--delivery at-least-once")
		assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM documents"))

		is := reportOf(t, d.pushTo(d.target(filler), l.flags("--delivery", "at-least-once", "--create", "never")...).run(t).ends(t, 0))
		assert.Equal(t, "at-least-once", is.Plan.Delivery)
		d.isExact(t, l)
	})
}

// A user may not even create the table, or not insert.
func TestNoRightToTheTable(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		reader := d.user(t, "reader", "SELECT ON documents")
		d.pushTo(d.target(reader), small(2000).flags()...).fails(t, "GRANT")
		r := d.pushTo(d.target(reader), "--table", "another").fails(t, "another")
		assert.Contains(t, strings.ToLower(r.stderr), "denied", "the server's own words")
	})
}

// The table is there and cannot take the rows.
func TestUnfitTable(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(2000)
		d.must(t,
			"CREATE TABLE missing_column (document_id BIGINT NOT NULL)",
			"CREATE TABLE other_type (document_id BIGINT NOT NULL, payload INT NOT NULL)",
			fmt.Sprintf("CREATE TABLE more_columns (document_id BIGINT, payload %s, author INT NOT NULL)", d.bytesType()),
			"CREATE VIEW a_view AS SELECT * FROM missing_column",
		)
		for table, says := range map[string]string{
			"missing_column": "payload", "other_type": "payload", "more_columns": "author", "a_view": "view",
		} {
			d.push(append(l.flags(), "--table", table)...).fails(t, table, says)
		}
		d.push("--table", "nothing_there", "--create", "never").fails(t, "nothing_there", "does not exist")

		d.must(t, fmt.Sprintf("CREATE TABLE optional_columns (document_id BIGINT, author INT, payload %s, at INT DEFAULT 1)", d.bytesType()))
		l.table = "optional_columns"
		d.push(l.flags()...).run(t).ends(t, 0)
		d.isExact(t, l)
	})
}

// --create recreate drops what terapush made, and nothing that is somebody's.
func TestRecreate(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(2000)
		for range 2 {
			d.push(l.flags("--create", "recreate")...).run(t).ends(t, 0)
			d.isExact(t, l)
		}
		d.createTable(t, "precious", "")
		d.must(t, "INSERT INTO precious VALUES (1, 'a')")
		l.table = "precious"
		d.push(l.flags("--create", "recreate")...).fails(t, "precious", "not made by terapush")
		assert.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM precious"))
		d.push(l.flags("--create", "recreate", "--yes-drop", "precious")...).run(t).ends(t, 0)
		d.isExact(t, l)
	})
}

// A run that cannot be kept drops nothing.
func TestRecreateWithAFullStateDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	onServers(t, []kind{postgres, mariaDB}, func(t *testing.T, d *database) {
		l := small(2000)
		d.push(l.flags()...).run(t).ends(t, 0)
		d.state = t.TempDir()
		mount(t, d.state, "mode=755,size=1m")
		t.Cleanup(func() { _ = exec.Command("umount", "-l", d.state).Run() })
		fillDisk(t, filepath.Join(d.state, ".ballast"), 4096)
		for _, create := range []string{"recreate", "truncate"} {
			r := d.push(l.flags("--create", create, "--seed", "2")...).run(t).ends(t, 5)
			r.says(t, "the state folder, without which a run cannot be resumed", "no space left on device", "choose another --state-dir")
			d.isExact(t, l)
		}
		assert.Empty(t, d.runs(t))
	})
}

// LOAD DATA LOCAL is switched off on the server: how to switch it on.
func TestLocalInfileOff(t *testing.T) {
	t.Parallel()
	d := newScratch(t, mariaDB).database(t)
	d.must(t, "SET GLOBAL local_infile = 0")
	d.push().fails(t, "local_infile", "SET GLOBAL local_infile = 1", "--method insert")
	l := small(2000)
	d.push(l.flags("--method", "insert")...).run(t).ends(t, 0)
	d.isExact(t, l)
}

// A scheme that names a flavour asserts it.
func TestWrongFlavour(t *testing.T) {
	t.Parallel()
	for k, schemes := range map[kind][]string{
		postgres: {"yugabyte"}, mariaDB: {"tidb", "singlestore"}, mySQL: {"mariadb", "tidb", "singlestore"},
	} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, k)
			for _, scheme := range schemes {
				d.pushTo(d.target(func(u *url.URL) { u.Scheme = scheme })).fails(t, scheme+"://")
			}
		})
	}
}

// The doctor fails where a push would, and nowhere else.
func TestDoctorAndPushAgree(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		doctor := func(flags ...string) invocation {
			return invocation{args: append([]string{"doctor", d.target()}, flags...)}
		}
		l := small(200)
		doctor(l.flags()...).run(t).ends(t, 0)
		d.push(l.flags()...).run(t).ends(t, 0)
		said := doctor(l.flags()...).run(t).ends(t, 5).stdout
		assert.Contains(t, said, "holds rows")
		assert.Contains(t, said, "choose --append")
		doctor(l.flags("--append")...).run(t).ends(t, 0)
		assert.Contains(t, doctor(l.flags("--append", "--first-key", "199")...).run(t).ends(t, 5).stdout, "1 rows of table")
		doctor(l.flags("--create", "recreate")...).run(t).ends(t, 0)
		assert.EqualValues(t, 200, d.number(t, "SELECT COUNT(*) FROM documents"))

		if d.kind == postgres {
			d.must(t, "CREATE TABLE always (document_id bigint GENERATED ALWAYS AS IDENTITY, payload bytea NOT NULL)")
			l.table = "always"
			for i, method := range []string{"copy", "insert"} {
				l.first = int64(i) * 200
				doctor(l.flags("--method", method, "--append")...).run(t).ends(t, 0)
				d.push(l.flags("--method", method, "--append", "--verify", "full")...).run(t).ends(t, 0)
			}
		}
	})
}
