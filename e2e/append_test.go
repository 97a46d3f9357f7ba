package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A table that holds rows is added to when that is asked for, behind its largest key, by as many runs as there are.
func TestAppend(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		first := small(2000)
		d.push(first.flags()...).run(t).ends(t, 0)
		d.push(first.flags()...).fails(t, "holds rows", "--append", "documents")

		l := small(4000)
		flags := l.flags("--append", "--verify", "full", "--max-rate", "1MiB/s")
		a, b := d.push(flags...).start(t), d.push(flags...).start(t)
		keys := []int64{reportOf(t, a.wait(t).ends(t, 0)).Plan.FirstKey, reportOf(t, b.wait(t).ends(t, 0)).Plan.FirstKey}
		assert.ElementsMatch(t, []int64{2000, 6000}, keys)

		second, third := l, l
		second.first, third.first = 2000, 6000
		d.isExact(t, first, second, third)
	})
}
