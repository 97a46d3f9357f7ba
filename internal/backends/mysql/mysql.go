// Package mysql loads MySQL, MariaDB, TiDB, OceanBase and SingleStore: by LOAD DATA LOCAL INFILE out of memory, by
// multi-row INSERT, or, SingleStore alone, by pipelines that read objects from S3.
//
// Three findings shape it (measured on MariaDB 10.11 and MySQL 9.7 with go-sql-driver 1.10.1):
//
//   - If the reader fails during LOAD DATA LOCAL, the server commits what it has seen, since the protocol knows no
//     other end of a file than an empty packet. So a batch is complete before its statement starts, its body cannot
//     fail, and a load is aborted by closing the connection, upon which the server rolls back.
//   - LOAD DATA LOCAL skips duplicate keys and bends bad values, with a warning and without an error. So the affected
//     rows and the warnings are read inside the transaction, before the commit.
//   - The answer to a COMMIT can be lost. So every batch inserts a claim row first, in the same transaction (package
//     sqlload), and Resolve looks for it.
//
// The five speak one protocol and differ in details; see flavour.go.
package mysql

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The methods.
const (
	methodLoadData = "load-data"
	methodInsert   = "insert"
	methodPipeline = "pipeline"
)

const (
	// defaultMaxPacket is the smallest default of max_allowed_packet in bytes: MariaDB's.
	defaultMaxPacket = 16 << 20
	// packetRoom is the bytes of a statement without its rows: comment, table name, column list.
	packetRoom = 64 << 10
)

// Driver is the MySQL family's loader.Driver.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name is the back-end's name.
func (Driver) Name() string { return "mysql" }

// Schemes are the URL schemes: mysql takes every flavour, the others assert theirs.
func (Driver) Schemes() []string {
	return []string{"mysql", "mariadb", "tidb", "oceanbase", "singlestore"}
}

// Methods lists the methods, the default first, with the Caps that they have on a MySQL server with its defaults.
func (Driver) Methods() []loader.Method {
	return []loader.Method{
		{
			Name: methodLoadData,
			Help: "LOAD DATA LOCAL INFILE from memory; needs local_infile=1 on the server",
			Caps: loader.Caps{
				Formats: []batch.Format{batch.TSV},
				Files:   []batch.Format{batch.TSV},
				Dedup:   loader.DedupTx,
				Atomic:  true,
				// Measured from 1 to 128 MiB: from 4 MiB on the rate stays the same, while undo, binlog cache and the
				// cost of a retry grow. Four times that leaves room for a network with long round trips.
				DefaultBatchBytes: 16 << 20,
			},
		},
		{
			Name: methodInsert,
			Help: "multi-row INSERT statements, bounded by the server's max_allowed_packet",
			Caps: loader.Caps{
				Formats:           []batch.Format{batch.Values},
				Dedup:             loader.DedupTx,
				Atomic:            true,
				MaxBytes:          defaultMaxPacket - packetRoom,
				DefaultBatchBytes: 1 << 20,
			},
		},
		{
			Name: methodPipeline,
			Help: "SingleStore: objects in S3 (--staging s3://…), which a pipeline of the server loads",
			Caps: loader.Caps{
				Formats: []batch.Format{batch.TSV},
				Dedup:   loader.DedupKey, // the pipeline remembers its files as long as it lives, and a group's rows are counted
				Staged:  true,
				Commits: 1, // the pipeline loads ahead by itself: see staged.Resolve
				// Every partition of the database reads a file at a time, so a group should hold many of them.
				DefaultBatchBytes: 32 << 20,
				DefaultGroupBytes: 4 << 30,
			},
			Options: loader.OptionsOf(options{}),
		},
	}
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	method, _, err := planOf(t)
	caps := method.Caps
	if f := ofScheme(t.Scheme); f == oceanBase || f == singleStore { // of all versions
		caps = server{flavour: f}.caps(method)
	}
	return caps, err
}
