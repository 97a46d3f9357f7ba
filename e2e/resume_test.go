package e2e_test

import (
	"net/url"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// The first signal saves, and prints a command that resumes it, with the parameters of the URL. What does not
// decide about the rows may be another in the resume, and once all is in nothing is left to do but to prove it.
func TestSignalAndResume(t *testing.T) {
	t.Parallel()
	onServers(t, everyServer(), func(t *testing.T, d *database) {
		end := map[kind]struct {
			signal syscall.Signal
			code   int
		}{
			postgres: {syscall.SIGHUP, 129}, mariaDB: {syscall.SIGINT, 130}, mySQL: {syscall.SIGTERM, 143},
			tiDB: {syscall.SIGHUP, 129}, oceanBase: {syscall.SIGTERM, 143},
		}[d.kind]
		l := small(12_000)
		target := d.target()
		if d.kind == postgres {
			target = d.target(func(u *url.URL) { u.RawQuery += "&synchronous_commit=off" })
		}
		p := d.pushTo(target, l.flags("--workers", "4", "--max-rate", "256KiB/s", "--method", d.exact())...).start(t)
		d.untilClaims(t, p, 10)
		p.signal(t, end.signal)
		r := p.wait(t).ends(t, end.code)
		is := reportOf(t, r)
		assert.Equal(t, report.Interrupted, is.Result.Outcome)
		before := d.claims()
		assert.Equal(t, before, is.Result.Batches, "what was on its way is finished and counted")
		assert.Less(t, before, l.batches())
		assert.False(t, is.Verify.Ran)

		found := regexp.MustCompile(`(?m)^to resume: terapush (.+)$`).FindStringSubmatch(r.stderr)
		require.NotNil(t, found, "no command to resume with: %s", r.stderr)
		command := found[1]
		if d.kind == postgres {
			assert.Contains(t, command, "synchronous_commit=off")
		}
		is = reportOf(t, runAgain(t, command+" --json --workers 2 --memory 1MiB --retries 3 --max-rate 1GiB/s").ends(t, 0))
		assert.Equal(t, []any{true, 2, before * l.batchRows, l.rows},
			[]any{is.Run.Resumed, is.Plan.Workers, is.Run.ResumedRows, is.Result.Rows})
		if d.kind == postgres {
			assert.Equal(t, "off", is.Target.Settings["synchronous_commit"])
		}
		d.isExact(t, l)
		again := reportOf(t, d.resume(t).run(t).ends(t, 0))
		assert.Equal(t, []any{true, int64(0), l.rows}, []any{again.Verify.OK, again.Result.Attempts, again.Result.Rows})
	})
}

// runAgain lets a shell read the rest of a command line, as a person would.
func runAgain(t *testing.T, command string) result {
	t.Helper()
	return startCommand(t, invocation{}, "sh", "-c", "exec '"+binary+"' "+command).wait(t)
}
