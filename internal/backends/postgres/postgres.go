// Package postgres loads PostgreSQL and what speaks its protocol: YugabyteDB's YSQL and Redshift.
//
// A batch is one COPY … FROM STDIN whose stream was encoded before the load began, or one INSERT of many rows. Either
// stands in a transaction that claims the batch first (internal/sqlload). The staged methods put batches into S3, and let
// the server read a group of them in such a transaction (staged.go). Which product answers is asked, not assumed:
// see flavour.
package postgres

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The methods.
const (
	methodCopy   = "copy"
	methodInsert = "insert"
	methodS3Copy = "s3-copy"
	methodImport = "s3-import"
)

// New makes the driver. It is a value without state.
func New() loader.Driver { return driver{} }

type driver struct{}

func (driver) Name() string { return "postgres" }

func (driver) Schemes() []string {
	return []string{schemePostgres, schemePostgreSQL, schemeYugabyte, schemeRedshift}
}

func (driver) Methods() []loader.Method {
	unlogged := loader.Option{
		Name: optionUnlogged, Kind: loader.BoolOption, Default: "false",
		Help: "make the table UNLOGGED: no WAL and no replication, and emptied by a crash of the server",
	}
	keys := loader.Option{
		Name: optionS3Keys, Kind: loader.BoolOption, Default: "false",
		Help: "let the server read the bucket with this client's own keys instead of a role",
	}
	return []loader.Method{
		{
			Name: methodCopy, Help: "COPY … FROM STDIN", Caps: capsOf(methodCopy, options{}),
			Options: []loader.Option{
				unlogged,
				{
					Name: optionRowsPerTransaction, Kind: loader.IntOption, Default: "0",
					Help: "YugabyteDB: commit every so many rows inside a COPY (0: a batch is one transaction)",
				},
				{
					Name: optionNonTransactional, Kind: loader.BoolOption, Default: "false",
					Help: "YugabyteDB: write without transactions, the fastest way and at least once only",
				},
			},
		},
		{
			Name: methodInsert, Help: "INSERT of many rows in one statement", Caps: capsOf(methodInsert, options{}),
			Options: []loader.Option{unlogged},
		},
		{
			Name: methodS3Copy, Help: "Redshift: objects in S3 (--via s3://…), and COPY of them", Caps: capsOf(methodS3Copy, options{}),
			Options: []loader.Option{
				{
					Name: optionIAMRole, Kind: loader.StringOption, Default: defaultRole,
					Help: "Redshift: the role that reads the bucket, as an ARN; default: the cluster's own default",
				},
				keys,
			},
		},
		{
			Name: methodImport, Help: "Aurora and RDS for PostgreSQL: objects in S3 (--via s3://…), and aws_s3 to import them",
			Caps: capsOf(methodImport, options{}), Options: []loader.Option{unlogged, keys},
		},
	}
}

// Check reads method and options.
func (driver) Check(t loader.Target) (loader.Caps, error) {
	method, o, err := planOf(t)
	return capsOf(method, o), err
}

// capsOf is what a method can do under its options.
func capsOf(method string, o options) loader.Caps {
	switch method {
	case methodS3Copy:
		return loader.Caps{
			Formats: []batch.Format{batch.CSV}, Dedup: loader.DedupTx, Atomic: true, Staged: true,
			Commits: 1, // COPYs into one table wait for each other, and so do claims: see redshift.go
			// A slice reads an object at a time, so that a group should hold several for each slice.
			DefaultBatchBytes: 32 << 20, DefaultGroupBytes: 4 << 30,
		}
	case methodImport:
		return loader.Caps{
			Formats: []batch.Format{batch.CSV, batch.PGText}, Dedup: loader.DedupTx, Atomic: true, Staged: true,
			Commits:           8, // a backend reads the objects of a group one after the other
			DefaultBatchBytes: 32 << 20, DefaultGroupBytes: 256 << 20,
		}
	}
	if method == methodInsert {
		return loader.Caps{
			Formats: []batch.Format{batch.PGValues}, Dedup: loader.DedupTx, Atomic: true,
			// The server refuses a statement of 1 GiB and holds one in memory several times over while it parses it; from
			// 64 KiB up the size made no difference beyond the noise.
			MaxBytes: 16 << 20, DefaultBatchBytes: 1 << 20,
		}
	}
	caps := loader.Caps{
		Formats: []batch.Format{batch.PGBinary, batch.PGText, batch.CSV}, Dedup: loader.DedupTx, Atomic: true,
		// From 4 to 128 MiB the size made no difference beyond the noise (PostgreSQL 15, same machine); 1 MiB cost the
		// server a fifth more CPU. 16 MiB leaves room for what was not measured, the three round trips of a batch and the
		// flush of its commit, and keeps rings small and retries cheap.
		DefaultBatchBytes: 16 << 20,
	}
	if o.rowsPerTransaction > 0 {
		caps.Dedup, caps.Atomic, caps.MinRows = loader.DedupRange, false, o.rowsPerTransaction
	}
	if o.nonTransactional {
		caps.Dedup, caps.Atomic = loader.DedupNone, false
		caps.Reason = "with " + optionNonTransactional + " a batch that is cut short leaves rows behind, in no order, " +
			"and its retry stops at their keys (unless --set yb_enable_upsert_mode=on lets it overwrite them)"
	}
	return caps
}
