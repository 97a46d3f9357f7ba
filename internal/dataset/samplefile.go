package dataset

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/recent"
)

// maxSample bounds a file of samples, which is kept in memory.
const maxSample = 1 << 30

// sampleFile is a user's file, of which whole rows are drawn.
type sampleFile struct {
	path     string
	size     int64
	modified time.Time
	hash     string // the SHA-256 of its bytes, in hex
	names    []string
	columns  []sampleColumn
	unit     string // of lines
	lines    []int  // of the rows, in the file; of Parquet their numbers
}

// sampleColumn is the values of a column as texts, one behind the other.
type sampleColumn struct {
	texts []byte
	ends  []uint32
	nulls []bool
}

func (c *sampleColumn) add(text string, null bool) {
	c.texts = append(c.texts, text...)
	c.ends = append(c.ends, uint32(len(c.texts)))
	c.nulls = append(c.nulls, null)
}

// text returns the value of a row, which the caller must not change.
func (c *sampleColumn) text(row int) []byte {
	from := uint32(0)
	if row > 0 {
		from = c.ends[row-1]
	}
	return c.texts[from:c.ends[row]]
}

// memory is what the file takes, in bytes.
func (f *sampleFile) memory() (bytes int64) {
	const rowBytes, valueBytes = 8, 4 + 1
	for i := range f.columns {
		bytes += int64(cap(f.columns[i].texts)) + valueBytes*int64(len(f.lines))
	}
	return bytes + rowBytes*int64(len(f.lines))
}

// column returns a column by its name, nil if there is none.
func (f *sampleFile) column(name string) *sampleColumn {
	if i := slices.Index(f.names, name); i >= 0 {
		return &f.columns[i]
	}
	return nil
}

// read is the file that was read last: all of a dataset's columns ask for it, and so does every plan.
var read = recent.Results[sampleKey, *sampleFile]{Most: 1}

type sampleKey struct {
	path           string
	size, modified int64
}

// readSample reads a CSV or Parquet file. Errors name it.
func readSample(path string) (*sampleFile, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxSample:
		return nil, fmt.Errorf("%s has %d bytes, and a sample has 1 GiB at most: take a part of it", path, info.Size())
	}

	of := sampleKey{path, info.Size(), info.ModTime().UnixNano()}
	return read.Get(of, func() (*sampleFile, error) { return openSample(path) })
}

func openSample(path string) (*sampleFile, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	f, sum := &sampleFile{path: path, size: info.Size(), modified: info.ModTime()}, sha256.New()
	if err := f.read(in, sum); err != nil {
		return nil, err
	}
	f.hash = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// read reads a file, which is hashed on the way: it is never in memory as a whole beside its columns.
func (f *sampleFile) read(file *os.File, sum hash.Hash) error {
	in := bufio.NewReaderSize(io.TeeReader(file, sum), 1<<16)
	begin, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(begin, []byte("PAR1")):
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
		if err := f.readParquet(file); err != nil {
			return err
		}
		return f.unchanged(file)
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")) || bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")):
		return fmt.Errorf("%s is compressed: decompress it first", f.path)
	case bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return fmt.Errorf("%s is UTF-16: write it as UTF-8 first, with iconv -f UTF-16 -t UTF-8", f.path)
	}
	if bytes.HasPrefix(begin, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // which it has
	}
	return f.readCSV(in)
}

// unchanged returns an error if a file, which was read twice, has changed in between: its hash would be of other rows.
func (f *sampleFile) unchanged(file *os.File) error {
	info, err := file.Stat()
	if err == nil && (info.Size() != f.size || !info.ModTime().Equal(f.modified)) {
		err = fmt.Errorf("%s changed while it was read: try again once it is whole", f.path)
	}
	return err
}

// readCSV reads a file with a header. An empty field without quotes is NULL.
func (f *sampleFile) readCSV(file io.Reader) error {
	raw := new(bytes.Buffer) // what was read and is not in records yet
	in := csv.NewReader(io.TeeReader(file, raw))
	in.ReuseRecord = true
	if ext := strings.ToLower(filepath.Ext(f.path)); ext == ".tsv" || ext == ".tab" {
		in.Comma = '\t'
	}

	line, read := 1, int64(0) // where the next record begins
	for {
		record, err := in.Read()
		text := raw.Next(int(in.InputOffset() - read))
		if valid := validBytes(text); valid < len(text) {
			return fmt.Errorf("%s, line %d: this is not UTF-8", f.path, line+bytes.Count(text[:valid], []byte{'\n'}))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.csvError(err)
		}
		if f.names == nil {
			err = f.begin(record)
		} else {
			f.addRecord(record, in, &lineStarts{text: text, line: line})
		}
		if err != nil {
			return err
		}
		line, read = line+bytes.Count(text, []byte{'\n'}), in.InputOffset()
		if len(f.lines) == measuredRows {
			f.reserve(float64(max(f.size-read, 0)) / float64(read)) // it may have grown
		}
	}
	switch {
	case f.names == nil:
		return fmt.Errorf("%s is empty: a sample has a header and rows", f.path)
	case len(f.lines) == 0:
		return fmt.Errorf("%s has a header and no rows", f.path)
	}
	return nil
}

// measuredRows is how many rows say what memory the others will need.
const measuredRows = 10_000

// reserve makes room for more rows, times as many as there are. What grows step by step is copied, and for a while
// there twice.
func (f *sampleFile) reserve(times float64) {
	times *= 1.05
	n := int(times * float64(len(f.lines)))
	f.lines = slices.Grow(f.lines, n)
	for i := range f.columns {
		c := &f.columns[i]
		c.texts = slices.Grow(c.texts, int(times*float64(len(c.texts))))
		c.ends, c.nulls = slices.Grow(c.ends, n), slices.Grow(c.nulls, n)
	}
}

// validBytes returns how many bytes of a text are UTF-8, up to the first that are not.
func validBytes(text []byte) (n int) {
	if utf8.Valid(text) {
		return len(text)
	}
	for {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}

// begin takes the header.
func (f *sampleFile) begin(header []string) error {
	f.names = slices.Clone(header)
	f.columns, f.unit = make([]sampleColumn, len(f.names)), "line"
	return f.checkNames()
}

// addRecord adds the values of a record, whose text at has.
func (f *sampleFile) addRecord(record []string, in *csv.Reader, at *lineStarts) {
	first, _ := in.FieldPos(0)
	f.lines = append(f.lines, first)
	for i, value := range record {
		null := false
		if value == "" {
			line, column := in.FieldPos(i)
			null = !at.quoted(line, column)
		}
		f.columns[i].add(value, null)
	}
}

func (f *sampleFile) csvError(err error) error {
	parse := (*csv.ParseError)(nil)
	if !errors.As(err, &parse) {
		return fmt.Errorf("reading %s: %w", f.path, err)
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Errorf("%s, line %d: it has another number of fields than the header, which has %d", f.path, parse.StartLine, len(f.names))
	}
	return fmt.Errorf("%s, line %d: %w", f.path, parse.Line, parse.Err)
}

func (f *sampleFile) checkNames() error {
	for i, name := range f.names {
		if name == "" {
			return fmt.Errorf("%s: column %d of the header has no name", f.path, i+1)
		}
		if slices.Contains(f.names[:i], name) {
			return fmt.Errorf("%s: the header has %s twice", f.path, quoted(name))
		}
	}
	return nil
}

// lineStarts finds places in a text by line and column, in ascending order.
type lineStarts struct {
	text []byte
	line int // from 1 on, where from begins
	from int
}

// quoted reports whether a quotation mark stands at a line and a column of bytes, from 1 on.
func (l *lineStarts) quoted(line, column int) bool {
	for ; l.line < line; l.line++ {
		l.from += bytes.IndexByte(l.text[l.from:], '\n') + 1
	}
	at := l.from + column - 1
	return at < len(l.text) && l.text[at] == '"'
}
