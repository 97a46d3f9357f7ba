// Package batch has the unit of work, retry and accounting: consecutive rows, completely encoded before they are sent.
//
// A batch keeps its buffer until every Body or Columns opened on it is closed: Go's HTTP transport may still read a
// request body after Do has returned, and refilling the buffer then would corrupt rows on the wire.
package batch

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// ID identifies a batch: the same run and number always have the same rows.
type ID struct {
	Run    string // the run's id
	Number int64  // from 0 on; batch n has rows n·B … n·B+B−1
}

// String returns the id as it is in logs, labels and object names.
func (id ID) String() string { return fmt.Sprintf("%s/%d", id.Run, id.Number) }

// Format is how rows look on the wire.
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
	Parquet      Format = "parquet"  // a file a batch, uncompressed; encoded anew for every batch
	ColumnArrays Format = "columns"  // arrays for drivers that bind them; see Columns
)

// Compressed formats are one with a suffix; each batch is encoded anew.
const (
	CSVGzip      Format = CSV + "." + Gzip
	CSVZstd      Format = CSV + "." + Zstd
	NDJSONGzip   Format = NDJSON + "." + Gzip
	NDJSONZstd   Format = NDJSON + "." + Zstd
	DorisCSVGzip Format = DorisCSV + "." + Gzip

	Gzip = "gz"  // one member a batch (RFC 1952)
	Zstd = "zst" // one frame a batch (RFC 8878)
)

// Formats lists all formats.
func Formats() []Format {
	return []Format{
		TSV, CSV, DorisCSV, NDJSON, Parquet, PGBinary, PGText, Values, PGValues, ColumnArrays,
		CSVGzip, CSVZstd, NDJSONGzip, NDJSONZstd, DorisCSVGzip,
	}
}

// Compression returns the format of the rows, and how they are compressed: Gzip, Zstd or "".
func (f Format) Compression() (plain Format, how string) {
	name, how, _ := strings.Cut(string(f), ".")
	return Format(name), how
}

// Batch is a unit of work. The source fills it, one worker at a time has it, back-ends only read it.
type Batch struct {
	ID     ID
	Format Format
	First  int64 // number of its first row: the run's first key + Number·B
	Rows   int64
	// Payload counts the column data: the length of a variable value, rows.Type.Size for the others.
	Payload int64
	// Layout and Origin are those of a user's file, nil of rows that were made.
	Layout *Layout
	Origin *Origin
	// Part says that these are some records of a batch, of which all go in or none: what the server has to say of each
	// of them is wanted.
	Part bool
	// Attempt is the number of the current attempt, from 1 on, which distinguishes the requests of a batch on the server.
	// The engine sets it. If attempts are announced on disk, as with labels, it counts over all processes of the run;
	// otherwise attempts of a process that died may be missing.
	Attempt int

	Encoded []byte // head, rows, tail; owned by the ring the batch came from

	// Free returns the buffer to its ring. The last holder calls it.
	Free func()

	// AllRead is called by the reader of a body's last byte, or when the last row of Columns has Passed: from then on the
	// worker waits for the answer. It may be nil.
	AllRead func()

	holders atomic.Int32 // the worker, and every open Body or Columns
	sent    atomic.Int64
}

// Hold adds a holder; the source calls it for the worker.
func (b *Batch) Hold() { b.holders.Add(1) }

// Release removes a holder. Without holders the buffer returns to its ring.
func (b *Batch) Release() {
	if b.holders.Add(-1) == 0 && b.Free != nil {
		b.Free()
	}
}

// Last returns the number of the batch's last row.
func (b *Batch) Last() int64 { return b.First + b.Rows - 1 }

// Sent returns how many encoded bytes the newest Body or Columns has passed on.
func (b *Batch) Sent() int64 { return b.sent.Load() }
