// Package doris loads Apache Doris: by Stream Load over HTTP, by multi-row INSERT over the MySQL protocol, or by an
// INSERT … SELECT out of an object store.
//
// From Doris' sources and documentation (no Doris server was available):
//
//   - A frontend (FE) takes no rows. It redirects a load to a backend (BE), and what it reads of the body is lost. So its
//     request has an empty body; only the backend gets the rows, once, with their length.
//   - A redirect has the password in its Location, and Go drops the Authorization header on the way to another host. So
//     redirects are followed here, with our own credentials, and no Location is ever shown.
//   - A failed load is HTTP 200, in one of four shapes. So an answer is success only if it says so, with the label and
//     the number of rows that were sent.
//   - A label can be used once: it is taken while its load is under way, and for twelve hours after. It names run and
//     batch, so a batch is applied once, and the server can be asked about a batch whose answer was lost.
//   - Group commit drops the label, so it is at least once.
package doris

import (
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// The methods.
const (
	methodStreamLoad = "stream-load"
	methodInsert     = "insert"
	methodS3Load     = "s3-load"
)

// labelLife is how long a frontend remembers the label of an applied load: streaming_label_keep_max_second. The three
// days of label_keep_max_second are for asynchronous LOAD jobs; stream loads and INSERTs are "short" transactions
// (TransactionState.isShortTxn).
const labelLife = 12 * time.Hour

// maxStreamBytes is the default of the backends' streaming_load_max_mb.
const maxStreamBytes = 10 << 30

// maxInsertBytes leaves room for the statement in the smallest default of max_allowed_packet: 16 MiB.
const maxInsertBytes = 16<<20 - packetRoom

// Driver is Doris' loader.Driver.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name implements loader.Driver.
func (Driver) Name() string { return "doris" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string { return []string{"doris"} }

// Methods lists the methods, the default first.
func (Driver) Methods() []loader.Method {
	// A STRING changes what is not UTF-8, and there is no other type for raw bytes.
	caps := loader.Caps{Lacks: types.Lacks(), Dedup: loader.DedupKey, Window: labelLife, Atomic: true}
	// Every load is a new version of every tablet it touches, and too many versions stop all loads (-235). From 10 MB on
	// group commit is no faster (Doris documentation, "Group Commit", performance tests).
	stream, staged, inserts := caps, caps, caps
	stream.Formats = []batch.Format{batch.DorisCSV, batch.NDJSON, batch.Parquet, batch.DorisCSVGzip}
	stream.Refuses = []loader.Refusal{{
		Format: batch.NDJSON, Type: rows.JSON,
		Why: "into a text column goes x of the document \"x\", 1 of true and NULL of null: use another format",
	}}
	stream.MaxBytes, stream.DefaultBatchBytes = maxStreamBytes, 64<<20
	inserts.Formats = []batch.Format{batch.Values}
	inserts.MaxBytes, inserts.DefaultBatchBytes = maxInsertBytes, 1<<20
	staged.Formats = []batch.Format{batch.DorisCSV, batch.Parquet}
	staged.Staged, staged.Commits, staged.DefaultBatchBytes, staged.DefaultGroupBytes = true, 2, 64<<20, 2<<30
	return []loader.Method{
		{
			Name: methodStreamLoad, Caps: stream, Options: loader.OptionsOf(tableOptions{}, groupOptions{}, routeOptions{}),
			Help: "Stream Load over HTTP: a frontend names a backend, which takes the rows",
		},
		{
			Name: methodInsert, Caps: inserts, Options: loader.OptionsOf(tableOptions{}, groupOptions{}, insertOptions{}),
			Help: "multi-row INSERT statements over the MySQL protocol: for small batches and comparison",
		},
		{
			Name: methodS3Load, Caps: staged, Options: loader.OptionsOf(tableOptions{}),
			Help: "objects on --staging s3://…, loaded by INSERT … SELECT FROM S3(…)",
		},
	}
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	method, o, err := planOf(t)
	return o.caps(method.Caps), err
}
