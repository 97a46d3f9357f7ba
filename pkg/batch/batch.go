// Package batch holds the unit of work, retry and accounting: a run of consecutive rows, encoded once and completely
// before any database sees it.
//
// A batch owns its bytes until every reading opened on it, a Body or Columns, is closed. The reason:
// Go's HTTP transport may still read a request body after Do has returned, and a buffer refilled at that moment
// corrupts rows on the wire.
package batch

import (
	"fmt"
	"sync/atomic"
)

// ID names a batch for ever: the same run and number always hold the same rows.
type ID struct {
	Run    string // the run's id
	Number int64  // 0 for the first batch of the run; batch n holds rows n·B … n·B+B−1
}

// String returns the id as logs, labels and object names show it.
func (id ID) String() string { return fmt.Sprintf("%s/%d", id.Run, id.Number) }

// Format names how rows look on the wire.
type Format string

// The formats that encoders make.
const (
	TSV          Format = "tsv"      // tab separated, backslash escapes: the defaults of MySQL's LOAD DATA
	CSV          Format = "csv"      // RFC 4180, LF line ends, no header
	PGBinary     Format = "pgbinary" // PostgreSQL's COPY … WITH (FORMAT binary)
	PGText       Format = "pgtext"   // PostgreSQL's COPY … WITH (FORMAT text)
	Values       Format = "values"   // (…),(…) of a multi-row INSERT with MySQL's literals
	PGValues     Format = "pgvalues" // the same with PostgreSQL's literals
	DorisCSV     Format = "doriscsv" // Doris' CSV: fields ended by 0x01, rows by 0x02, nothing quoted, an empty field is empty
	NDJSON       Format = "ndjson"   // one JSON object a line
	Parquet      Format = "parquet"  // a whole file a batch, uncompressed; encoded afresh for every batch
	ColumnArrays Format = "columns"  // arrays for drivers that bind them, and no bytes for a wire; see Columns
)

// Formats lists all of them.
func Formats() []Format {
	return []Format{TSV, CSV, DorisCSV, NDJSON, Parquet, PGBinary, PGText, Values, PGValues, ColumnArrays}
}

// Batch is one unit of work. The feed fills it, one worker holds it at a time, back-ends only read it.
type Batch struct {
	ID     ID
	Format Format
	First  int64 // number of its first row: the run's first key + Number·B
	Rows   int64
	// Payload counts the column data: the length of a variable value, rows.Type.Size for the others.
	Payload int64
	// Attempt is the number of the attempt under way, from 1 on, which distinguishes the requests of one batch on the
	// server. The engine sets it. Where every attempt is announced on disk, as under labels, it counts over all
	// processes of the run; elsewhere an attempt that a process died in may not be counted.
	Attempt int
	// Skip is how many rows at the front the database already holds: bodies leave them out, Columns.From is the first one
	// behind them. Only methods whose deduplication is by key range set it, between two attempts.
	Skip int64

	Encoded []byte // head, rows, tail; owned by the ring the batch came from
	Head    int    // length of the head in Encoded
	// Starts holds the offset in Encoded of every row, so that a body can leave out the rows already there. It is empty
	// where a row is no run of bytes (Parquet, columns).
	Starts []uint32

	// Free returns the buffer to the ring it came from. The last holder calls it, once.
	Free func()

	// AllRead is called whenever a body has handed out its last byte, or the last row of Columns has Passed, on the
	// goroutine that read it: from here on a worker waits for the answer. It may be nil.
	AllRead func()

	holders atomic.Int32 // the worker that has the batch, and every open reading: a Body, or Columns
	sent    atomic.Int64
}

// Hold marks the batch as handed out, until Release; the feed calls it.
func (b *Batch) Hold() { b.holders.Add(1) }

// Release ends the worker's use of the batch. The buffer returns to its ring at once, or when the last reading
// that is still open is closed.
func (b *Batch) Release() {
	if b.holders.Add(-1) == 0 && b.Free != nil {
		b.Free()
	}
}

// Last returns the number of the batch's last row.
func (b *Batch) Last() int64 { return b.First + b.Rows - 1 }

// Wanted returns how many rows a body carries and an ack has to count: Rows less those already there.
func (b *Batch) Wanted() int64 { return b.Rows - b.Skip }

// Sent returns how many encoded bytes the newest reading has handed out: what a watchdog shows of a batch that hangs.
func (b *Batch) Sent() int64 { return b.sent.Load() }
