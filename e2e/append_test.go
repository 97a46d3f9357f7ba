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
		d.push(first.flags("--first-key", "1000000")...).fails(t, "holds rows", "--append")

		second := small(3000)
		second.seed, second.first = 2, 2000
		is := reportOf(t, d.push(append(small(3000).flags("--append", "--verify", "full"), "--seed", "2")...).run(t).ends(t, 0))
		assert.Equal(t, []int64{2000, 3000}, []int64{is.Plan.FirstKey, is.Verify.FoundRows})

		// Two at the same time.
		a := d.push(small(4000).flags("--append", "--verify", "full", "--max-rate", "1MiB/s")...).start(t)
		b := d.push(small(4000).flags("--append", "--verify", "full", "--max-rate", "1MiB/s")...).start(t)
		keys := []int64{
			reportOf(t, a.wait(t).ends(t, 0)).Plan.FirstKey,
			reportOf(t, b.wait(t).ends(t, 0)).Plan.FirstKey,
		}
		assert.ElementsMatch(t, []int64{5000, 9000}, keys)

		assert.EqualValues(t, 13_000, d.number(t, "SELECT COUNT(*) FROM documents"))
		assert.EqualValues(t, 13_000, d.number(t, "SELECT COUNT(DISTINCT document_id) FROM documents"))
		d.holds(t, first)
		d.holds(t, second)
		for _, key := range keys {
			l := small(4000)
			l.first = key
			d.holds(t, l)
		}
	})
}

// Rows of others do not disturb the proof, as long as their keys are others.
func TestFirstKey(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(2000)
		l.first = 9_000_000_000
		is := reportOf(t, d.push(l.flags("--verify", "full")...).run(t).ends(t, 0))
		assert.Equal(t, l.first, is.Plan.FirstKey)
		d.isExact(t, l)
	})
}
