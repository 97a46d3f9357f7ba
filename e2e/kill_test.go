package e2e_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// The second signal does not wait for a server that says nothing.
func TestTwoSignals(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(20_000)
		silent := &faultproxy.Fault{Action: faultproxy.Stall, Bytes: 300_000}
		p := d.by(d.proxy(t, silent), l.flags("--workers", "2")...).start(t)
		p.until(t, "the stall", func() bool { return silent.Injected() > 0 })
		p.signal(t, syscall.SIGINT)
		time.Sleep(time.Second) // one that comes right behind the first is taken for the same
		require.True(t, p.running(), "the first signal waits for what is on its way")
		p.signal(t, syscall.SIGINT)
		is := reportOf(t, p.wait(t).ends(t, 130))
		assert.Zero(t, is.Result.Unknown, "no commit was under way, so nothing is unknown")

		d.resume(t).run(t).ends(t, 0)
		d.isExact(t, l)
	})
}

// Under nohup a run does not end with its terminal.
func TestHangUpIsIgnoredUnderNohup(t *testing.T) {
	t.Parallel()
	p := startCommand(t, invocation{}, "nohup", binary, "push", "discard://", "--duration", "1s", "--distinct-bytes", "1MiB",
		"--state-dir", t.TempDir())
	p.until(t, "the beginning", func() bool { return strings.Contains(p.stderr.String(), "discarded rows are nowhere") })
	p.signal(t, syscall.SIGHUP)
	p.wait(t).ends(t, 0)
}

// --create drops or empties what terapush made. What a run records is the table behind that: a resume finds it to be the run's.
func TestCreate(t *testing.T) {
	t.Parallel()
	for _, create := range []string{"recreate", "truncate"} {
		t.Run(create, func(t *testing.T) {
			t.Parallel()
			d, l := newDatabase(t, postgres), small(2000)
			d.push(l.flags("--create", create)...).run(t).ends(t, 0) // made, since it is missing
			d.must(t, "CREATE INDEX mine ON documents (document_id)")
			l.seed, l.rows = 9, 8000
			d.state = t.TempDir()
			before := d.claims()
			p := d.push(l.flags("--create", create, "--workers", "2", "--max-rate", "300KiB/s")...).start(t)
			d.untilClaims(t, p, before+l.batches()/4)
			p.kill(t)
			d.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
			d.isExact(t, l)
			if create == "truncate" { // the table stays, with what somebody has made of it
				d.must(t, "DROP INDEX mine")
			}
		})
	}
}
