package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxSample bounds a file of samples, which is kept in memory.
const maxSample = 1 << 30

// sampleFile is a user's file, of which whole rows are drawn.
type sampleFile struct {
	path    string
	hash    string // the SHA-256 of its bytes, in hex
	names   []string
	columns []sampleColumn
	unit    string // of lines
	lines   []int  // of the rows, in the file; of Parquet their numbers
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

// column returns a column by its name, nil if there is none.
func (f *sampleFile) column(name string) *sampleColumn {
	if i := slices.Index(f.names, name); i >= 0 {
		return &f.columns[i]
	}
	return nil
}

// lastSample is the file that was read last: all of a dataset's columns ask for it, and so does every plan.
var lastSample struct {
	sync.Mutex
	file     *sampleFile
	size     int64
	modified time.Time
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

	lastSample.Lock()
	defer lastSample.Unlock()
	last := lastSample.file
	if last != nil && last.path == path && lastSample.size == info.Size() && lastSample.modified.Equal(info.ModTime()) {
		return last, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &sampleFile{path: path}
	sum := sha256.Sum256(text)
	f.hash = hex.EncodeToString(sum[:])
	if err := f.read(text); err != nil {
		return nil, err
	}
	lastSample.file, lastSample.size, lastSample.modified = f, info.Size(), info.ModTime()
	return f, nil
}

func (f *sampleFile) read(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("PAR1")):
		return f.readParquet(text)
	case bytes.HasPrefix(text, []byte("\x1f\x8b")) || bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")):
		return fmt.Errorf("%s is compressed: decompress it first", f.path)
	case bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")):
		return fmt.Errorf("%s is UTF-16: write it as UTF-8 first, with iconv -f UTF-16 -t UTF-8", f.path)
	case !utf8.Valid(text):
		line := 1
		for rest := text; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			if r == utf8.RuneError && size == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[size:]
		}
		return fmt.Errorf("%s, line %d: this is not UTF-8", f.path, line)
	}
	return f.readCSV(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
}

// readCSV reads a file with a header. An empty field without quotes is NULL.
func (f *sampleFile) readCSV(text []byte) error {
	in := csv.NewReader(bytes.NewReader(text))
	in.ReuseRecord = true
	if ext := strings.ToLower(filepath.Ext(f.path)); ext == ".tsv" || ext == ".tab" {
		in.Comma = '\t'
	}
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is empty: a sample has a header and rows", f.path)
	}
	if err != nil {
		return f.csvError(err)
	}
	f.names = slices.Clone(header)
	if err := f.checkNames(); err != nil {
		return err
	}
	f.columns, f.unit = make([]sampleColumn, len(f.names)), "line"

	at := lineStarts{text: text, line: 1}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.csvError(err)
		}
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
	if len(f.lines) == 0 {
		return fmt.Errorf("%s has a header and no rows", f.path)
	}
	return nil
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
