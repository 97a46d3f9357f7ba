package databend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

// realServer is the engine behind its HTTP front end. A user's stage has no presigned URLs there, since its storage is
// a folder: for them a stage in an object store is made.
func realServer(t *testing.T) loader.Target {
	t.Helper()
	return urlOf(t, "TERAPUSH_TEST_DATABEND")
}

func urlOf(t *testing.T, variable string) loader.Target {
	t.Helper()
	target, err := loader.ParseTarget(backendtest.Server(t, variable))
	require.NoError(t, err)
	return target
}

// way is one way into a table.
type way struct {
	method string
	format batch.Format
	data   string
}

func (w way) String() string { return w.method + " " + string(w.format) + " " + w.data }

// What breaks, and where, is a matter of the method and not of the format. Labels, queries and their ends are the front
// end's, all else the engine's.
func TestConformance(t *testing.T) {
	for _, w := range []way{
		{methodStreamingLoad, batch.CSV, "lineitem"}, // a part of a batch is deleted, by a number of two columns
		{methodInsert, batch.CSV, "httplogs"},        // URLs that the engine signs, and rows found by a timestamp
		{methodInsertNoPresign, batch.Parquet, "people"},
		{methodStageLoad, batch.CSV, "people"}, // COPY knows files by their names, and fails as a whole
	} {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for the server
			target := realServer(t)
			if w.method == methodInsert {
				target.Options = map[string]string{"stage": objectStage(t, target)}
			}
			w.holds(t, patientDriver{impatient()}, target)
		})
	}
}

// The engine reads every format by every statement, and gives the values of every dataset back. An insert of CSV is in
// TestArithmetic.
func TestFormats(t *testing.T) {
	for _, w := range []way{
		{methodStreamingLoad, batch.NDJSON, "httplogs"},
		{methodStreamingLoad, batch.Parquet, "httplogs"},
		{methodInsertNoPresign, batch.NDJSON, "lineitem"},
		{methodInsertNoPresign, batch.Parquet, "people"},
		{methodStageLoad, batch.NDJSON, "documents"},
		{methodStageLoad, batch.Parquet, "lineitem"},
		{methodStageLoad, batch.CSVGzip, "lineitem"},
		{methodStageLoad, batch.NDJSONZstd, "people"},
	} {
		t.Run(w.String(), func(t *testing.T) { w.arrives(t, realServer(t)) })
	}
	t.Run("through a bucket", func(t *testing.T) { // which the engine reads with the keys that it is given
		target, via := realServer(t), urlOf(t, "TERAPUSH_TEST_S3")
		via.Database = "databend-" + strings.ToLower(rand.Text())
		target.Via = &via
		way{methodStageLoad, batch.CSV, "people"}.arrives(t, target)
	})
}

// Every type of the engine, through each method and format.
func TestTypes(t *testing.T) {
	for _, w := range []way{
		{methodStreamingLoad, batch.CSV, ""}, {methodStreamingLoad, batch.NDJSON, ""}, {methodStreamingLoad, batch.Parquet, ""},
		{methodInsertNoPresign, batch.CSV, ""}, {methodInsertNoPresign, batch.NDJSON, ""}, {methodInsertNoPresign, batch.Parquet, ""},
		{methodStageLoad, batch.CSV, ""}, {methodStageLoad, batch.NDJSON, ""}, {methodStageLoad, batch.Parquet, ""}, {methodStageLoad, batch.CSVZstd, ""},
	} {
		t.Run(w.String(), func(t *testing.T) {
			target, p := realServer(t), preparation(w.method)
			target.Method, target.Table = w.method, "t_"+strings.ToLower(rand.Text())
			p.Run, p.Contract.Format = target.Table, w.format
			lacks := types.Lacks()
			for _, r := range capsOf(w.method).Refuses {
				if plain, _ := w.format.Compression(); r.Format == plain {
					lacks = append(lacks, r.Type)
				}
			}
			if w.format != batch.Parquet {
				lacks = append(lacks, rows.Bytes)
			}
			backendtest.Tables{
				Driver: New(), Deps: backendtest.Deps(), Target: target, Preparation: p, Name: target.Table,
				Exec: func(statement string) { statementOn(t, target, statement) },
			}.Types(t, lacks)
		})
	}
}

// A table of the engine is read as its columns are, and another one is made like it.
func TestDescribe(t *testing.T) {
	target := realServer(t)
	target.Method, target.Table = methodInsertNoPresign, "t_"+strings.ToLower(rand.Text())
	statementOn(t, target, "CREATE TABLE "+target.Table+` (id BIGINT UNSIGNED NOT NULL, n INT, s SMALLINT UNSIGNED, y TINYINT, d DECIMAL(38, 10),
		e DECIMAL(9, 2), v VARCHAR NOT NULL, j VARIANT, t TIMESTAMP, day DATE DEFAULT '2026-01-31', b BINARY, f FLOAT, g DOUBLE, o BOOLEAN,
		a ARRAY(INT), p ARRAY(DECIMAL(9, 2)), w ARRAY(ARRAY(INT)))`)
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+target.Table) })
	d, err := loader.FeaturesOf(openTarget(t, target)).Describer.Describe(t.Context())
	require.NoError(t, err)
	got := map[string]string{}
	for _, c := range d.Columns {
		require.Equal(t, map[string]string{"day": "'2026-01-31'"}[c.Name], c.Default, c.Name)
		if c.Values != nil {
			got[c.Name] = dataset.TypeName(*c.Values)
		}
		require.Equal(t, c.Name != "id" && c.Name != "v", c.Nullable, c.Name)
	}
	require.Equal(t, map[string]string{
		"id": "bigint unsigned", "n": "int", "s": "smallint unsigned", "y": "smallint", "d": "decimal(38,10)", "e": "decimal(9,2)",
		"v": "text(0)", "j": "json", "t": "timestamp", "day": "date", "b": "bytes(0)", "f": "real", "g": "double", "o": "boolean",
		"a": "int[]", "p": "decimal(9,2)[]",
	}, got)

	like := loader.TableName{Schema: d.Schema, Name: d.Table}
	target.Table += "_like"
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+target.Table) })
	p, l := preparation(methodInsertNoPresign), openTarget(t, target)
	p.Schema = rows.Schema{
		Dataset: "d", Number: []rows.Term{{Times: 1}},
		Columns: []rows.Column{{Name: "id", Type: rows.Uint64, Derived: true}, {Name: "v", Type: rows.Text, MaxBytes: 9}},
	}
	p.Like = like
	made, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	require.True(t, made.Created)
	d, err = loader.FeaturesOf(l).Describer.Describe(t.Context())
	require.NoError(t, err)
	require.Len(t, d.Columns, 17)
}

// arrives loads a batch, and reads all of its rows back.
func (w way) arrives(t *testing.T, target loader.Target) {
	target.Method, target.Table = w.method, "t_"+strings.ToLower(rand.Text())
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+target.Table) })
	const rows = 50
	d, db, p := w.dataset(t), openTarget(t, target), preparation(w.method)
	p.Run, p.Schema, p.Contract.Format = target.Table, d.Schema(), w.format
	_, err := db.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := backendtest.Batch(t, d, w.format, batch.ID{Run: p.Run}, 0, rows)
	b.Hold()
	ack, err := backendtest.Session(t, db, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Stored: p.Contract.Staged(), Rows: rows}, ack)
	if p.Contract.Staged() {
		group := loader.Group{Ref: loader.RefOf(b), Members: []loader.Ref{loader.RefOf(b)}}
		ack, err = db.Commit(t.Context(), group)
		require.NoError(t, err)
		require.Equal(t, loader.Ack{Rows: rows}, ack)
		require.NoError(t, db.Discard(t.Context(), group))
		require.NoError(t, db.Objects(t.Context(), p.Run, func(name string, _, _ int64) error { return errors.New(name + " is left") }))
	}
	found := 0
	var numbers []int64
	for n := range int64(rows) {
		numbers = append(numbers, n)
	}
	require.NoError(t, db.Fetch(t.Context(), numbers, func(number int64, values []any) error {
		found++
		require.Equal(t, backendtest.Row(d, number), values)
		return nil
	}))
	require.Equal(t, rows, found)
}

func (w way) dataset(t *testing.T) dataset.Dataset {
	o := dataset.Options{Seed: 1}
	if w.data == "documents" {
		o.PayloadBytes, o.PayloadKind = 512, dataset.Text
	}
	return backendtest.Dataset(t, w.data, o)
}

// The proof's statements on a real server, which has no sums beyond 64 bits.
func TestArithmetic(t *testing.T) {
	target := realServer(t)
	target.Method, target.Table = methodInsertNoPresign, "t_"+strings.ToLower(rand.Text())
	table := backendtest.Tables{
		Driver: New(), Deps: backendtest.Deps(), Target: target, Preparation: preparation(methodInsertNoPresign), Name: target.Table,
		Exec: func(statement string) { statementOn(t, target, statement) },
	}
	t.Cleanup(func() { table.Exec("DROP TABLE IF EXISTS " + table.Name) })
	table.Arithmetic(t)
}

// patientDriver is the driver for the engine's own stage, where half an upload can appear late, over the whole one
// that was sent after it: the front end notices the cut in its own time, and the suite sends again at once, where a
// push waits first. The file is measured then, and a half one sent again (serverStage.store).
type patientDriver struct{ Driver }

func (d patientDriver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	l, err := d.Driver.Open(ctx, t, deps)
	if err != nil {
		return nil, err
	}
	return patientLoader{l.(*opened)}, nil
}

type patientLoader struct{ *opened }

func (l patientLoader) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.opened.Session(ctx, c)
	if err != nil || !c.Staged() {
		return s, err
	}
	return patientSession{s, l.opened}, nil
}

type patientSession struct {
	loader.Session
	db *opened
}

// Load waits before a second attempt until something of the first lies there, or the server has had the time for it.
func (s patientSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	there := b.Attempt <= 1
	for began := time.Now(); !there && time.Since(began) < time.Second; time.Sleep(20 * time.Millisecond) {
		err := s.db.Objects(ctx, b.ID.Run, func(_ string, number, _ int64) error {
			there = there || number == b.ID.Number
			return nil
		})
		if err != nil {
			return loader.Ack{}, err
		}
	}
	return s.Session.Load(ctx, b)
}

// impatient is the driver that waits a second, and not twenty, for a query that was killed.
func impatient() Driver { return Driver{grace: time.Second} }

func (w way) holds(t *testing.T, driver loader.Driver, target loader.Target) {
	d, contract := w.dataset(t), contractOf(w.method)
	contract.Format, contract.BatchRows = w.format, 500
	if d.Schema().MaxRowBytes() < 300 { // short rows: a fault has to hit the middle of a body
		contract.BatchRows = 2000
	}
	target.Method = w.method
	commit := map[string]string{methodStreamingLoad: "X-Databend-Sql: INSERT", methodStageLoad: `"sql":"COPY INTO`}[w.method]
	loadertest.Run(t, backendtest.Harness(d, loadertest.Harness{
		Driver: driver, Deps: backendtest.Deps(), Contract: contract, Overlap: true, Commit: cmp.Or(commit, `"sql":"INSERT`),
		Target: func(t *testing.T) loader.Target {
			mine := target
			mine.Table = "t_" + strings.ToLower(rand.Text())
			t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+mine.Table) })
			return mine
		},
	}))
}

// objectStage makes a stage in the object store, which has presigned URLs.
func objectStage(t *testing.T, target loader.Target) string {
	via := urlOf(t, "TERAPUSH_TEST_S3")
	name := "presigned_" + strings.ToLower(rand.Text())
	statementOn(t, target, "CREATE STAGE "+name+" URL = "+literal("s3://"+via.Hosts[0]+"/"+name+"/")+
		" CONNECTION = (endpoint_url = "+literal(via.Params.Get("endpoint"))+", region = 'us-east-1', access_key_id = "+
		literal(os.Getenv("AWS_ACCESS_KEY_ID"))+", secret_access_key = "+literal(os.Getenv("AWS_SECRET_ACCESS_KEY"))+")")
	t.Cleanup(func() { statementOn(t, target, "DROP STAGE IF EXISTS "+name) })
	return name
}

// statementOn runs a statement beside what is tested. In a cleanup the test's own context has ended.
func statementOn(t *testing.T, target loader.Target, sql string) {
	t.Helper()
	c := &clients{deps: backendtest.Deps(), mode: loader.TLSOff}
	defer c.close()
	nodes, err := c.endpoints(t.Context(), target)
	require.NoError(t, err)
	_, err = nodes[0].run(context.WithoutCancel(t.Context()), statement{sql: sql}, nil)
	require.NoError(t, err)
}
