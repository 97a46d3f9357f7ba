package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fails runs a push that has to stop before it writes anything: exit 5, with one clear message.
func (i invocation) fails(t *testing.T, says ...string) result {
	t.Helper()
	r := i.run(t).ends(t, 5).says(t, says...)
	assert.Equal(t, 1, strings.Count(r.stderr, "terapush: "), "one message: %s", r.stderr)
	assert.Equal(t, "preflight_failed", string(reportOf(t, r).Result.Outcome))
	return r
}

func TestCannotConnect(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.pushTo(d.target(through("127.0.0.1:"+freePort(t)))).fails(t, "connection refused", "127.0.0.1")
		d.pushTo(d.target(func(u *url.URL) { u.Path = "/no_such_database" })).fails(t, "no_such_database", "create the database")
		assert.Empty(t, d.runs(t), "no run was begun")
	})
}

// A user may fill the table and nothing else: exactly once needs the claim table, and the message names the grant.
func TestNoRightToClaim(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		full := d.name() + "_filler"
		filler, who, create := as(full, "secret"), full+"@'%'", "CREATE USER %s IDENTIFIED BY 'secret'"
		if d.kind == postgres {
			who, create = full, "CREATE ROLE %s LOGIN PASSWORD 'secret'"
		}
		d.must(t, fmt.Sprintf(create, who))
		t.Cleanup(func() { // the role owns nothing, and its grant goes with the database
			if d.kind == postgres {
				_ = d.exec("DROP OWNED BY " + full)
			}
			_ = d.exec("DROP USER " + who)
		})
		d.must(t, "GRANT SELECT, INSERT ON documents TO "+who)
		l := small(2000)
		d.pushTo(d.target(filler), l.flags()...).fails(t, "terapush_claims", "GRANT ", "CREATE", "--delivery at-least-once")
		assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM documents"))

		is := reportOf(t, d.pushTo(d.target(filler), l.flags("--delivery", "at-least-once", "--create", "never")...).run(t).ends(t, 0))
		assert.Equal(t, "at-least-once", is.Plan.Delivery)
		d.isExact(t, l)
	})
}

// A run that cannot be kept drops nothing.
func TestRecreateWithAFullStateDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	d, l := newDatabase(t, postgres), small(2000)
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
}

// The doctor fails where a push would, and nowhere else.
func TestDoctorAndPushAgree(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	doctor := func(flags ...string) invocation {
		return invocation{args: append([]string{"doctor", d.target()}, flags...)}
	}
	l := small(200)
	doctor(l.flags()...).run(t).ends(t, 0)
	d.push(l.flags()...).run(t).ends(t, 0)
	assert.Contains(t, doctor(l.flags()...).run(t).ends(t, 5).stdout, "holds rows")
	d.isExact(t, l)

	d.must(t, "CREATE TABLE always (document_id bigint GENERATED ALWAYS AS IDENTITY, payload bytea NOT NULL)")
	l.table = "always"
	for i, method := range d.methods() {
		l.first = int64(i) * 200
		doctor(l.flags("--method", method, "--append")...).run(t).ends(t, 0)
		d.push(l.flags("--method", method, "--append", "--verify", "full")...).run(t).ends(t, 0)
	}
}
