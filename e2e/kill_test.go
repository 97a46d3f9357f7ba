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
