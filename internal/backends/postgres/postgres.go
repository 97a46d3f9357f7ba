// Package postgres loads PostgreSQL and two products that speak its protocol: YugabyteDB (YSQL) and Redshift.
//
// A batch is one COPY … FROM STDIN whose stream was encoded before the load began, or one INSERT of many rows, in a
// transaction that claims the batch first (pkg/sqlload). Redshift's method puts batches into S3 and lets the server
// read a group of them in such a transaction (staged.go). The server is asked which product it is: see flavour.
package postgres

import (
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The methods.
const (
	methodCopy   = "copy"
	methodInsert = "insert"
	methodS3Copy = "s3-copy"
)

// Driver is the PostgreSQL family's loader.Driver.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name implements loader.Driver.
func (Driver) Name() string { return "postgres" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string {
	return []string{schemePostgres, schemePostgreSQL, schemeYugabyte, schemeRedshift}
}

// Methods implements loader.Driver. The first one is the default.
func (Driver) Methods() []loader.Method {
	method := func(name, help string, all []loader.Option) loader.Method {
		return loader.Method{Name: name, Help: help, Caps: capsOf(name, options{}, postgreSQL), Options: all}
	}
	return []loader.Method{
		method(methodCopy, "COPY … FROM STDIN", loader.OptionsOf(tableOptions{}, copyOptions{})),
		method(methodInsert, "INSERT of many rows in one statement", loader.OptionsOf(tableOptions{})),
		method(methodS3Copy, "Redshift: objects in S3 (--staging s3://…), and COPY of them",
			loader.OptionsOf(bucketOptions{})),
	}
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	method, o, err := planOf(t)
	f := postgreSQL
	switch t.Scheme {
	case schemeRedshift:
		f = redshift
	case schemeYugabyte:
		f = yugabyteDB
	}
	return capsOf(method, o, f), err
}

// capsOf returns the capabilities of a method with its options.
func capsOf(method string, o options, f flavour) loader.Caps {
	c := loader.Caps{Dedup: loader.DedupTx, Atomic: true}
	c.Lacks = f.dialect().Types.Lacks()
	c.NoTextNulls = f == redshift // whose COPY has not been asked whether a quoted \N stays a text
	switch method {
	case methodS3Copy:
		c.Formats, c.Staged = []batch.Format{batch.CSV}, true
		c.Commits = 1 // COPYs into one table wait for each other, and so do claims: see redshift.go
		// A slice reads an object at a time, so a group should hold several for each slice.
		c.DefaultBatchBytes, c.DefaultGroupBytes = 32<<20, 4<<30
	case methodInsert:
		c.Formats = []batch.Format{batch.PGValues}
		// The server refuses a statement of 1 GiB, and holds one in memory several times over while it parses it. From
		// 64 KiB up the size made no difference beyond the noise.
		c.MaxBytes, c.DefaultBatchBytes = 16<<20, 1<<20
	default:
		c.Formats = []batch.Format{batch.PGBinary, batch.PGText, batch.CSV}
		c.Files = []batch.Format{batch.CSV, batch.PGText}
		// From 4 to 128 MiB the size made no difference beyond the noise (PostgreSQL 15, same machine, several
		// workers); 1 MiB cost the server a fifth more CPU. 16 MiB leaves room for the two round trips of a batch and
		// the flush of its commit, and keeps rings small and retries cheap. Nobody sends while one worker waits for the
		// commit: beside psql's \copy of 1 GiB it took 1.11 of the time with 64 MiB, and 1.05 with 256 (medians of 19
		// and 24 pairs, which differ by more than that). YugabyteDB keeps the rows of an open transaction apart, and
		// moves them when it commits.
		c.DefaultBatchBytes, c.SoloBatchBytes = 16<<20, 256<<20
		if f == yugabyteDB {
			c.SoloBatchBytes = 0
		}
	}

	if o.RowsPerTransaction > 0 {
		c.Dedup, c.Atomic, c.MinRows = loader.DedupNone, false, o.RowsPerTransaction
		c.Reason = fmt.Sprintf("with rows-per-transaction a batch that is cut short leaves the rows of its finished "+
			"transactions behind, and its retry stops at their keys (without the option --batch-rows %d commits as often, "+
			"and is exactly once)", o.RowsPerTransaction)
	}

	if o.NonTransactional {
		c.Dedup, c.Atomic = loader.DedupNone, false
		c.Reason = "with disable-transactional-writes a batch that is cut short leaves rows behind, in no order, " +
			"and its retry stops at their keys (unless --set yb_enable_upsert_mode=on lets it overwrite them)"
	}

	return c
}
