// Package files finds the user's files, reads and decompresses them, and splits them at record boundaries into batches
// that a database parses itself.
//
// A batch is a Range: whole records of one file. Which bytes it has is decided when the file is first read, and written
// ahead of the batch's first send, so that a repeat, also by another process, sends the same bytes or is refused.
//
// One file has one meaning, whatever the database. It is PostgreSQL's: see Format. A Source turns the records into what
// the database's method parses (Config.Wire), which for most is the bytes as they are.
package files

import (
	"errors"
	"fmt"
	"strings"
)

// Format is how records and fields are written in a file.
type Format string

// The formats. A record ends with LF or CRLF, the last one also with the end of its file. An empty line is a record of
// one empty field, as COPY reads it.
const (
	// CSV is what COPY … (FORMAT csv) reads: a quote anywhere begins or ends a quoted part, which may hold delimiters and
	// line ends. A field equal to Spec.Null with no quoted part is NULL.
	CSV Format = "csv"
	// TSV is what LOAD DATA reads by default, without quotes: \t, \n, \r, \b, \0 (NUL), \Z (byte 26); a backslash before
	// any other byte, a delimiter and a line end too, makes that byte data. A field that is exactly Spec.Null is NULL.
	TSV Format = "tsv"
	// Text is what COPY … (FORMAT text) reads, without quotes: as TSV, but with \f, \v, \101, \x41 and without \0 and \Z.
	Text Format = "text"
	// NDJSON is a JSON object in each line, whose names are those of columns. A name that an object lacks is NULL.
	NDJSON Format = "ndjson"
	// Parquet is a file of columns that are not nested. It is one batch, as it is.
	Parquet Format = "parquet"
)

// Named reports whether the data themselves name their columns, without Spec.Header.
func (f Format) Named() bool { return f == NDJSON || f == Parquet }

// Naming is the part of a file that names its columns, in messages.
func (f Format) Naming() string {
	switch f {
	case NDJSON:
		return "the first line"
	case Parquet:
		return "the footer"
	}
	return "the header"
}

// Spec says which files a run loads and how they are read. It is part of the run's record and fingerprint: the same
// Spec and the same bytes give the same records.
type Spec struct {
	Files  []File `json:"files"` // in the order in which they are read
	Format Format `json:"format"`

	// Delimiter, Quote and Escape are one byte each. Only CSV has quotes; Escape, before a quote or itself within a quoted
	// part, makes it data. Formats that are Named have none of them, nor of what follows.
	Delimiter string `json:"delimiter"`
	Quote     string `json:"quote,omitempty"`
	Escape    string `json:"escape,omitempty"`

	Null   string `json:"null"`             // the text that is NULL; see Format
	Header bool   `json:"header,omitempty"` // the first record of each file names its columns, and is not data
}

// NewSpec returns the usual way to write a format, without files: csv with commas, doubled quotes and an empty NULL;
// tsv and text with tabs and \N.
func NewSpec(f Format) Spec {
	switch {
	case f.Named():
		return Spec{Format: f}
	case f == CSV:
		return Spec{Format: f, Delimiter: ",", Quote: `"`, Escape: `"`}
	}
	return Spec{Format: f, Delimiter: "\t", Null: `\N`}
}

// Check returns an error for a format that has no unambiguous reading. Its words name flags: --format, --delimiter,
// --quote, --escape and --null.
func (s Spec) Check() error {
	switch s.Format {
	case CSV, TSV, Text:
	case NDJSON, Parquet:
		if s.Delimiter+s.Quote+s.Escape+s.Null != "" || s.Header {
			return fmt.Errorf("--delimiter, --quote, --escape, --null and --header are for csv, tsv and text: %s has its own", s.Format)
		}
		return nil
	default:
		return fmt.Errorf("--format %s: it is csv, tsv, text, ndjson or parquet", s.Format)
	}
	quoted := s.Format == CSV

	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, c := range []struct {
		flag, value string
		needed      bool
	}{{"--delimiter", s.Delimiter, true}, {"--quote", s.Quote, quoted}, {"--escape", s.Escape, quoted}} {
		check(c.needed || c.value == "", "%s %q: %s has no quotes", c.flag, c.value, s.Format)
		check(!c.needed || len(c.value) == 1 && c.value[0] < 0x80, "%s %q: it is one ASCII character", c.flag, c.value)
		check(!strings.ContainsAny(c.value, "\r\n\x00"), "%s %q: it cannot be a line end or NUL", c.flag, c.value)
	}
	check(!quoted || s.Delimiter != s.Quote && s.Delimiter != s.Escape,
		"--delimiter %q is also the quote or the escape", s.Delimiter)
	// COPY's own rule: these begin an escape.
	check(quoted || !strings.ContainsAny(s.Delimiter, `\.abcdefghijklmnopqrstuvwxyz0123456789NZ`),
		"--delimiter %q: in %s a backslash before it has another meaning", s.Delimiter, s.Format)

	check(!strings.ContainsAny(s.Null, "\r\n\x00"), "--null %q: it cannot have a line end or NUL", s.Null)
	check(s.Delimiter == "" || !strings.Contains(s.Null, s.Delimiter), "--null %q has the delimiter in it", s.Null)
	check(s.Quote == "" || !strings.Contains(s.Null, s.Quote), "--null %q has the quote in it", s.Null)
	check(s.Null != `\.`, `--null \.: PostgreSQL takes a line of it for the end of the data`)
	return errors.Join(problems...)
}

// File is one of the user's files, as it was when the run began. Times are not part of it: two hosts that have copies
// of one file agree.
type File struct {
	Path        string      `json:"path"`                  // or Stdin, which is read once, or s3://bucket/key
	Store       string      `json:"store,omitempty"`       // of an object: what follows the question mark of its URL
	Size        int64       `json:"size"`                  // bytes as stored, −1 if not known
	Compression Compression `json:"compression,omitempty"` // by its first bytes, not its name
	// Ends is the CRC-32C of the file's first and last 64 KiB. A file rewritten with the same length is found by it at
	// once; one changed in between, by the hash of the range.
	Ends   uint32   `json:"ends,omitempty"`
	ETag   string   `json:"etag,omitempty"`   // of an object, in place of Ends
	Header []string `json:"header,omitempty"` // its names, in the first record if Spec.Header, or by Format.Named

	object *object // how to read it, if it is in a bucket
}

// Name is the file in messages.
func (f File) Name() string {
	if f.Path == Stdin {
		return "standard input"
	}
	return f.Path
}

// Compression is how a file is stored.
type Compression string

// The compressions.
const (
	Plain Compression = ""
	Gzip  Compression = "gzip" // one or several members
	Zstd  Compression = "zstd" // one or several frames
)

// Range is one batch: whole records of one file. Offsets are in the decompressed bytes, without the line end that a
// batch gets if the file's last record has none.
type Range struct {
	Batch       int64  `json:"batch"` // its number in the run, ≥ 0
	File        int    `json:"file"`  // an index of Spec.Files
	Nth         int64  `json:"nth"`   // of its file's ranges, from 0 on, those of other shards included
	From        int64  `json:"from"`
	To          int64  `json:"to"`           // > From
	FirstRecord int64  `json:"first_record"` // in its file, from 0 on, headers not counted
	Records     int64  `json:"records"`      // ≥ 1
	FirstLine   int64  `json:"first_line"`   // from 1 on, as an editor counts; a record may have several. 0 of Parquet
	Lines       int64  `json:"lines"`        // line ends in it; ≥ Records−1
	Hash        uint32 `json:"hash"`         // CRC-32C of the bytes as they are in the file
	// Incomplete is how many bytes at the end are a record that the file ends in; 0: its records are whole.
	Incomplete int64 `json:"incomplete,omitempty"`
	// Last says that the file ends here. The last range may lack it, if that was not known when it was cut.
	Last bool `json:"last,omitempty"`
}
