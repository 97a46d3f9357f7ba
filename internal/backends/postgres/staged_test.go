package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func people() rows.Schema {
	return rows.Schema{
		Dataset: "people",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "name", Type: rows.Text, MaxBytes: 40},
			{Name: "birthday", Type: rows.Date},
			{Name: "t", Type: rows.Timestamp},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func groups(method string) loader.Contract {
	return loader.Contract{
		Method: method, Format: batch.CSV, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 10, GroupBatches: 2, Commits: 1,
	}
}

// openStaged stores batches 0, 1 and 2 of ten rows: group 0 is whole, group 1 has one.
func openStaged(t *testing.T, to loader.Target, contract loader.Contract) loader.Loader {
	t.Helper()
	l := prepared(t, to, loader.Preparation{Run: "run-1", Schema: people(), Contract: contract, Create: loader.CreateNever})
	s := backendtest.Session(t, l, contract)
	for n := range int64(3) {
		ack, err := s.Load(t.Context(), csvBatch(n, 10))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Stored: true, Rows: 10}, ack)
	}
	return l
}

func csvBatch(number, n int64) *batch.Batch {
	b := &batch.Batch{ID: batch.ID{Run: "run-1", Number: number}, Format: batch.CSV, First: number * 10, Rows: n}
	for i := range n {
		b.Encoded = fmt.Appendf(b.Encoded, "%d,n,1970-01-01,1970-01-01 00:00:00.000000\n", b.First+i)
	}
	b.Hold()
	return b
}

// groupZero is batches 0 and 1.
func groupZero() loader.Group {
	g := loader.Group{Ref: loader.Ref{ID: batch.ID{Run: "run-1"}, Rows: 20}}
	for n := range int64(2) {
		g.Members = append(g.Members, loader.Ref{ID: batch.ID{Run: "run-1", Number: n}, First: n * 10, Rows: 10})
	}
	return g
}

func newRedshift(t *testing.T) (*fake, loader.Target) {
	f := newFake(t, redshiftVersion)
	return f, f.target("redshift", "s3-copy")
}

func TestRedshift(t *testing.T) {
	f, to := newRedshift(t)
	l := openStaged(t, to, groups("s3-copy"))
	assert.Equal(t, loader.Server{
		Product: "Redshift", Version: "1.0.117891", Endpoint: l.Server().Endpoint, Settings: map[string]string{},
	}, l.Server())
	assert.Equal(t, []string{
		"in/run-1/g000000000000/000000000000.csv", "in/run-1/g000000000000/000000000001.csv", "in/run-1/g000000000001/000000000002.csv",
	}, f.bucket.Keys())
	committer := l.(loader.Committer)
	for _, again := range []bool{false, true} {
		ack, err := committer.Commit(t.Context(), groupZero())
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 20, AlreadyApplied: again}, ack)
	}
	assert.Len(t, f.queries("COPY"), 1)
	for number, want := range map[int64]loader.Applied{0: loader.Yes, 1: loader.No} {
		backendtest.Resolves(t, l, loader.Ref{ID: batch.ID{Run: "run-1", Number: number}, Rows: 20}, want)
	}
	require.NoError(t, committer.Discard(t.Context(), groupZero()))
	assert.Equal(t, []string{"in/run-1/g000000000001/000000000002.csv"}, f.bucket.Keys())

	f.says(
		answer{
			part: `SELECT "id", "id", "name", "birthday", "t" FROM "public"."people" WHERE "id" IN (7)`,
			rows: [][]string{{"7", "7", "é", "1969-12-31", "2026-03-29 02:30:00.000001"}},
		},
		answer{part: `FROM svv_table_info WHERE LOWER("schema") = 'public' AND LOWER("table") = 'people'`, rows: [][]string{{"5242880"}}},
	)
	fetched := 0
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{7}, func(number int64, values []any) error {
		fetched++
		at := time.Date(2026, 3, 29, 2, 30, 0, 1000, time.UTC).UnixMicro()
		assert.Equal(t, []any{int64(7), []byte("é"), int64(-1), at}, values)
		return nil
	}))
	assert.Equal(t, 1, fetched)
	size, err := l.(loader.Sizer).Stored(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 5<<20, size)
}

func TestRedshiftFails(t *testing.T) {
	f, to := newRedshift(t)
	l := openStaged(t, to, groups("s3-copy"))
	fails := func(want loader.Applied, text string) {
		t.Helper()
		_, err := l.(loader.Committer).Commit(t.Context(), groupZero())
		require.ErrorContains(t, err, text)
		assert.Equal(t, want, postgres.New().Classify(err).Applied)
	}
	f.short = 1
	fails(loader.No, "load: the server took 19 of 20 rows")
	assert.Len(t, f.queries("ROLLBACK"), 1)
	f.short = 0
	f.loseCommit = true
	fails(loader.Unknown, "commit: connection lost")
	backendtest.Resolves(t, l, groupZero().Ref, loader.Yes) // the server had it

	// Without claims a group still goes in whole.
	contract := groups("s3-copy")
	contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	f, to = newRedshift(t)
	ack, err := openStaged(t, to, contract).(loader.Committer).Commit(t.Context(), groupZero())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20}, ack)
	assert.Empty(t, f.queries("terapush_claims"))
	assert.Len(t, f.queries("BEGIN"), 1)
}

// A COPY says of a bad row only where to look for it.
func TestRedshiftNamesTheBadRow(t *testing.T) {
	bad := [][]string{{"s3://bucket/in/x.csv", "7", "name", "String length exceeds DDL length"}}
	for name, log := range map[string][]answer{
		"in the log":         {{part: "stl_load_errors", rows: bad}},
		"the log is empty":   {{part: "stl_load_errors"}, {part: "sys_load_error_detail", rows: bad}},
		"the log is refused": {{part: "stl_load_errors", code: "42501"}, {part: "sys_load_error_detail", rows: bad}},
	} {
		f, to := newRedshift(t)
		l := openStaged(t, to, groups("s3-copy"))
		f.says(append(log, answer{part: "COPY", code: "XX000", message: "Load into table 'people' failed"})...)
		_, err := l.(loader.Committer).Commit(t.Context(), groupZero())
		require.ErrorContains(t, err, "s3://bucket/in/x.csv, line 7, column name: String length exceeds DDL length", name)
		assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassData}, postgres.New().Classify(err))
	}
}

func TestRedshiftTables(t *testing.T) {
	_, to := newRedshift(t)
	l := open(t, to)
	p := loader.Preparation{Run: "run-1", Schema: people(), Contract: groups("s3-copy"), Create: loader.CreateNever, PrimaryKey: true}
	_, err := l.Prepare(t.Context(), p)
	assert.ErrorContains(t, err, "a primary key was asked for, and Redshift enforces none")
	p.PrimaryKey = false
	p.Schema.Columns[1].MaxBytes = 41 // the scripted table has varchar(40)
	_, err = l.Prepare(t.Context(), p)
	assert.ErrorContains(t, err, "column name is character varying(40), want character varying(41)")
}

// Doubles are read with all their digits, and nothing is set for other tables.
func TestRedshiftDoubles(t *testing.T) {
	for _, more := range [][]rows.Column{nil, {{Name: "f", Type: rows.Float64}}} {
		f, to := newRedshift(t)
		l := open(t, to)
		p := loader.Preparation{Run: "run-1", Schema: people(), Contract: groups("s3-copy"), Silent: true}
		p.Schema.Columns = append(p.Schema.Columns, more...)
		_, err := l.Prepare(t.Context(), p)
		require.NoError(t, err)
		_ = loader.FeaturesOf(l).Fetcher.Fetch(t.Context(), []int64{1}, func(int64, []any) error { return nil })
		assert.Len(t, f.queries("SET extra_float_digits TO 2"), len(more))
	}
}

// withKeys is a Redshift that reads the bucket with the client's own keys.
func withKeys(t *testing.T) (*fake, loader.Target) {
	f, to := newRedshift(t)
	to.Options["s3-keys"] = "true"
	return f, to
}

// These are all the statements of opening, preparing, probing and one commit on a product that no test can ask.
func TestStagedStatements(t *testing.T) {
	f, to := withKeys(t)
	l := openStaged(t, to, groups(to.Method))

	proof, err := l.(loader.Prober).Probe(t.Context(), groups(to.Method), csvBatch(0, 1))
	require.NoError(t, err)
	assert.Equal(t, loader.Proof{Transactional: true}, proof)
	assert.Len(t, f.bucket.Keys(), 3, "the probe's object is gone")

	_, err = l.(loader.Committer).Commit(t.Context(), groupZero())
	require.NoError(t, err)
	text := strings.Join(f.queries(""), "\n") + "\n"
	concealed := strings.NewReplacer(backendtest.S3Secret, "SECRET", backendtest.S3Token, "TOKEN").Replace(text)
	golden.Equal(t, "session-s3-copy-keys.sql", concealed)
}

// No secret is in any error, whatever part of a statement the server quotes.
func TestStagedErrorsKeepSecrets(t *testing.T) {
	f, to := withKeys(t)
	l := openStaged(t, to, groups(to.Method))
	f.says(
		answer{part: "COPY", code: "XX000", message: "near " + backendtest.S3Secret[3:]},
		answer{part: "load_error"})

	_, err := l.(loader.Committer).Commit(t.Context(), groupZero())
	require.ErrorContains(t, err, "near ***; the statement was ")
	shown := fmt.Sprintf("%v %+v %#v", err, err, err)
	for _, secret := range []string{backendtest.S3Secret, backendtest.S3Secret[3:], backendtest.S3Token} {
		assert.NotContains(t, shown, secret)
	}
}

func TestViaIsRefused(t *testing.T) {
	f, _ := newRedshift(t)
	for text, change := range map[string]func(*loader.Target){
		"method s3-copy needs an object store: --staging s3://bucket/prefix": func(t *loader.Target) { t.Via = nil },
		"Redshift, which takes bulk rows through S3 only":                    func(t *loader.Target) { t.Method = "copy" },
		"takes no other endpoint: leave server_endpoint out": func(t *loader.Target) {
			t.Via.Params.Set("server_endpoint", "http://x")
		},
		"Redshift would read the backslash as an escape": func(t *loader.Target) { t.Via.Database = `a\b` },
	} {
		to := f.target("redshift", "s3-copy")
		change(&to)
		_, err := postgres.New().Open(t.Context(), to, backendtest.Deps())
		assert.ErrorContains(t, err, text)
	}
}
