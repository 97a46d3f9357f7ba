// Package oracle loads Oracle Database through package database/sql, by one of two drivers: go-ora, which is pure Go
// and part of the static binary, or godror (build tag godror), which needs cgo and Oracle's client library. A client
// holds what differs between them.
//
// A batch holds columns (batch.Columns), which become array binds, or one bind a row. Every statement with rows is in
// an explicit transaction: go-ora asks the server to keep the good rows of a failed array, and the next user of the
// connection would commit them.
package oracle

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The methods.
const (
	methodSingle = "single"
	methodBatch  = "batch"
	methodArray  = "array"
	methodFast   = "fast"
	methodDirect = "direct"
)

// Driver is Oracle's loader.Driver.
type Driver struct{ client client }

// New returns the driver, with the client that this binary was built with.
func New() loader.Driver { return Driver{client: builtIn()} }

// Name implements loader.Driver.
func (Driver) Name() string { return "oracle" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string { return []string{"oracle"} }

// Methods implements loader.Driver. The first one is the default.
func (Driver) Methods() []loader.Method {
	methods := []loader.Method{
		{Name: methodArray, Help: "INSERT of arrays, a commit for each"},
		{Name: methodSingle, Help: "INSERT of one row, a commit for each"},
		{Name: methodBatch, Help: "INSERT of one row, a commit for each batch"},
		{Name: methodFast, Help: "INSERT of arrays into memory (MEMOPTIMIZE FOR WRITE), written to disk later"},
		{
			Name: methodDirect, Help: "INSERT of arrays behind the table's end (APPEND_VALUES), by one session; godror only",
			Options: loader.OptionsOf(options{}),
		},
	}
	for i := range methods {
		methods[i].Caps = capsOf(methods[i].Name)
	}
	return methods
}

// maxArrayRows is the most rows of an array bind: more fail with ORA-03146 since 19c (ODP.NET issue 289).
const maxArrayRows = 1<<20 - 1

// capsOf returns the capabilities of a method.
func capsOf(method string) loader.Caps {
	caps := loader.Caps{
		Formats: []batch.Format{batch.ColumnArrays}, Dedup: loader.DedupTx, Atomic: true, MaxRows: maxArrayRows,
		// go-ora holds an array about four times while it encodes it, and the server once.
		DefaultBatchBytes: 4 << 20, MaxBytes: 64 << 20,
		Lacks: types.Lacks(),
	}
	switch method {
	case methodSingle:
		caps.Dedup, caps.Atomic, caps.DefaultBatchBytes = loader.DedupNone, false, 256<<10
		caps.Reason = "a batch that is cut short leaves its first rows behind, each committed by itself, and its retry " +
			"sends them again (--method batch --batch-rows 1 commits as often, and is exactly once)"
	case methodBatch:
		caps.DefaultBatchBytes = 1 << 20
	case methodFast:
		caps.Dedup, caps.Atomic = loader.DedupNone, false
		caps.Reason = "Fast Ingest acknowledges rows that are only in memory, without a transaction: a crash of the server " +
			"loses them, and an array that is cut short leaves some behind"
	case methodDirect:
		// Every execution begins a new block behind the table's end, so arrays have to be large, and locks the table,
		// or the partition, until the commit.
		//
		// godror binds an array of texts in memory of the library, outside of --memory, of four times the longest
		// text's bytes for each row; the library refuses more than 2 GiB.
		caps.DefaultBatchBytes, caps.MaxBytes, caps.MaxInFlight = 64<<20, 256<<20, 1
	}
	return caps
}

// Check implements loader.Driver.
func (d Driver) Check(t loader.Target) (loader.Caps, error) {
	method, _, err := planOf(d.client, t)
	return capsOf(method), err
}
