package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
)

// again is a command on the only run of the state folder.
func (d *database) again(t *testing.T, command string, flags ...string) invocation {
	t.Helper()
	return invocation{args: append([]string{command, d.target(), "--run", d.run(t), "--state-dir", d.state}, flags...)}
}

// A proof later, without the source: it holds, and it notices what has changed since.
func TestVerifyLater(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(4000)
		d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
		for _, mode := range []string{"count", "full"} {
			is := reportOf(t, d.again(t, "verify", "--json", "--verify", mode).run(t).ends(t, 0))
			assert.True(t, is.Verify.OK)
			assert.Equal(t, []any{mode, l.rows}, []any{is.Verify.Mode, is.Verify.FoundRows})
		}
		text := d.again(t, "verify").run(t).ends(t, 0)
		assert.Contains(t, text.stdout, "verify ok")

		d.must(t, "DELETE FROM documents WHERE document_id = 1234")
		short := d.finds(t, 3999, "short", "count", "full")
		assert.EqualValues(t, 199, short.Found)

		d.must(t, "INSERT INTO documents SELECT 1234, payload FROM documents WHERE document_id = 1235") // the right key, another payload
		wrong := reportOf(t, d.again(t, "verify", "--json", "--verify", "full", "--verify-rows", "4000").run(t).ends(t, 4))
		assert.NotEmpty(t, wrong.Verify.Problems, "a wrong payload is seen by the full proof")

		d.must(t, "UPDATE documents SET document_id = 1235 WHERE document_id = 1234") // the right number of rows, one of them twice
		d.finds(t, 4000, "", "count", "full")

		d.must(t, "DELETE FROM documents WHERE document_id = 1235",
			"INSERT INTO documents SELECT document_id, payload FROM documents WHERE document_id = 1236")
		d.finds(t, 3999, "", "count", "full")
		d.must(t, "INSERT INTO documents SELECT document_id, payload FROM documents WHERE document_id BETWEEN 1237 AND 1239")
		doubled := d.finds(t, 4002, "doubled", "count", "full")
		assert.EqualValues(t, 202, doubled.Found)
	})
}

// finds asserts that batch 6, keys 1200 to 1399, and no other is found to be bad, by every mode.
func (d *database) finds(t *testing.T, rows int64, reason string, modes ...string) (bad report.BadBatch) {
	t.Helper()
	for _, mode := range modes {
		is := reportOf(t, d.again(t, "verify", "--json", "--verify", mode).run(t).ends(t, 4))
		assert.False(t, is.Verify.OK)
		assert.Equal(t, rows, is.Verify.FoundRows)
		if assert.Len(t, is.Verify.BadBatches, 1) {
			bad = is.Verify.BadBatches[0]
			assert.Equal(t, []int64{6, 1200, 1399, 200}, []int64{bad.Number, bad.FirstKey, bad.LastKey, bad.Rows})
			if reason != "" {
				assert.Equal(t, reason, bad.Reason)
			}
		}
	}
	assert.Regexp(t, `verify FAILED: .*batch 6 \(keys 1200 to 1399\)`, d.again(t, "verify").run(t).ends(t, 4).stdout)
	return bad
}

// A proof that fails at the end of a push: exit 4, the claims stay, and the run can be looked at again.
func TestVerifyFails(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(12_000)
		p := d.push(l.flags("--workers", "4", "--max-rate", "1MiB/s")...).start(t)
		d.untilClaims(t, p, l.batches()/2)
		d.must(t, "DELETE FROM documents WHERE document_id = 77")
		is := reportOf(t, p.wait(t).ends(t, 4))
		assert.Equal(t, report.VerificationFailed, is.Result.Outcome)
		if assert.Len(t, is.Verify.BadBatches, 1) {
			assert.Contains(t, is.Verify.BadBatches[0].String(), "batch 0 (keys 0 to 199) short: 199 of 200 rows")
		}
		assert.Equal(t, l.batches(), d.claims(), "the claims are evidence")
	})
}

// forget leaves nothing of a run but its rows.
func TestForget(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(2000)
		d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
		assert.Equal(t, l.batches(), d.claims(), "nothing is proven, so the claims are kept")
		d.again(t, "forget").run(t).ends(t, 0)
		assert.Zero(t, d.claims())
		assert.Empty(t, d.runs(t))
		d.isExact(t, l)

		l.table = "dropped"
		d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
		assert.NoError(t, d.exec("DROP TABLE dropped"))
		d.again(t, "forget").run(t).ends(t, 0)
		assert.Zero(t, d.claims(), "a table that is gone keeps nobody from forgetting its run")

		l.table = "forsaken"
		d.push(l.flags("--verify", "none", "--append")...).run(t).ends(t, 0)
		run, claims := d.run(t), d.claims()
		assert.NoError(t, os.RemoveAll(d.state))
		forget := func(id string) invocation {
			return invocation{args: []string{"forget", d.target(), "--run", id, "--state-dir", d.state}}
		}
		forget("20261122-105429-cmp7p1").run(t).ends(t, 2).says(t, `no run "20261122-105429-cmp7p1" in `+d.state, "ids look like 20")
		forget("20261122-105429-cmp7pr").run(t).ends(t, 0).says(t, "0 rows of run 20261122-105429-cmp7pr removed")
		assert.Equal(t, claims, d.claims())
		forget(run).run(t).ends(t, 0).says(t, fmt.Sprintf("%d rows of run %s removed from the claim table", claims+1, run))
		assert.Zero(t, d.claims())
		if d.kind == postgres {
			l.table = "unlogged"
			d.push(l.flags("--verify", "none", "--unlogged")...).run(t).ends(t, 0)
			run = d.run(t)
			assert.NoError(t, os.RemoveAll(d.state))
			forget(run).run(t).ends(t, 0).says(t, fmt.Sprintf("%d rows of run %s removed", claims, run))
		}
	})
}

// Nothing is proven unless it is asked for.
func TestVerifyNoneAndAck(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		for _, mode := range []string{"none", "ack"} {
			l := small(2000)
			l.table = "verified_" + mode
			is := reportOf(t, d.push(l.flags("--verify", mode)...).run(t).ends(t, 0))
			assert.Equal(t, mode, is.Verify.Mode)
			assert.Equal(t, mode == "ack", is.Verify.OK)
			d.isExact(t, l)
		}
		r := invocation{args: []string{"push", d.target(), "--state-dir", d.state, "--rows", "10", "--verify", "none"}}.run(t).ends(t, 0)
		assert.Contains(t, r.stdout, "verify    none, as asked: nothing is proven")
		assert.False(t, strings.Contains(r.stdout, "verify ok"))
	})
}

// A blank inside a name is a letter like any other.
func TestTableWithABlank(t *testing.T) {
	test := func(t *testing.T, d *database) {
		const name = "my new table"
		flags := []string{"--table", name, "--rows", "1000", "--payload-bytes", "16", "--verify", "full"}
		d.push(flags...).run(t).ends(t, 0)
		d.again(t, "verify", "--verify", "full").run(t).ends(t, 0)
		d.push(append(flags, "--append", "--first-key", "1000")...).run(t).ends(t, 0)
		d.push(append(flags, "--create", "recreate")...).run(t).ends(t, 0)
		quoted := "`" + name + "`"
		if d.kind == postgres {
			quoted = `"` + name + `"`
		}
		assert.EqualValues(t, 1000, d.number(t, "SELECT COUNT(*) FROM "+quoted))
	}
	eachServer(t, test)
	t.Run("databend", func(t *testing.T) { test(t, newEngine(t)) })
}

// The connection of a proof is killed while it scans: it is scanned again.
func TestProofIsKilled(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(scaled[int64](200_000, 2_000_000))
		l.payload, l.batchRows = 16, 1000
		d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
		for hit := false; !hit; {
			p := d.again(t, "verify", "--verify", "full").start(t)
			for p.running() && !hit {
				hit = d.killProof(t)
			}
			r := p.wait(t).ends(t, 0)
			assert.Contains(t, r.stdout, "verify ok: full")
			hit = hit && strings.Contains(r.stderr, "asking again")
		}
	})
}

// killProof kills the connection that counts, if there is one.
func (d *database) killProof(t *testing.T) (hit bool) {
	t.Helper()
	if d.kind == postgres {
		return d.number(t, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"+
			" AND query LIKE '%GROUP BY bucket%' AND pid <> pg_backend_pid()") > 0
	}
	list := map[kind]string{mariaDB: "information_schema", mySQL: "performance_schema"}[d.kind]
	id := d.number(t, "SELECT COALESCE(MAX(id), 0) FROM "+list+".processlist WHERE db = DATABASE()"+
		" AND info LIKE '%GROUP BY bucket%' AND id <> CONNECTION_ID()")
	return id > 0 && d.exec(fmt.Sprintf("KILL %d", id)) == nil
}
