package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	standin "github.com/terapush/terapush/internal/standin/databend"
)

// The issue's own command: every method fills the real engine and is proven, and another client finds the same rows.
func TestDatabendPush(t *testing.T) {
	t.Parallel()
	for method, format := range map[string]string{
		"streaming-load": "csv", "insert": "ndjson", "insert-no-presign": "parquet", "stage-load": "csv",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			d, f := newEngine(t), newFolder(t)
			l := peopleLoad(scaled[int64](10_000, 1_000_000), scaled[int64](1_000, 20_000))
			flags := l.flags("--method", method, "--format", format, "--workers", "3", "--verify", "full", "--verify-rows", "1000")
			switch method {
			case "insert":
				flags = append(flags, "--stage", d.stage(t, f))
			case "stage-load":
				flags = append(flags, "--via", f.target(), "--commit-batches", "4")
			}
			r := d.push(flags...).run(t).ends(t, 0)
			hasAllFields(t, r.stdout)
			is := reportOf(t, r)
			assert.Equal(t, report.OK, is.Result.Outcome)
			assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
			assert.Equal(t, l.rows*676, is.Result.PayloadBytes)
			assert.Equal(t, []any{method, format, "exactly-once"}, []any{is.Plan.Method, is.Plan.Format, is.Plan.Delivery})
			assert.Zero(t, is.Result.Duplicates+is.Result.Unknown+is.Result.Missing+is.Result.GivenUp, r.stderr)
			if method != "insert" { // versitygw 1.8.0 removes an empty folder while another object is put there: 409, sent again
				assert.Zero(t, is.Result.Retries, r.stderr)
			}
			assert.Equal(t, []any{"full", true, l.rows, int64(1000)},
				[]any{is.Verify.Mode, is.Verify.OK, is.Verify.FoundRows, is.Verify.SampledRows})
			assert.Contains(t, is.Target.Server, "Databend")
			assert.Positive(t, is.Stored.Bytes)
			if method == "stage-load" {
				assert.Equal(t, is.Result.EncodedBytes, is.Result.StoredBytes, "every body was uploaded once")
			}
			t.Logf("%.0f rows/s; %s in all", is.Result.RowsPerSecond, r.took)
			keepsSecrets(t, d, storeSecrets(t), r.all())

			d.isPeople(t, l, 500)
			d.nothingLeft(t, f)
		})
	}
}

// The engine's own stages lie in a folder, which has no presigned URLs.
func TestDatabendWithoutPresign(t *testing.T) {
	t.Parallel()
	d := newEngine(t)
	flags := peopleLoad(100, 100).flags("--method", "insert")
	d.push(flags...).fails(t, "presign", "--method insert-no-presign")
	d.push(append(flags, "--stage", "no_such_stage")...).fails(t, "no_such_stage", "create the stage first")
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.tables WHERE database = '"+d.name()+"'"), "nothing was made")
}

// The password is right, or it is wrong; it is never shown.
func TestDatabendPassword(t *testing.T) {
	t.Parallel()
	const password = "p@ss/w:rd?#[]%"
	s := newScripted(t, standin.Options{User: "tera", Password: password})
	l := peopleLoad(100, 50)
	wrong := s.pushTo(s.target(as("tera", password+"!")), l.flags()...).fails(t, "wrong user or password", "check user and password")
	right := s.pushTo(s.target(as("tera", "")), l.flags()...)
	right.env = []string{"TERAPUSH_PASSWORD=" + password}
	hides(t, password, wrong.all(), right.run(t).ends(t, 0).all(), everythingIn(t, s.state))
	s.has(t, l)
}

// The server cannot reach the store that this machine can.
func TestDatabendStoreUnreachable(t *testing.T) {
	t.Parallel()
	d, f := newEngine(t), newFolder(t)
	l := peopleLoad(2000, 500)
	r := d.push(l.flags("--method", "stage-load", "--commit-batches", "4", "--retries", "0",
		"--via", f.target(with("server_endpoint", "http://127.0.0.1:1")))...).run(t).ends(t, 1)
	r.says(t, "http://127.0.0.1:1/", "Connection refused", "give the address it knows as server_endpoint=", "--resume",
		"4 objects", "left in the object store", f.prefix)
	assert.NotContains(t, r.stderr, "<unknown>", "a stack of the server's functions")
	assert.Len(t, f.list(t), int(l.batches()))
	assert.Zero(t, reportOf(t, r).Result.Unknown)
	keepsSecrets(t, d, storeSecrets(t), r.all())
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

	d.must(t, "CREATE TABLE theirs (k BIGINT NOT NULL, r BIGINT NOT NULL, s BIGINT NOT NULL)", "INSERT INTO theirs VALUES (1, 2, 3)")
	theirs := []string{"--dataset", "pairs", "--table", "theirs", "--rows", "100", "--create", "truncate"}
	d.push(theirs...).run(t).ends(t, 5).says(t, "was not made by terapush", "not emptied")
	require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM theirs"))
	d.push(append(theirs, "--yes-drop", "theirs")...).run(t).ends(t, 0)
	require.EqualValues(t, 100, d.number(t, "SELECT COUNT(*) FROM theirs"))
}
