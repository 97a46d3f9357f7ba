package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
)

// Without a transaction the server takes what it can: what it left out is counted, and is no success, whether or not
// anybody looks at the table afterwards. A proof that fails weighs more.
func TestKeysTaken(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{mariaDB, mySQL}, func(t *testing.T, d *database) {
		for mode, code := range map[string]int{"none": 3, "full": 4} {
			l := small(2000)
			l.table = "taken_" + mode
			d.createTable(t, l.table, ", PRIMARY KEY (document_id)")
			d.must(t, fmt.Sprintf("INSERT INTO %s VALUES (100, 'mine'), (1999, 'mine')", l.table))
			r := d.push(l.flags("--delivery", "at-least-once", "--create", "never", "--verify", mode, "--verify-rows", "2000")...).run(t).ends(t, code)
			assert.EqualValues(t, 2, reportOf(t, r).Result.Missing, mode)
			assert.EqualValues(t, 2, d.number(t, "SELECT COUNT(*) FROM "+l.table+" WHERE payload = 'mine'"))
			assert.EqualValues(t, 2000, d.number(t, "SELECT COUNT(*) FROM "+l.table))
		}
	})
}

// A trigger drops rows and the server says so: exactly once is refused by the probe, whose row is the first, and at least
// once counts what is missing.
func TestTriggerDropsRows(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	d.must(t, "CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS "+
		"'BEGIN IF NEW.document_id % 10 = 0 THEN RETURN NULL; END IF; RETURN NEW; END'")
	for _, method := range d.methods() {
		l := small(1000)
		l.table = "thin_" + method
		d.createTable(t, l.table, "")
		d.must(t, "CREATE TRIGGER thin BEFORE INSERT ON "+l.table+" FOR EACH ROW EXECUTE FUNCTION drops()")
		d.push(l.flags("--method", method)...).run(t).ends(t, 5).says(t, "probe: the server took 0 of 1 rows")
		assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM "+l.table))

		r := d.push(l.flags("--method", method, "--delivery", "at-least-once", "--verify", "none")...).run(t).ends(t, 3)
		is := reportOf(t, r.says(t, "the server took 100 rows less than it was sent"))
		assert.Equal(t, report.Rejected, is.Result.Outcome)
		for range 2 { // nor does a resume forget it
			assert.Equal(t, []int64{100, 900}, []int64{is.Result.Missing, is.Result.Rows})
			is = reportOf(t, d.push("--resume", is.Run.ID).run(t).ends(t, 3))
		}
	}
}
