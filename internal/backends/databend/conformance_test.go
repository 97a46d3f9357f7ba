package databend

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	standin "github.com/terapush/terapush/internal/standin/databend"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
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

// conformance is one way into a table. It comes with exactly once and faults, or for its rows alone: what breaks and where,
// and what a label prevents, is a matter of the method and not of the format.
type conformance struct {
	method string
	format batch.Format
	data   string
	faults bool
}

// Faults are for what the engine itself has to do then; labels, queries and their ends are the front end's, and the
// stand-in's. The other rows are every statement with every format, and the types of every dataset in each. An insert of CSV
// through the node is in TestArithmetic.
func TestConformance(t *testing.T) {
	for _, c := range []conformance{
		{streamingLoad, batch.CSV, "lineitem", true}, // a part of a batch is deleted, by a number of two columns
		{insert, batch.CSV, "httplogs", true},        // URLs that the engine signs, and rows found by a timestamp
		{stageLoad, batch.CSV, "people", true},       // COPY knows files by their names, and fails as a whole

		{streamingLoad, batch.NDJSON, "httplogs", false},
		{streamingLoad, batch.Parquet, "httplogs", false},
		{insertNoPresign, batch.NDJSON, "lineitem", false},
		{insertNoPresign, batch.Parquet, "people", false},
		{stageLoad, batch.NDJSON, "documents", false},
		{stageLoad, batch.Parquet, "lineitem", false},
		{stageLoad, batch.CSVGzip, "lineitem", false},
		{stageLoad, batch.NDJSONZstd, "people", false},
	} {
		t.Run(c.method+" "+string(c.format)+" "+c.data, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for the server
			target := realServer(t)
			if c.method == insert {
				target.Options = map[string]string{optionStage: objectStage(t, target)}
			}
			c.holds(t, patientDriver{impatient()}, target)
		})
	}
	t.Run("through a bucket", func(t *testing.T) { // which the engine reads with the keys that it is given
		t.Parallel()
		target := realServer(t)
		via := urlOf(t, "TERAPUSH_TEST_S3")
		via.Database = "databend-" + strings.ToLower(rand.Text())
		target.Via = &via
		conformance{stageLoad, batch.CSV, "people", false}.holds(t, impatient(), target)
	})
}

// The proof's statements on a real server, which has no sums beyond 64 bits.
func TestArithmetic(t *testing.T) {
	target := realServer(t)
	target.Method, target.Table = insertNoPresign, "t_"+strings.ToLower(rand.Text())
	table := backendtest.Tables{
		Driver: New(), Deps: backendtest.Deps(), Target: target, Preparation: preparation(insertNoPresign), Name: target.Table,
		Exec: func(statement string) { statementOn(t, target, statement) },
	}
	t.Cleanup(func() { table.Exec("DROP TABLE IF EXISTS " + table.Name) })
	table.Arithmetic(t)
}

// patientDriver is the driver for the engine's own stage, where half an upload can appear late, over the whole one that was
// sent after it: the front end notices the cut in its own time, and the suite sends again at once, where a push waits first.
// The file is measured then, and a half one sent again (serverStage.store).
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

// The stand-in is always there.
func TestConformanceOfTheStandIn(t *testing.T) {
	for _, c := range []conformance{
		{streamingLoad, batch.CSV, "documents", true},
		{streamingLoad, batch.NDJSON, "lineitem", true},
		{insertNoPresign, batch.Parquet, "people", true},
		{insert, batch.CSV, "httplogs", true},
		{stageLoad, batch.CSV, "people", true},
	} {
		t.Run(c.method+" "+string(c.format)+" "+c.data, func(t *testing.T) {
			t.Parallel()
			c.holds(t, impatient(), standInTarget(t, standin.Options{Presign: true}))
		})
	}
}

func standInTarget(t *testing.T, o standin.Options) loader.Target {
	target, err := loader.ParseTarget("databend://root@" + startStandIn(t, o).Addr() + "/default?sslmode=disable")
	require.NoError(t, err)
	return target
}

// impatient is the driver that waits a second, and not twenty, for a query that was killed.
func impatient() Driver { return Driver{grace: time.Second} }

func (c conformance) holds(t *testing.T, driver loader.Driver, target loader.Target) {
	o := dataset.Options{Seed: 1}
	if c.data == "documents" {
		o.PayloadBytes, o.PayloadKind = 512, dataset.Text
	}
	d := backendtest.Dataset(t, c.data, o)
	contract := contractOf(c.method)
	contract.Format, contract.BatchRows = c.format, 500
	if d.Schema().MaxRowBytes() < 300 { // short rows: a fault has to hit the middle of a body
		contract.BatchRows = 2000
	}
	target.Method = c.method
	h := loadertest.Harness{
		Driver: driver, Deps: backendtest.Deps(), Contract: contract, Overlap: true,
		Target: func(t *testing.T) loader.Target {
			mine := target
			mine.Table = "t_" + strings.ToLower(rand.Text())
			t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+mine.Table) })
			return mine
		},
	}
	if c.faults {
		h.Commit = map[string]string{streamingLoad: "X-Databend-Sql: INSERT", stageLoad: `"sql":"COPY INTO`}[c.method]
		if h.Commit == "" {
			h.Commit = `"sql":"INSERT`
		}
	} else {
		h.Driver, h.Deps = faultless{driver}, loader.Deps{} // the suite puts its faults in front of what it is given
		h.Contract.Delivery, h.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	}
	loadertest.Run(t, backendtest.Harness(d, h))
}

// faultless is a driver whose connections do not break.
type faultless struct{ loader.Driver }

func (d faultless) Open(ctx context.Context, t loader.Target, _ loader.Deps) (loader.Loader, error) {
	return d.Driver.Open(ctx, t, backendtest.Deps())
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
	nodes, err := c.nodes(t.Context(), target)
	require.NoError(t, err)
	_, err = nodes[0].run(context.WithoutCancel(t.Context()), statement{sql: sql}, nil)
	require.NoError(t, err)
}
