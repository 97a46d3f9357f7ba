package e2e_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	standin "github.com/terapush/terapush/internal/fake/databend"
	"github.com/terapush/terapush/internal/report"
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
			flags := l.peopleFlags("--method", method, "--format", format, "--workers", "3", "--verify", "full", "--verify-rows", "1000")
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

// The other formats of every method, and stage-load through a stage of the server itself.
func TestDatabendFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"streaming-load", "ndjson"}, {"streaming-load", "parquet"}, {"insert", "csv"}, {"insert", "parquet"},
		{"insert-no-presign", "csv"}, {"insert-no-presign", "ndjson"}, {"stage-load", "ndjson"}, {"stage-load", "parquet"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			d, f := newEngine(t), newFolder(t)
			l := peopleLoad(2000, 500)
			flags := l.peopleFlags("--method", c.method, "--format", c.format, "--workers", "4", "--verify", "full")
			if c.method == "insert" {
				flags = append(flags, "--stage", d.stage(t, f))
			}
			is := reportOf(t, d.push(flags...).run(t).ends(t, 0))
			assert.Equal(t, c.format, is.Plan.Format)
			d.isPeople(t, l, 100)
			d.nothingLeft(t, f)
		})
	}
}

// A dry run shows what would be sent, and no secret.
func TestDatabendDryRun(t *testing.T) {
	t.Parallel()
	const password, key, secret = "p@ss/w:rd", "AKIDEXAMPLE", "wJalrXUtnFEMI"
	target := (&url.URL{Scheme: "databend", User: url.UserPassword("root", password), Host: "192.0.2.1", Path: "/db"}).String()
	for name, c := range map[string]struct {
		flags []string
		says  []string
	}{
		"streaming-load":    {nil, []string{"PUT /v1/streaming_load", "FROM @_databend_load", "LABEL: terapush:RUN:db.people:0"}},
		"insert":            {nil, []string{"PRESIGN UPLOAD @~/terapush/RUN/", "INSERT INTO", "LABEL: terapush:RUN:db.people:0"}},
		"insert-no-presign": {nil, []string{"PUT /v1/upload_to_stage", "INSERT INTO", "LABEL: terapush:RUN:db.people:0"}},
		"stage-load":        {nil, []string{"PUT /v1/upload_to_stage to @~/terapush/RUN/", "COPY INTO", "REMOVE @~/terapush/RUN/", "LABEL: terapush:RUN:db.people:group-0"}},
		"stage-load, via": {[]string{"--via", "s3://bucket/pre?region=eu-central-1"}, []string{
			"CREATE OR REPLACE STAGE terapush_RUN URL = 's3://bucket/pre/'", "secret_access_key = '***'", "PUT s3://bucket/pre/RUN/",
			"FILES = (", "DROP STAGE IF EXISTS terapush_RUN",
		}},
	} {
		method, _, _ := strings.Cut(name, ",")
		i := invocation{
			args: append([]string{"push", target, "--dry-run", "--dataset", "people", "--rows", "2000000", "--method", method}, c.flags...),
			env:  []string{"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + secret},
		}
		r := i.run(t).ends(t, 0)
		for _, text := range append(c.says, "CREATE TABLE", "2,000,000", "exactly-once by label") {
			assert.Contains(t, r.stdout, text, name)
		}
		hides(t, password, r.all())
		for _, text := range []string{key, secret} {
			assert.NotContains(t, r.all(), text, name)
		}
	}
}

// The engine's own stages lie in a folder, which has no presigned URLs.
func TestDatabendWithoutPresign(t *testing.T) {
	t.Parallel()
	d := newEngine(t)
	flags := peopleLoad(100, 100).peopleFlags("--method", "insert")
	d.push(flags...).fails(t, "presign", "--method insert-no-presign")
	d.push(append(flags, "--stage", "no_such_stage")...).fails(t, "no_such_stage", "create the stage first")
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.tables WHERE database = '"+d.name()+"'"), "nothing was made")
}

// Streaming load is younger than many servers.
func TestDatabendTooOld(t *testing.T) {
	t.Parallel()
	s := newScripted(t, standin.Options{NoStreaming: true, Version: "1.2.700"})
	l := peopleLoad(100, 50)
	s.push(l.peopleFlags()...).fails(t, "1.2.700", "streaming load", "--method insert-no-presign")
	assert.Nil(t, s.fake.Rows("people"), "nothing was made")
	s.push(l.peopleFlags("--method", "insert-no-presign")...).run(t).ends(t, 0)
	s.isPeople(t, l)
}

// The password is right, or it is wrong; it is never shown.
func TestDatabendPassword(t *testing.T) {
	t.Parallel()
	const password = "p@ss/w:rd?#[]%"
	s := newScripted(t, standin.Options{User: "tera", Password: password})
	l := peopleLoad(100, 50)
	wrong := s.pushTo(s.target(as("tera", password+"!")), l.peopleFlags()...).fails(t, "wrong user or password", "check user and password")
	right := s.pushTo(s.target(as("tera", "")), l.peopleFlags()...)
	right.env = []string{"TERAPUSH_PASSWORD=" + password}
	hides(t, password, wrong.all(), right.run(t).ends(t, 0).all(), everythingIn(t, s.state))
	s.isPeople(t, l)
}

// More workers than the server runs loads would only wait in its queue.
func TestDatabendQueue(t *testing.T) {
	t.Parallel()
	s := newScripted(t, standin.Options{MaxRunning: 2})
	l := peopleLoad(1000, 50)
	is := reportOf(t, s.push(l.peopleFlags("--workers", "6")...).run(t).ends(t, 0).says(t, "6 workers are lowered to 2"))
	assert.Equal(t, 2, is.Plan.Workers)
	assert.Contains(t, strings.Join(is.Warnings, "\n"), "6 workers are lowered to 2")
	assert.Equal(t, "2", is.Target.Settings["max_running_queries"])
	s.isPeople(t, l)
}

// The server cannot reach the store that this machine can.
func TestDatabendStoreUnreachable(t *testing.T) {
	t.Parallel()
	d, f := newEngine(t), newFolder(t)
	l := peopleLoad(2000, 500)
	r := d.push(l.peopleFlags("--method", "stage-load", "--commit-batches", "4", "--retries", "0",
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
