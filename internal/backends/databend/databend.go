// Package databend loads Databend over its HTTP interface: by streaming load, by INSERT of a staged file (a stage
// attachment), or by COPY INTO of many staged files at once.
//
// Five facts shape it, read in the server's source (databend 43b24ec0, August 2026) and tried on the engine (1.2.895):
//
//   - A deduplicate label is checked before a statement runs and is not a lock: two statements with one label that
//     overlap both commit. So every statement has a query id of run, batch and attempt. Before a batch is sent again,
//     the earlier query is ended or awaited and its rows are counted (resolve.go). The label is the second line: it
//     stops a request that was held up on its way and arrives after all of that.
//   - A statement whose label is taken succeeds with 0 rows, as does an INSERT of a file that does not exist. So 0 rows
//     are never believed; the rows are counted.
//   - A streaming load whose connection breaks commits the rows that have arrived. So a session that gives up kills the
//     query before it closes the connection (streaming.go), and a batch that is there in part is reported as such.
//   - A COPY skips every file whose name it has loaded into the table within a day, whatever its content and stage. So
//     names hold the run's id, and the rows of every file are compared.
//   - Errors repeat the SQL. So errors of statements with a secret are redacted (bucket.go).
//
// The official driver, databend-go, is not used (v0.9.1): it cannot send a label, dials by itself, ignores its own TLS
// configuration, turns the server's errors into text, and prints to standard output when a query is cancelled. It is
// the client that end-to-end tests look at the server with.
package databend

import (
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	methodStreamingLoad   = "streaming-load"
	methodInsert          = "insert"
	methodInsertNoPresign = "insert-no-presign"
	methodStageLoad       = "stage-load"
)

// Driver is Databend's loader.Driver.
type Driver struct {
	grace time.Duration // for tests; 0 is killGrace
}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name implements loader.Driver.
func (Driver) Name() string { return "databend" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string { return []string{"databend"} }

// Methods implements loader.Driver. The first one is the default.
func (Driver) Methods() []loader.Method {
	stage := loader.OptionsOf(options{})
	method := func(name, help string, options []loader.Option) loader.Method {
		return loader.Method{Name: name, Help: help, Caps: capsOf(name), Options: options}
	}
	return []loader.Method{
		method(methodStreamingLoad, "the rows in the body of one request; needs a server newer than 1.2.781", nil),
		method(methodInsert, "a file put to a presigned URL, then INSERT; needs an object store behind the stage", stage),
		method(methodInsertNoPresign, "a file uploaded through the node, then INSERT; works on every server", stage),
		method(methodStageLoad,
			"files put into an object store (--staging s3://…) or a stage of the server, then COPY INTO of many at once", stage),
	}
}

// labelWindow is how long the server remembers a label, and by default (load_file_metadata_expire_hours) the names of
// the files that COPY has loaded.
const labelWindow = 24 * time.Hour

// maxFiles is how many files one COPY takes (COPY_MAX_FILES_PER_COMMIT).
const maxFiles = 15_000

// capsOf returns a method's caps before a server was asked.
//
// The batch sizes follow from others' measurements (766-byte rows, one connection): a streaming load costs 0.27 s and
// 6.5 µs a row, an insert 0.5 s and 15 to 19 µs a row, an object put 0.02 s and 2 µs a row. At 64 MiB the fixed part
// is a third of a streaming load's time and a fifth of an insert's, which eight loads at a time hide; larger batches
// would cost more memory than they save. The size of an object is chosen for COPY, which reads files in parallel. A
// COPY costs about a second whatever it loads, hence groups of a gigabyte.
func capsOf(method string) loader.Caps {
	c := loader.Caps{
		Formats:           []batch.Format{batch.CSV, batch.NDJSON, batch.Parquet},
		Dedup:             loader.DedupKey,
		Window:            labelWindow,
		Atomic:            true,
		DefaultBatchBytes: 64 << 20,
		Lacks:             types.Lacks(),
		Refuses:           []loader.Refusal{arraysInCSV, nullVectors},
	}
	switch method {
	case methodInsertNoPresign: // users' files go in by COPY, which remembers names: see records.go
		c.Files, c.PlainFiles = []batch.Format{batch.CSV, batch.NDJSON, batch.Parquet}, true
	case methodStageLoad:
		c.Staged, c.Commits, c.DefaultGroupBytes = true, 2, 1<<30
		c.Refuses = []loader.Refusal{arraysInCSV} // see statements.fromParquet
		c.DefaultBatchBytes, c.MaxGroupBatches = 32<<20, maxFiles
		c.Formats = append(c.Formats, batch.CSVGzip, batch.CSVZstd, batch.NDJSONGzip, batch.NDJSONZstd)
	}
	return c
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	p, err := planOf(t)
	return p.method.Caps, err
}
