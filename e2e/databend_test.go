package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The engine's own stages lie in a folder, which has no presigned URLs.
func TestDatabendWithoutPresign(t *testing.T) {
	t.Parallel()
	d := newEngine(t)
	flags := peopleLoad(100, 100).flags("--method", "insert")
	d.push(flags...).fails(t, "presign", "--method insert-no-presign")
	d.push(append(flags, "--stage", "no_such_stage")...).fails(t, "no_such_stage", "create the stage first")
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.tables WHERE database = '"+d.name()+"'"), "nothing was made")
}

// The server cannot reach the store that this machine can.
func TestDatabendStoreUnreachable(t *testing.T) {
	t.Parallel()
	d, f := newEngine(t), newFolder(t)
	l := peopleLoad(2000, 500)
	r := d.push(l.flags("--method", "stage-load", "--commit-batches", "4", "--retries", "0",
		"--staging", f.target(with("server_endpoint", "http://127.0.0.1:1")))...).run(t).ends(t, 1)
	r.says(t, "http://127.0.0.1:1/", "Connection refused", "give the address it knows as server_endpoint=", "--resume",
		"4 objects", "left in the object store", f.prefix)
	assert.NotContains(t, r.stderr, "<unknown>", "a stack of the server's functions")
	assert.Len(t, f.list(t), int(l.batches()))
	assert.Zero(t, reportOf(t, r).Result.Unknown)
	d.keepsSecrets(t, r.all())
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM people"))
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.stages WHERE name = 'terapush_"+strings.ReplaceAll(d.run(t), "-", "_")+"'"))
}

// --create truncate empties the table that is there. What a run records is the table behind that: it can be resumed, and the
// proof shows that the run before it cannot.
func TestCreateTruncateInDatabend(t *testing.T) {
	t.Parallel()
	d := newEngine(t)
	more, l := dataLoad("lineitem", 400, 50, 0), dataLoad("lineitem", 300, 50, 0)
	first := reportOf(t, d.push(more.flags("--verify", "full", "--create", "truncate")...).run(t).ends(t, 0))
	second := reportOf(t, d.push(l.flags("--verify", "full", "--create", "truncate")...).run(t).ends(t, 0))
	proven(t, second, l.rows)
	d.isExact(t, l)
	d.push("--resume", second.Run.ID).run(t).ends(t, 0)
	d.push("--resume", first.Run.ID).run(t).ends(t, 4)
}
