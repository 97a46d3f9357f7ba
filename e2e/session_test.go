package e2e_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What --set says holds for the proof of a user whose statements may take no time, and for the doctor.
func TestSettingsReachTheProof(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		d := newDatabase(t, postgres)
		d.push(small(1000).flags("--verify", "none")...).run(t).ends(t, 0)
		limited := d.user(t, "limited", "USAGE, CREATE ON SCHEMA public; SELECT, INSERT ON documents; SELECT, INSERT, DELETE ON terapush_claims")
		role := d.name() + "_limited"
		d.must(t, "ALTER TABLE documents ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY slow ON documents USING ((SELECT pg_sleep(1)) IS NOT NULL)",
			"ALTER ROLE "+role+" SET statement_timeout = '300ms'", "ALTER ROLE "+role+" SET default_transaction_read_only = on")
		verify := func(more ...string) result {
			i := d.again(t, "verify", more...)
			i.args[1] = d.target(limited)
			return i.run(t)
		}
		verify().ends(t, 5).says(t, "--set statement_timeout=0")
		assert.Contains(t, verify("--set", "statement_timeout=0", "--verify", "full").ends(t, 0).stdout, "verify ok: full")

		other := func(command string, more ...string) invocation {
			return invocation{args: append([]string{command, d.target(limited), "--table", "other"}, more...)}
		}
		other("push", "--rows", "1000", "--state-dir", d.state).run(t).ends(t, 5).
			says(t, "otherwise the user is read-only: --set default_transaction_read_only=off")
		writable := []string{"--set", "default_transaction_read_only=off"}
		other("push", append(writable, "--rows", "1000", "--state-dir", d.state)...).run(t).ends(t, 0)
		other("doctor", "--append").run(t).ends(t, 5)
		other("doctor", append(writable, "--append")...).run(t).ends(t, 0)
	})
	t.Run("mariadb", func(t *testing.T) {
		d := newDatabase(t, mariaDB)
		l := small(1_000_000)
		l.payload, l.batchRows = 1, 50_000
		d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
		limited := d.user(t, "limited", fmt.Sprintf("SELECT ON %[1]s.*; SELECT, INSERT, DELETE ON %[1]s.terapush_claims", d.name()))
		d.must(t, fmt.Sprintf("ALTER USER %s_limited@'%%' WITH MAX_STATEMENT_TIME 0.2", d.name()))
		i := d.again(t, "verify")
		i.args[1] = d.target(limited)
		i.run(t).ends(t, 1).says(t, "--set max_statement_time=0")
		i.args = append(i.args, "--set", "max_statement_time=0")
		assert.Contains(t, i.run(t).ends(t, 0).stdout, "verify ok")
	})
}

// One of two hosts is away: every connection takes the other one.
func TestOneHostIsAway(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		for table, hosts := range map[string][]string{
			"first": {"127.0.0.1:1", d.url.Host}, "second": {d.url.Host, "127.0.0.1:1"},
		} {
			l := small(2000)
			l.table = table
			both := d.target(func(u *url.URL) { u.Host = hosts[0] + "," + hosts[1] })
			is := reportOf(t, d.pushTo(both, l.flags("--workers", "4")...).run(t).ends(t, 0))
			assert.Zero(t, is.Result.Retries)
			d.isExact(t, l)
		}
	})
}
