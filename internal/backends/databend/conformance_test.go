package databend

import (
	"context"
	"crypto/rand"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	standin "github.com/terapush/terapush/internal/fake/databend"
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
	text := os.Getenv(variable)
	if text == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set, and CI must test every server", variable)
	}
	if text == "" {
		t.Skipf("%s is not set: run scripts/servers up and eval \"$(scripts/servers env)\"", variable)
	}
	target, err := loader.ParseTarget(text)
	require.NoError(t, err)
	return target
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		format batch.Format
		data   string
		commit string // "" for no faults: what breaks, and where, is a matter of the method and not of the format
	}{
		"streaming-load, csv":        {streamingLoad, batch.CSV, "documents", ""},
		"streaming-load, people":     {streamingLoad, batch.CSV, "people", "X-Databend-Sql: INSERT"},
		"streaming-load, ndjson":     {streamingLoad, batch.NDJSON, "people", ""},
		"streaming-load, parquet":    {streamingLoad, batch.Parquet, "people", ""},
		"insert-no-presign, csv":     {insertNoPresign, batch.CSV, "people", `"sql":"INSERT`},
		"insert-no-presign, ndjson":  {insertNoPresign, batch.NDJSON, "documents", ""},
		"insert-no-presign, parquet": {insertNoPresign, batch.Parquet, "people", ""},
		"insert, csv":                {insert, batch.CSV, "people", `"sql":"INSERT`},
		"stage-load, csv":            {stageLoad, batch.CSV, "people", `"sql":"COPY INTO`},
		"stage-load, ndjson":         {stageLoad, batch.NDJSON, "people", ""},
		"stage-load, parquet":        {stageLoad, batch.Parquet, "people", ""},

		// Decimals, a number of two terms, and a timestamp as key, in every format.
		"streaming-load, lineitem":          {streamingLoad, batch.CSV, "lineitem", "X-Databend-Sql: INSERT"},
		"insert-no-presign, lineitem":       {insertNoPresign, batch.NDJSON, "lineitem", ""},
		"stage-load, lineitem":              {stageLoad, batch.Parquet, "lineitem", ""},
		"streaming-load, httplogs":          {streamingLoad, batch.Parquet, "httplogs", ""},
		"streaming-load, httplogs, ndjson":  {streamingLoad, batch.NDJSON, "httplogs", ""},
		"insert-no-presign, httplogs":       {insertNoPresign, batch.CSV, "httplogs", `"sql":"INSERT`},
		"insert-no-presign, pairs, parquet": {insertNoPresign, batch.Parquet, "pairs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting for the server
			target := realServer(t)
			target.Method = c.method
			if c.method == insert {
				target.Options = map[string]string{optionStage: objectStage(t, target)}
			}
			conforms(t, patientDriver{impatient()}, target, c.data, c.format, c.commit)
		})
	}
}

func TestConformanceThroughABucket(t *testing.T) {
	t.Parallel()
	target := realServer(t)
	target.Method = stageLoad
	via := urlOf(t, "TERAPUSH_TEST_S3")
	via.Database = "databend-" + strings.ToLower(rand.Text())
	target.Via = &via
	conforms(t, patientDriver{impatient()}, target, "people", batch.CSV, `"sql":"COPY INTO`)
}

// patientDriver is the driver for real servers behind which half an upload can appear late, over the whole one that was sent
// after it: versitygw 1.8.0 publishes what it has seen of a body that was cut (Amazon S3 never does), and so does the
// front end with a form in a stage. The server notices the cut in its own time; the suite sends again at once, where the
// engine waits first. A stage's file is measured then, and a half one sent again (ownStage.store); in a bucket it would
// be COPY's count of the rows that stops the run.
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

// The stand-in is always there, and shows what no real server can be made to do. It reads no Parquet.
func TestConformanceOfTheStandIn(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		format batch.Format
		data   string
		commit string // "" for no faults: what breaks, and where, is a matter of the method and not of the format
	}{
		"streaming-load, csv":       {streamingLoad, batch.CSV, "documents", "X-Databend-Sql: INSERT"},
		"streaming-load, ndjson":    {streamingLoad, batch.NDJSON, "people", ""},
		"insert-no-presign, people": {insertNoPresign, batch.CSV, "people", `"sql":"INSERT`},
		"insert, people":            {insert, batch.CSV, "people", `"sql":"INSERT`},
		"stage-load, people":        {stageLoad, batch.CSV, "people", `"sql":"COPY INTO`},
		"streaming-load, lineitem":  {streamingLoad, batch.NDJSON, "lineitem", "X-Databend-Sql: INSERT"},
		"insert, httplogs":          {insert, batch.CSV, "httplogs", `"sql":"INSERT`},
		"stage-load, pairs":         {stageLoad, batch.NDJSON, "pairs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := standIn(t, standin.Options{Presign: true})
			target.Method = c.method
			conforms(t, impatient(), target, c.data, c.format, c.commit)
		})
	}
}

func TestConformanceOfTheStandInThroughABucket(t *testing.T) {
	store := s3mem.New()
	require.NoError(t, store.CreateBucket("bucket"))
	server := httptest.NewServer(gofakes3.New(store, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2secret")
	target := standIn(t, standin.Options{Object: func(url string) ([]byte, error) {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(url, "s3://"), "/")
		object, err := store.GetObject(bucket, key, nil)
		if err != nil {
			return nil, err
		}
		defer func() { _ = object.Contents.Close() }()
		return io.ReadAll(object.Contents)
	}})
	target.Method = stageLoad
	via, err := loader.ParseTarget("s3://bucket/pre/fix?path_style=true&region=us-east-1&endpoint=" + server.URL)
	require.NoError(t, err)
	target.Via = &via
	conforms(t, impatient(), target, "people", batch.CSV, `"sql":"COPY INTO`)
}

func standIn(t *testing.T, o standin.Options) loader.Target {
	f := standin.New(o)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(f.Close)
	target, err := loader.ParseTarget("databend://root@" + strings.TrimPrefix(server.URL, "http://") + "/default?sslmode=disable")
	require.NoError(t, err)
	return target
}

// impatient is the driver that waits a second, and not twenty, for a query that was killed.
func impatient() Driver { return Driver{grace: time.Second} }

func conforms(t *testing.T, driver loader.Driver, target loader.Target, data string, format batch.Format, commit string) {
	d, err := dataset.New(data, dataset.Options{Seed: 1, PayloadBytes: payload(data), PayloadKind: kindOf(data)})
	require.NoError(t, err)
	contract := contractOf(target.Method)
	contract.Format, contract.BatchRows = format, 500
	if d.Schema().MaxRowBytes() < 300 { // short rows: a fault has to hit the middle of a body
		contract.BatchRows = 2000
	}
	deps := testDeps()
	if commit == "" {
		driver, deps = faultless{driver}, loader.Deps{} // the suite puts its faults in front of what it is given
	}
	loadertest.Run(t, backendtest.Harness(d, loadertest.Harness{
		Driver: driver, Deps: deps, Contract: contract, Commit: commit, Overlap: true,
		Target: func(t *testing.T) loader.Target {
			mine := target
			mine.Table = "t_" + strings.ToLower(rand.Text())
			t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+mine.Table) })
			return mine
		},
	}))
}

// faultless is a driver whose connections do not break.
type faultless struct{ loader.Driver }

func (d faultless) Open(ctx context.Context, t loader.Target, _ loader.Deps) (loader.Loader, error) {
	return d.Driver.Open(ctx, t, testDeps())
}

func payload(data string) int {
	if data == "documents" {
		return 512
	}
	return 0
}

func kindOf(data string) dataset.Kind {
	if data == "documents" {
		return dataset.Text
	}
	return ""
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
	c := &clients{deps: testDeps(), mode: loader.TLSOff}
	defer c.close()
	nodes, err := c.nodes(t.Context(), target)
	require.NoError(t, err)
	_, err = nodes[0].run(context.WithoutCancel(t.Context()), statement{sql: sql}, nil)
	require.NoError(t, err)
}
