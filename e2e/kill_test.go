package e2e_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/internal/report"
)

// slow is a load of about three seconds: 27 KiB a batch, 150 batches.
func slow() (load, []string) {
	l := small(scaled[int64](30_000, 400_000))
	return l, l.flags("--workers", "4", "--max-rate", "1500KiB/s")
}

// The first signal saves, and prints a command that goes on from there.
func TestSignalAndResume(t *testing.T) {
	for signal, code := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(signal.String(), func(t *testing.T) {
			eachServer(t, func(t *testing.T, d *database) {
				l, flags := slow()
				p := d.push(flags...).start(t)
				d.untilClaims(t, p, 10)
				p.signal(t, signal)
				r := p.wait(t).ends(t, code)
				is := reportOf(t, r)
				assert.Equal(t, report.Interrupted, is.Result.Outcome)
				assert.Equal(t, d.claims(), is.Result.Batches, "what was on its way is finished and counted")
				assert.Less(t, is.Result.Batches, l.batches())
				assert.False(t, is.Verify.Ran)

				runAgain(t, resumeCommand(t, r.stderr)).ends(t, 0)
				d.isExact(t, l)
			})
		})
	}
}

// resumeCommand finds the command that an interrupted run leaves on stderr.
func resumeCommand(t *testing.T, stderr string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^to go on: terapush (.+)$`).FindStringSubmatch(stderr)
	require.NotNil(t, found, "no command to go on with: %s", stderr)
	return found[1]
}

// runAgain lets a shell read the rest of a command line, as a person would.
func runAgain(t *testing.T, command string) result {
	t.Helper()
	return startCommand(t, invocation{}, "sh", "-c", "exec '"+binary+"' "+command).wait(t)
}

// The second signal does not wait for a server that says nothing.
func TestTwoSignals(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(20_000)
		silent := &faultproxy.Fault{Action: faultproxy.Stall, Bytes: 300_000}
		proxy := d.proxy(t, silent)
		p := d.by(proxy, l.flags("--workers", "2")...).start(t)
		require.Eventually(t, func() bool { return silent.Injected() > 0 }, 20*time.Second, 5*time.Millisecond)
		p.signal(t, syscall.SIGINT)
		time.Sleep(time.Second) // one that comes right behind the first is taken for the same
		require.True(t, p.running(), "the first signal waits for what is on its way")
		second := time.Now()
		p.signal(t, syscall.SIGINT)
		r := p.wait(t).ends(t, 130)
		assert.Less(t, time.Since(second), 15*time.Second)
		is := reportOf(t, r)
		assert.Zero(t, is.Result.Unknown, "no commit was under way, so nothing is unknown")

		d.resume(t).run(t).ends(t, 0)
		d.isExact(t, l)
	})
}

// Somebody who has seen enough of the progress closes the pipe: that ends neither the run nor its summary.
func TestStderrIsClosed(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	defer func() { _ = write.Close() }()
	c := exec.Command(binary, "push", "discard://", "--rows", "1000", "--progress", "json", "--state-dir", t.TempDir())
	c.Env, c.Stderr = cleanEnvironment(t.TempDir()), write
	out, err := c.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "ok: 1,000 rows")
}

// Under nohup a run does not end with its terminal.
func TestHangUpIsIgnoredUnderNohup(t *testing.T) {
	p := startCommand(t, invocation{}, "nohup", binary, "push", "discard://", "--duration", "1s", "--distinct-bytes", "1MiB",
		"--state-dir", t.TempDir())
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "discarded rows are nowhere") }, 20*time.Second, 5*time.Millisecond)
	p.signal(t, syscall.SIGHUP)
	p.wait(t).ends(t, 0)
}
