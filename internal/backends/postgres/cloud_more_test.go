package postgres_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// golden compares with a file under testdata; -update writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// What cannot be had here is at least spoken to: these are all the statements of opening, preparing, probing and one
// commit.
func TestStagedStatements(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, method, _ string) {
		for name, option := range map[string]string{"role": "", "keys": "s3-keys"} {
			t.Run(name, func(t *testing.T) {
				c.claims, c.said, c.with = make(map[string]string), nil, nil
				to := c.target(method)
				if option != "" {
					to.Options[option] = "true"
				}
				l := openCloud(t, c, to, groups(method))
				proof, err := l.(loader.Prober).Probe(t.Context(), groups(method), csvBatch(0, 1))
				require.NoError(t, err)
				assert.Equal(t, loader.Proof{Transactional: true}, proof)
				assert.Len(t, c.bucket.Keys(), 3, "the probe's object is gone")
				_, err = l.(loader.Committer).Commit(t.Context(), groupZero())
				require.NoError(t, err)
				golden(t, "session-"+method+"-"+name+".sql", c.session())
			})
		}
	})
}

// No secret is in any error, whatever part of a statement the server says back.
func TestStagedErrorsKeepSecrets(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, method, sends string) {
		to := c.target(method)
		to.Options["s3-keys"] = "true"
		l := openCloud(t, c, to, groups(method))
		for _, says := range []string{"syntax error", secretKey + " is wrong", "near '" + secretKey[5:20], sessionToken[3:]} {
			c.fail[sends] = says
			_, err := l.(loader.Committer).Commit(t.Context(), groupZero())
			require.ErrorContains(t, err, "the statement was ")
			shown := fmt.Sprintf("%v %+v %#v", err, err, err)
			for n := range len(secretKey) - 6 {
				assert.NotContains(t, shown, secretKey[n:n+6])
			}
			for n := range len(sessionToken) - 6 {
				assert.NotContains(t, shown, sessionToken[n:n+6])
			}
		}
	})
}

// Redshift's COPY says of a bad row only where to look; it is looked there.
func TestRedshiftTellsTheBadRow(t *testing.T) {
	for where, stage := range map[string]func(*cloud){
		"in the log":         func(*cloud) {},
		"the log is empty":   func(c *cloud) { c.serverless = true },
		"the log is refused": func(c *cloud) { c.fail["FROM stl_load_errors"] = "permission denied" },
	} {
		c := newCloud(t, redshiftVersion)
		l := openCloud(t, c, c.target("s3-copy"), groups("s3-copy"))
		c.fail["COPY"] = "Load into table 'people' failed. Check 'stl_load_errors' system table for details."
		stage(c)
		_, err := l.(loader.Committer).Commit(t.Context(), groupZero())
		require.ErrorContains(t, err, "s3://bucket/in/x.csv, line 7, column name: String length exceeds DDL length", where)
		assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassData}, postgres.New().Classify(err))
	}
}

// Without claims a group still goes in whole.
func TestStagedAtLeastOnce(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, method, sends string) {
		contract := groups(method)
		contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
		l := openCloud(t, c, c.target(method), contract)
		c.open = "0" // what the scripted server counts
		ack, err := l.(loader.Committer).Commit(t.Context(), groupZero())
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 20}, ack)
		assert.Empty(t, c.queries("terapush_claims"))
		assert.NotEmpty(t, c.queries(sends))
	})
}

func TestRedshiftReads(t *testing.T) {
	c := newCloud(t, redshiftVersion)
	l := openCloud(t, c, c.target("s3-copy"), groups("s3-copy"))
	assert.Equal(t, loader.Server{
		Product: "Redshift", Version: "1.0.117891", Endpoint: l.Server().Endpoint, Settings: map[string]string{},
	}, l.Server())
	answer := c.fake.answer
	c.fake.answer = func(f *fakeConn, sql string) bool {
		switch {
		case sql == `SELECT "id", "id", "name", "birthday", "t" FROM "public"."people" WHERE "id" IN (7)`:
			f.rows([]string{"7", "7", "é", "1969-12-31", "2026-03-29 02:30:00.000001"})
		case sql == `SELECT COALESCE(SUM(size), 0) * 1048576 FROM svv_table_info WHERE LOWER("schema") = 'public' AND LOWER("table") = 'people'`:
			f.rows([]string{"5242880"})
		case strings.HasPrefix(sql, "BEGIN; LOCK TABLE \"public\".\"terapush_claims\"; SELECT first_key FROM \"public\".\"terapush_claims\" WHERE run = 'run-2' AND batch IN (-1, "):
			f.tag("BEGIN")
			f.tag("LOCK TABLE")
			f.rows()
		case sql[:min(15, len(sql))] == "SELECT GREATEST":
			f.rows([]string{"70"})
		default:
			return answer(f, sql)
		}
		return true
	}
	found := 0
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{7}, func(number int64, values []any) error {
		found++
		assert.EqualValues(t, 7, number)
		at := time.Date(2026, 3, 29, 2, 30, 0, 1000, time.UTC).UnixMicro()
		assert.Equal(t, []any{int64(7), []byte("é"), int64(-1), at}, values)
		return nil
	}))
	assert.Equal(t, 1, found)
	size, err := l.(loader.Sizer).Stored(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 5<<20, size)
	first, err := l.(loader.Reserver).Reserve(t.Context(), "run-2", 100, math.MaxInt64)
	require.NoError(t, err)
	assert.EqualValues(t, 70, first)
}

func TestRedshiftTables(t *testing.T) {
	c := newCloud(t, redshiftVersion)
	l, err := postgres.New().Open(t.Context(), c.target("s3-copy"), deps())
	require.NoError(t, err)
	p := loader.Preparation{Run: "run-1", Schema: people(), Contract: groups("s3-copy"), Create: loader.CreateNever}
	refused := func(want string) {
		t.Helper()
		_, err := l.Prepare(t.Context(), p)
		assert.ErrorContains(t, err, want)
	}
	p.PrimaryKey = true
	refused("a primary key was asked for, and Redshift enforces none")
	p.PrimaryKey = false
	p.Schema.Columns[1].MaxBytes = 41 // the scripted table has varchar(40)
	refused("column name is character varying(40), want character varying(41)")
}

func TestStagedIsRefused(t *testing.T) {
	c := newCloud(t, auroraVersion)
	for text, change := range map[string]func(*loader.Target){
		"method s3-import needs an object store: --via s3://bucket/prefix": func(t *loader.Target) { t.Via = nil },
		"method copy sends rows to the server itself: leave --via out":     func(t *loader.Target) { t.Method = "copy" },
		"Redshift, which takes bulk rows through S3 only":                  func(t *loader.Target) { t.Scheme = "redshift" },
		"options iam-role and s3-keys exclude each other": func(t *loader.Target) {
			t.Method, t.Options = "s3-copy", map[string]string{"iam-role": "arn:x", "s3-keys": "1"}
		},
		"takes no other endpoint: leave server_endpoint out": func(t *loader.Target) { t.Via.Params.Set("server_endpoint", "http://x") },
		"Redshift would read the backslash as an escape":     func(t *loader.Target) { t.Via.Database = `a\b` },
		"method \"s3\" does not exist":                       func(t *loader.Target) { t.Method = "s3" },
	} {
		to := c.target("s3-import")
		change(&to)
		_, err := postgres.New().Check(to)
		assert.ErrorContains(t, err, text)
		_, err = postgres.New().Open(t.Context(), to, deps())
		assert.ErrorContains(t, err, text)
	}

	open := func(to loader.Target) error {
		_, err := postgres.New().Open(t.Context(), to, deps())
		return err
	}
	to := c.target("s3-copy")
	assert.ErrorContains(t, open(to), "not Redshift (write the target as postgres://…)")
	to.Scheme = "postgres"
	assert.ErrorContains(t, open(to), "method s3-copy is for Redshift, and this is PostgreSQL")
	c.noImport = true
	assert.ErrorContains(t, open(c.target("s3-import")), "(CREATE EXTENSION aws_s3 CASCADE, and attach a role with the feature s3Import to the instance or cluster)")
	c.version = "PostgreSQL 15.2-YB-2024.2.0.0-b145 on x86_64-pc-linux-gnu"
	assert.ErrorContains(t, open(c.target("s3-import")), "method s3-import is for Aurora and RDS for PostgreSQL, and this is YugabyteDB")
}

// allTypes has every type, a derived text among them.
func allTypes() rows.Schema {
	return rows.Schema{
		Dataset: "everything",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "code", Type: rows.Text, MaxBytes: 4, Derived: true, Plain: true},
			{Name: "note", Type: rows.Text, MaxBytes: 100},
			{Name: "blob", Type: rows.Bytes, MaxBytes: 100},
			{Name: "d", Type: rows.Date},
			{Name: "t", Type: rows.Timestamp, Derived: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

// Dates arrive and come back as they were sent, wherever the session believes to be.
func TestDates(t *testing.T) {
	const text = "0\tc000\té\t\\\\x78\t0001-01-01\t0001-01-01 00:00:00.000000\n" +
		"1\tc001\t\t\t1969-12-31\t1969-12-31 23:59:59.999999\n" +
		"2\tc002\tn\t\\\\x79\t9999-12-31\t9999-12-31 23:59:59.999999\n" +
		"3\tc003\tn\t\\\\x79\t2026-03-29\t2026-03-29 02:30:00.000001\n" // a time that Berlin does not have
	days := func(y, m, d int) int64 { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Unix() / 86400 }
	micros := func(y, m, d, h, min, s, us int) int64 {
		return time.Date(y, time.Month(m), d, h, min, s, us*1000, time.UTC).UnixMicro()
	}
	want := map[int64][]any{
		0: {int64(0), []byte("c000"), []byte("é"), []byte("x"), days(1, 1, 1), micros(1, 1, 1, 0, 0, 0, 0)},
		1: {int64(1), []byte("c001"), []byte(""), []byte(""), int64(-1), int64(-1)},
		2: {int64(2), []byte("c002"), []byte("n"), []byte("y"), days(9999, 12, 31), micros(9999, 12, 31, 23, 59, 59, 999999)},
		3: {int64(3), []byte("c003"), []byte("n"), []byte("y"), days(2026, 3, 29), micros(2026, 3, 29, 2, 30, 0, 1)},
	}
	to := target(t)
	to.Settings = []loader.Setting{{Name: "TimeZone", Value: "Europe/Berlin"}, {Name: "DateStyle", Value: "German"}}
	l := open(t, to)
	p := loader.Preparation{Run: "run-1", Schema: allTypes(), Contract: contract("copy", batch.PGText), Create: loader.CreateIfMissing}
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := &batch.Batch{ID: batch.ID{Run: "run-1"}, Format: batch.PGText, Rows: 4, Encoded: []byte(text)}
	b.Hold()
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)

	found := 0
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{0, 1, 2, 3, 4}, func(number int64, values []any) error {
		found++
		assert.Equal(t, want[number], values)
		return nil
	}))
	assert.Equal(t, 4, found)
	require.NoError(t, l.(loader.Counter).Count(t.Context(), loader.Grouping{KeyRange: loader.KeyRange{Last: 3}, Size: 4, Lengths: true}, func(b loader.Bucket) error {
		assert.Equal(t, []int64{16, 4, 3}, b.Lengths, "of the texts and bytes")
		return nil
	}))

	p.Create = loader.CreateNever
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err, "the table that was made fits")
	for _, wrong := range []string{"t TYPE timestamp(3)", "t TYPE timestamptz", "d TYPE timestamp"} {
		sql(t, "ALTER TABLE "+to.Table+" ALTER "+wrong)
		_, err = l.Prepare(t.Context(), p)
		assert.ErrorContains(t, err, "cannot take the rows of dataset everything: column "+wrong[:1]+" is timestamp", wrong)
		sql(t, "ALTER TABLE "+to.Table+" ALTER t TYPE timestamp(6), ALTER d TYPE date")
		_, err = l.Prepare(t.Context(), p)
		assert.NoError(t, err)
	}
}
