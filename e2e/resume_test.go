package e2e_test

import (
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// interrupted leaves a run behind that is about a third done.
func (d *database) interrupted(t *testing.T, flags ...string) load {
	t.Helper()
	l := small(12_000)
	p := d.push(l.flags(append(flags, "--workers", "4", "--max-rate", "1MiB/s")...)...).start(t)
	d.untilClaims(t, p, l.batches()/3)
	p.signal(t, syscall.SIGINT)
	p.wait(t).ends(t, 130)
	return l
}

// A resumed run makes the same rows, or it is refused.
func TestResumeRefusesOtherRows(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := d.interrupted(t)
		for _, other := range [][]string{
			{"--seed", "2"},
			{"--table", "other"},
			{"--batch-rows", "300"},
			{"--rows", "13000"},
			{"--payload-bytes", "129"},
			{"--payload-kind", "text"},
			{"--distinct-bytes", "64KiB"},
			{"--first-key", "1"},
			{"--method", "insert"},
			{"--delivery", "at-least-once"},
		} {
			r := d.resume(t, other...).run(t).ends(t, 2)
			r.says(t, other[0]+" cannot change in a resumed run")
			assert.Empty(t, r.stdout)
		}
		d.resume(t, "--dataset", "documents", "--seed", "1", "--rows", "12000", "--batch-rows", "200", "--max-rate", "1GiB/s").
			run(t).ends(t, 0) // the same values may be said again
		d.isExact(t, l)
	})
}

// What does not decide about the rows may change.
func TestResumeOnAnotherMachine(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := d.interrupted(t)
		before := d.claims()
		r := d.resume(t, "--workers", "2", "--memory", "1MiB", "--max-rate", "100MiB/s", "--retries", "3", "--verify", "full").run(t).ends(t, 0)
		is := reportOf(t, r)
		assert.Equal(t, 2, is.Plan.Workers)
		assert.True(t, is.Run.Resumed)
		assert.Equal(t, before*l.batchRows, is.Run.ResumedRows)
		assert.Equal(t, l.rows, is.Result.Rows)
		d.isExact(t, l)

		// Once more: nothing is left to do but to prove it.
		again := reportOf(t, d.resume(t).run(t).ends(t, 0))
		assert.True(t, again.Verify.OK)
		assert.Zero(t, again.Result.Attempts)
		assert.Equal(t, []any{report.OK, l.rows}, []any{again.Result.Outcome, again.Result.Rows})
	})
}

// A table that was rewritten between stop and resume is another file and the same rows.
func TestResumeOnARewrittenTable(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := d.interrupted(t)
		for _, rewrite := range map[kind][]string{
			postgres: {"VACUUM FULL documents", "ALTER TABLE documents ALTER payload SET DATA TYPE bytea USING payload || ''"},
			mariaDB:  {"OPTIMIZE TABLE documents", "ALTER TABLE documents FORCE"},
			mySQL:    {"OPTIMIZE TABLE documents", "ALTER TABLE documents FORCE"},
		}[d.kind] {
			d.must(t, rewrite)
		}
		d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0).says(t, "was rewritten since the earlier process")
		d.isExact(t, l)
		d.must(t, "TRUNCATE TABLE documents")
		d.resume(t).run(t).ends(t, 5).says(t, "are missing or incomplete")
	})
}

// Another table under the same name holds none of the rows that were acknowledged.
func TestResumeOnAnotherTable(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, d *database){
		"dropped":   func(t *testing.T, d *database) { d.must(t, "DROP TABLE documents") },
		"truncated": func(t *testing.T, d *database) { d.must(t, "TRUNCATE TABLE documents") },
		"recreated": func(t *testing.T, d *database) {
			d.must(t, "DROP TABLE documents")
			d.createTable(t, "documents", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, d *database) {
				d.interrupted(t)
				change(t, d)
				r := d.resume(t).run(t).ends(t, 5)
				assert.NotContains(t, r.stderr, "to go on")
				if name == "dropped" {
					r.says(t, "documents", "does not exist")
				} else {
					r.says(t, "are missing or incomplete", "start a new run")
					assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM documents"), "nothing was written")
				}
			})
		})
	}
}

func TestOneProcessARun(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(12_000)
		first := d.push(l.flags("--workers", "4", "--max-rate", "1MiB/s")...).start(t)
		d.untilClaims(t, first, 1)
		d.resume(t).run(t).ends(t, 5).says(t, "another process is working on run")
		first.wait(t).ends(t, 0)
		d.isExact(t, l)
	})
}

func TestResumeOfNoRun(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	r := d.push("--resume", "20200101-000000-abcdef").run(t)
	require.Contains(t, []int{2, 5}, r.code, r.stderr)
	r.says(t, "20200101-000000-abcdef", d.state)
}

// Parameters of the URL are the run's: they are in the command that goes on, and a resume without them has them all the same.
func TestResumeKeepsTheURLsParameters(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		l, flags := slow()
		off := d.target(func(u *url.URL) {
			q := u.Query()
			q.Set("synchronous_commit", "off")
			u.RawQuery = q.Encode()
		})
		p := d.pushTo(off, flags...).start(t)
		d.untilClaims(t, p, 10)
		p.signal(t, syscall.SIGINT)
		assert.Contains(t, resumeCommand(t, p.wait(t).ends(t, 130).stderr), "synchronous_commit=off")
		is := reportOf(t, d.resume(t).run(t).ends(t, 0))
		assert.Equal(t, "off", is.Target.Settings["synchronous_commit"])
		d.isExact(t, l)
	})
}
