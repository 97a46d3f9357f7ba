package files

import (
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
)

// Config configures a Source.
type Config struct {
	Spec Spec
	Run  string // the run's id

	// Wire is what the batches are sent as. batch.CSV and batch.PGText are what the COPY of every PostgreSQL from 12 on
	// reads as Spec says, with its DELIMITER, QUOTE, ESCAPE and NULL: the file's bytes, but for carriage returns before
	// a line's end and lines that would end the COPY. CSV files go as batch.CSV, the others as batch.PGText. batch.TSV
	// is what LOAD DATA reads by default: tabs, \N, backslashes, a line a record; every format goes as that.
	//
	// NDJSON goes as batch.NDJSON, Parquet as batch.Parquet.
	//
	// Rewrite, with batch.CSV, is for servers that read csv in a way of their own: every format goes as csv that all
	// read the same way, as this program's encoders write it, with commas, doubled quotes and an unquoted \N for NULL.
	Wire    batch.Format
	Rewrite bool
	// Fields is how many fields a record has, ≥ 1. Records with more or fewer are a *RecordError where they are taken
	// apart, to be rewritten. Elsewhere the database counts.
	Fields int
	// Columns returns those that the fields of a file's records go into, and what they may not be, where the server would
	// take it for something else; csv that goes as it is is not looked at. nil: they may be anything. NDJSON needs them: a
	// record with another name is bad, unless Some says that others are left out.
	Columns func(file int) []Field
	Some    bool

	BatchBytes  int64 // of the file in a batch: it ends with the last record that ends within them, or else the first
	Buffers     int   // > Workers; the others are filled ahead
	Workers     int   // ≥ 1; how many batches are in use at a time
	BufferBytes int64 // of one; see Source.MaxRecord
	Parallel    int   // files that are read and decompressed at a time, ≥ 1

	// Only says which files are read, and Share which ranges of them, by Range.Nth; nil = all. The others belong to
	// other shards. Every shard cuts the same ranges from a file, if BatchBytes is the same, and reads the whole file for
	// its share.
	Only  func(file int) bool
	Share func(file int, nth int64) bool
	// Known are the ranges that Ahead has kept in earlier processes of this run, in any order, and Done says which of
	// them are delivered; nil = none. The others are read first, and must be asked for in the order of their numbers.
	Known []Range
	Done  func(batch int64) bool
	// Ahead keeps ranges on disk. Their numbers follow those that it was given before. When it has returned nil they
	// may be handed out. It is called by one goroutine at a time. nil: nothing is kept, as for a run that cannot be
	// resumed.
	Ahead func([]Range) error
	// Skip leaves bad records out of their batch, and keeps them for Source.Bad; a batch may be without rows then.
	// Otherwise the first is Batch's error.
	Skip bool
}

// slack is room in a buffer for a line end that the file lacks, and for bytes copied eight at a time.
const slack = 64

// MaxRecord returns the longest record that fits a buffer, in bytes of the file. The rest of the buffer is for the
// record as it is sent: an empty field of LOAD DATA's has three bytes, a line \. of COPY's five.
func (c Config) MaxRecord() int64 {
	switch {
	case c.Wire == batch.Parquet:
		return c.BufferBytes - slack
	case c.Wire == batch.CSV && !c.Rewrite:
		return (c.BufferBytes - slack) / 8 * 3
	}
	return (c.BufferBytes - slack) / 4
}

// WireSpec says how the records of a batch are written: for Spec.Records on its Encoded.
func (c Config) WireSpec() Spec {
	switch {
	case c.Wire == batch.TSV:
		return NewSpec(TSV)
	case c.Spec.Format.Named():
		return c.Spec
	case c.Rewrite:
		s := NewSpec(CSV)
		s.Null = `\N`
		return s
	}
	s := c.Spec
	if s.Format == TSV {
		s.Format = Text
	}
	return s
}

func (c Config) check() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("files: "+format, args...))
		}
	}
	check(c.sendable(), "%s cannot be sent as %s", c.Spec.Format, c.Wire)
	check(c.Fields >= 1, "%d fields: a record has at least 1", c.Fields)
	check(c.Workers >= 1 && c.Buffers > c.Workers, "%d buffers for %d workers: one more than workers is needed", c.Buffers, c.Workers)
	check(
		c.BatchBytes >= 1 && c.BatchBytes <= c.MaxRecord(), "a batch of %d bytes does not fit a buffer, which takes %d",
		c.BatchBytes, c.MaxRecord())
	check(c.Parallel >= 1, "%d files at a time: at least 1 is read", c.Parallel)
	return errors.Join(append(problems, c.Spec.Check())...)
}

// sendable reports whether the records can be written as Wire.
func (c Config) sendable() bool {
	switch {
	case c.Spec.Format == Parquet:
		return c.Wire == batch.Parquet
	case c.Spec.Format == NDJSON:
		return c.Wire == batch.NDJSON && c.Columns != nil
	case c.Wire == batch.TSV:
		return true
	case c.Rewrite || c.Spec.Format == CSV:
		return c.Wire == batch.CSV
	}
	return c.Wire == batch.PGText
}

// Field is a field of a record, or a column.
type Field struct {
	Column    string `json:"column"`
	NoEmpty   bool   `json:"no_empty,omitempty"`    // an empty text would become NULL
	NoNull    bool   `json:"no_null,omitempty"`     // NULL would become a value
	NoZeroDay bool   `json:"no_zero_day,omitempty"` // 0000-00-00 would become 1970-01-01
	FloatBits int    `json:"float_bits,omitempty"`  // a number beyond a float of so many bits would become infinite
	Quoted    bool   `json:"quoted,omitempty"`      // a number of JSON would lose digits, and goes as a text
}
