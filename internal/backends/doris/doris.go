// Package doris loads Apache Doris: by Stream Load over HTTP, by multi-row INSERT over the MySQL protocol, or by an
// INSERT … SELECT out of an object store.
//
// What shapes it (Doris' sources and documentation; no Doris server could be had to measure on):
//
//   - A frontend (FE) takes no rows. It answers a load with a redirect to a backend (BE), and whatever it reads of the
//     body is lost. So it is asked with an empty body, and the body goes to the backend only, once, with its length.
//   - A redirect carries the password in its Location, and Go drops the Authorization header on the way to another
//     host. So redirects are followed by hand, with our own credentials, and no Location is ever shown.
//   - A load that failed is HTTP 200, and there are four shapes of failure. So an answer counts as success only when it
//     says so in so many words, with the label and the number of rows that were sent.
//   - A label is taken once: while a load is under way, and for twelve hours after it is in. So the label, which names
//     run and batch, is what makes a batch go in once, and what is asked about when an answer is lost.
//   - Group commit gives up the label. So it is at least once, and says so.
package doris

import (
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The methods.
const (
	streamLoad = "stream-load"
	insert     = "insert"
	s3Load     = "s3-load"
)

// labelLife is how long a frontend remembers the label of a load that is in: streaming_label_keep_max_second. The three
// days of label_keep_max_second are for asynchronous LOAD jobs; stream loads and every kind of INSERT are "short"
// transactions (TransactionState.isShortTxn).
const labelLife = 12 * time.Hour

// maxStreamBytes is the default of the backends' streaming_load_max_mb.
const maxStreamBytes = 10 << 30

// maxInsertBytes leaves room for the head of the statement in the smallest max_allowed_packet that Doris has had as a
// default: 16 MiB.
const maxInsertBytes = 16<<20 - 64<<10

// Driver is Doris' loader.Driver.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name is the back-end's name.
func (Driver) Name() string { return "doris" }

// Schemes are the URL schemes.
func (Driver) Schemes() []string { return []string{"doris"} }

// Methods lists Stream Load, the default, INSERT, and the load out of an object store.
func (Driver) Methods() []loader.Method {
	return []loader.Method{
		{
			Name:    streamLoad,
			Help:    "Stream Load over HTTP: a frontend names a backend, which takes the rows",
			Caps:    streamCaps(),
			Options: append(tableOptions(), append(groupCommitOptions(), routeOptions()...)...),
		},
		{
			Name:    insert,
			Help:    "multi-row INSERT statements over the MySQL protocol: for small batches and comparison",
			Caps:    insertCaps(),
			Options: append(tableOptions(), groupCommitOptions()...),
		},
		{
			Name:    s3Load,
			Help:    "objects on --via s3://…, loaded by INSERT … SELECT FROM S3(…)",
			Caps:    s3Caps(),
			Options: tableOptions(),
		},
	}
}

func streamCaps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{batch.DorisCSV, batch.NDJSON, batch.Parquet},
		Dedup:   loader.DedupKey, Window: labelLife, Atomic: true,
		MaxBytes: maxStreamBytes,
		// Every load is a new version of every tablet it touches, and too many versions stop all loads (-235). From
		// 10 MB on group commit is no faster (Doris documentation, "Group Commit", performance tests).
		DefaultBatchBytes: 64 << 20,
	}
}

func insertCaps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{batch.Values},
		Dedup:   loader.DedupKey, Window: labelLife, Atomic: true,
		MaxBytes: maxInsertBytes, DefaultBatchBytes: 1 << 20,
	}
}

func s3Caps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{batch.DorisCSV, batch.Parquet},
		Dedup:   loader.DedupKey, Window: labelLife, Atomic: true,
		Staged: true, Commits: 2,
		DefaultBatchBytes: 64 << 20, DefaultGroupBytes: 2 << 30,
	}
}

// Check reads method, options, table and parameters.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	method, found := loader.FindMethod(New(), t.Method)
	if !found {
		return loader.Caps{}, fmt.Errorf("doris: method %q does not exist", t.Method)
	}
	o, err := readOptions(t)
	_, name := targetTable(t)
	return o.refine(method.Caps), errors.Join(err, name, checkParams(t), checkSettings(t), checkVia(t, method.Name))
}
