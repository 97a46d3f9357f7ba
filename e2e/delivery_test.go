package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/internal/report"
)

// MyISAM keeps what a rollback should remove: exactly once is refused, and anything less says so.
func TestNoTransactions(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{mariaDB, mySQL}, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		d.must(t, "ALTER TABLE documents ENGINE = MyISAM")
		l := small(2000)
		d.push(l.flags("--delivery", "exactly-once")...).fails(t, "MyISAM", "exactly once", "--delivery at-least-once")
		assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM documents"), "no row of a probe is left")

		is := reportOf(t, d.push(l.flags()...).run(t).ends(t, 0))
		assert.Equal(t, "at-least-once", is.Plan.Delivery)
		assert.Contains(t, strings.Join(is.Warnings, "\n"), "MyISAM")
		d.isExact(t, l)
	})
}

// Who asks for at least once has nothing but the load sent to the server.
func TestAtLeastOnceLeavesNoClaims(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		l := small(2000)
		is := reportOf(t, d.push(l.flags("--delivery", "at-least-once", "--create", "never")...).run(t).ends(t, 0))
		assert.Equal(t, "at-least-once", is.Plan.Delivery)
		assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'terapush_claims' AND table_schema IN ('public', '"+d.name()+"')"),
			"not even a claim table")
		d.isExact(t, l)
	})
}

// At least once, with lost answers: every row is there, and some are there twice, which the proof says.
func TestAtLeastOnceDoubles(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{mariaDB, mySQL}, func(t *testing.T, d *database) {
		l := small(10_000)
		lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Bytes: 300_000}
		r := d.by(d.proxy(t, lost), l.flags("--delivery", "at-least-once", "--workers", "2", "--retries", "20")...).run(t)
		is := reportOf(t, r)
		assert.Positive(t, lost.Injected())
		total := d.number(t, "SELECT COUNT(*) FROM documents")
		assert.Equal(t, l.rows, d.number(t, "SELECT COUNT(DISTINCT document_id) FROM documents"), "nothing is missing")
		if total == l.rows {
			r.ends(t, 0)
			return
		}
		r.ends(t, 4).says(t, "at least once")
		assert.Equal(t, total, is.Verify.FoundRows)
		assert.NotEmpty(t, is.Verify.BadBatches)
	})
}

// Somebody else's rows have some of the keys. Under a unique key they are in the way: the run says so in the server's
// words, and changes nothing about them.
func TestKeysTaken(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.createTable(t, "documents", ", PRIMARY KEY (document_id)")
		l := d.interrupted(t, "--retries", "1")
		taken := l.rows - 5 // a key of the last batch, and one more of it
		d.must(t, fmt.Sprintf("INSERT INTO documents VALUES (%d, 'mine'), (%d, 'mine')", taken, taken+2))
		r := d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 1)
		r.says(t, map[kind]string{postgres: "duplicate key value violates unique constraint", mariaDB: "Duplicate entry", mySQL: "Duplicate entry"}[d.kind],
			fmt.Sprint(taken), "--resume")
		is := reportOf(t, r)
		assert.Equal(t, report.Failed, is.Result.Outcome)
		assert.Equal(t, []int64{0, 1}, []int64{is.Result.Unknown, is.Result.GivenUp})
		d.isMine(t, taken, taken+2)

		d.must(t, fmt.Sprintf("DELETE FROM documents WHERE document_id IN (%d, %d)", taken, taken+2))
		d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0)
		d.isExact(t, l)
	})
}

// Without a transaction the server takes what it can: what it left out is counted, and no success. A proof that fails
// weighs more than rejected rows.
func TestKeysTakenAtLeastOnce(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{mariaDB, mySQL}, func(t *testing.T, d *database) {
		for mode, code := range map[string]int{"none": 3, "count": 3, "ack": 4, "full": 4} {
			l := small(2000)
			l.table = "taken_" + mode
			d.createTable(t, l.table, ", PRIMARY KEY (document_id)")
			d.must(t, fmt.Sprintf("INSERT INTO %s VALUES (100, 'mine'), (1999, 'mine')", l.table))
			r := d.push(l.flags("--delivery", "at-least-once", "--create", "never", "--verify", mode, "--verify-rows", "2000")...).run(t).ends(t, code)
			is := reportOf(t, r)
			assert.EqualValues(t, 2, is.Result.Missing, mode)
			if code == 3 {
				r.says(t, "the server took 2 rows less than it was sent")
			}
			assert.EqualValues(t, 2, d.number(t, "SELECT COUNT(*) FROM "+l.table+" WHERE payload = 'mine'"))
			assert.EqualValues(t, 2000, d.number(t, "SELECT COUNT(*) FROM "+l.table))
		}
	})
}

// A trigger drops rows and the server says so: exactly once is refused by the probe, whose row is the first, at least once counts what is missing, whether or not
// anybody looks at the table afterwards.
func TestTriggerDropsRows(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		d.must(t, "CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS "+
			"'BEGIN IF NEW.document_id % 10 = 0 THEN RETURN NULL; END IF; RETURN NEW; END'")
		for _, method := range []string{"copy", "insert"} {
			l := small(1000)
			l.table = "thin_" + method
			d.createTable(t, l.table, "")
			d.must(t, "CREATE TRIGGER thin BEFORE INSERT ON "+l.table+" FOR EACH ROW EXECUTE FUNCTION drops()")
			flags := l.flags("--method", method, "--delivery", "at-least-once", "--verify", "none")
			is := reportOf(t, d.push(flags...).run(t).ends(t, 3).says(t, "the server took 100 rows less than it was sent"))
			assert.Equal(t, report.Rejected, is.Result.Outcome)
			assert.Equal(t, []int64{100, 900}, []int64{is.Result.Missing, is.Result.Rows})

			is = reportOf(t, d.push("--resume", is.Run.ID).run(t).ends(t, 3))
			assert.Equal(t, []int64{100, 900}, []int64{is.Result.Missing, is.Result.Rows}, "nor does a resume forget it")

			d.must(t, "TRUNCATE "+l.table)
			d.push(l.flags("--method", method, "--verify", "none")...).run(t).ends(t, 5).says(t, "probe: the server took 0 of 1 rows")
			assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM "+l.table))
		}
	})
}

// isMine asserts that somebody else's rows are as they were.
func (d *database) isMine(t *testing.T, keys ...int64) {
	t.Helper()
	for _, key := range keys {
		assert.Equal(t, "mine", string(ask[[]byte](t, d, fmt.Sprintf("SELECT payload FROM documents WHERE document_id = %d", key))))
	}
}
