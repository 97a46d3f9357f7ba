package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
