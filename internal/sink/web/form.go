package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/textproto"

	"github.com/terapush/terapush/internal/sink"
)

// File is a part of a form that has a file's name.
type File struct {
	// Field is the part's name and Name the file's, as the client wrote it.
	Field, Name string
	Bytes, Rows int64
	// Failed is what the counter had to say, or that the sink was told to fail the load.
	Failed error

	count sink.RowCounter
	crc   uint32
}

// maxFiles bounds the files of one form.
const maxFiles = 1000

// TakeForm takes the files of a form, each as a load of its own whose rows the counter that open makes knows. Where the
// data is dropped in the kernel, the form has to have one part and to say how long it is, since a boundary cannot be
// looked for there. What was loaded is in the files, and left to the caller to count.
func (x *Exchange) TakeForm(open func() sink.RowCounter) ([]*File, error) {
	kind, options, err := mime.ParseMediaType(x.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || options["boundary"] == "" || len(options["boundary"]) > maxBoundary {
		return nil, errNoForm
	}
	if !x.Counting() {
		return x.dropForm(options["boundary"])
	}
	f := newForm(options["boundary"], open, x.Stream.Options.CRC)
	load := x.Stream.Load(f)
	_, err = x.Content.TakeAll(load)
	load.GiveUp() // the form is no load: its files are
	if err != nil {
		return nil, err
	}
	if _, err := f.Rows(); err != nil {
		return nil, err
	}
	for _, file := range f.files {
		if file.Failed == nil {
			file.Failed = x.Stream.Settle(file.crc)
		}
	}
	return f.files, nil
}

// ErrForm reports that a body is not the form that it should be.
var ErrForm = errors.New("this is not the multipart/form-data that is expected")

var (
	errNoForm     = fmt.Errorf("%w: there is no boundary", ErrForm)
	errFormLength = fmt.Errorf("%w: where nothing is counted, it has to say its length: send Content-Length, not chunks", ErrForm)
	errFormEnd    = fmt.Errorf("%w: it does not end with its boundary and a line end", ErrForm)
	errFormPart   = fmt.Errorf("%w: a part's head cannot be read", ErrForm)
	errFormFiles  = fmt.Errorf("%w: it has more than 1,000 files", ErrForm)
)

// maxBoundary is what RFC 2046 allows, in bytes.
const maxBoundary = 70

// dropForm takes the one part of a form without looking at it, and looks at what is behind it.
func (x *Exchange) dropForm(boundary string) ([]*File, error) {
	size := x.Content.Length()
	if size < 0 {
		return nil, errFormLength
	}
	// A form without a part has no line end in front of its boundary.
	if size <= int64(len(boundary)+8) {
		text, err := x.Content.Text(longestHead)
		if err == nil && !bytes.HasPrefix(text, []byte("--"+boundary+"--")) {
			err = errFormEnd
		}
		return nil, err
	}
	var head []byte
	for !endsHead(head) {
		p, err := x.Content.Line()
		if err != nil {
			return nil, err
		}
		if head = append(append(head, p...), "\r\n"...); len(head) > longestHead {
			return nil, errFormPart
		}
	}
	first, head, _ := bytes.Cut(head, []byte("\r\n"))
	file, err := readPart(head)
	if string(first) != "--"+boundary || err != nil {
		return nil, errors.Join(errFormPart, err)
	}
	tail := "\r\n--" + boundary + "--\r\n"
	load := x.Stream.Load(nil)
	if _, err := x.Content.Take(load, x.Content.Length()-int64(len(tail))); err != nil {
		return nil, err
	}
	file.Bytes, file.Rows, file.Failed = load.End()
	if end, err := x.Content.Text(longestHead); err != nil || string(end) != tail {
		return nil, errors.Join(errFormEnd, err)
	}
	if file.Name == "" {
		return nil, nil
	}
	return []*File{file}, nil
}

// readPart reads a part's head. Line feeds by themselves are refused, for what is behind them others read otherwise.
func readPart(head []byte) (*File, error) {
	if bytes.Count(head, []byte("\n")) != bytes.Count(head, []byte("\r\n")) {
		return nil, errFormPart
	}
	fields, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(head))).ReadMIMEHeader()
	if err != nil {
		return nil, errFormPart
	}
	_, options, err := mime.ParseMediaType(fields.Get("Content-Disposition"))
	if err != nil {
		return nil, errFormPart
	}
	// Not FileName of mime/multipart, which leaves out folders: Databend's clients name them there.
	return &File{Field: options["name"], Name: options["filename"]}, nil
}

// place is where in a form we are.
type place int

const (
	inData     place = iota // of a part, or in front of the first
	onBoundary              // on the line of a boundary, behind it
	inHead                  // of a part
	behind                  // the last boundary
)

// form takes a form apart as it comes in, in pieces of any size. Nothing of it is kept but the heads.
type form struct {
	delimiter []byte // line end, dashes and boundary: the one byte \r in it is its first
	open      func() sink.RowCounter
	checked   bool // checksums are wanted

	at      place
	matched int    // bytes of the delimiter that the data ends with
	text    []byte // of a line or a head
	part    *File  // nil in front of the first, and in one that is no file
	files   []*File
	err     error
}

func newForm(boundary string, open func() sink.RowCounter, checked bool) *form {
	// In front of the first boundary there need not be a line end.
	return &form{delimiter: []byte("\r\n--" + boundary), open: open, checked: checked, matched: 2}
}

// Write takes in p.
func (f *form) Write(p []byte) {
	for len(p) > 0 && f.err == nil {
		switch f.at {
		case inData:
			p = f.data(p)
		case onBoundary:
			p = f.line(p)
		case inHead:
			p = f.head(p)
		case behind:
			return
		}
	}
}

// data takes in a part's data up to the delimiter, and returns what is behind it.
func (f *form) data(p []byte) []byte {
	if f.matched == 0 {
		i := bytes.IndexByte(p, '\r')
		if i < 0 {
			f.take(p)
			return nil
		}
		f.take(p[:i])
		f.matched, p = 1, p[i+1:]
	}
	for len(p) > 0 && f.matched < len(f.delimiter) {
		if p[0] != f.delimiter[f.matched] { // what looked like a beginning was data
			f.take(f.delimiter[:f.matched])
			f.matched = 0
			return p
		}
		f.matched, p = f.matched+1, p[1:]
	}
	if f.matched == len(f.delimiter) {
		f.end()
	}
	return p
}

// end ends a part.
func (f *form) end() {
	if f.part != nil {
		f.part.Rows, f.part.Failed = f.part.count.Rows()
		f.part.count = nil
	}
	f.at, f.matched, f.text, f.part = onBoundary, 0, f.text[:0], nil
}

func (f *form) take(p []byte) {
	if f.part == nil || len(p) == 0 {
		return
	}
	f.part.Bytes += int64(len(p))
	f.part.count.Write(p)
	if f.checked {
		f.part.crc = sink.Checksum(f.part.crc, p)
	}
}

// line reads what is behind a boundary: two dashes, which end the form, or the end of the line.
func (f *form) line(p []byte) []byte {
	f.text, p = append(f.text, p[0]), p[1:]
	switch {
	case bytes.HasPrefix(f.text, []byte("--")):
		f.at = behind
	case f.text[len(f.text)-1] == '\n':
		if blank, ended := bytes.CutSuffix(f.text, []byte("\r\n")); !ended || len(bytes.Trim(blank, " \t")) > 0 {
			f.err = errFormPart
		}
		f.at, f.text = inHead, f.text[:0]
	case len(f.text) > longestLine:
		f.err = errFormPart
	}
	return p
}

// head reads a part's head.
func (f *form) head(p []byte) []byte {
	f.text, p = append(f.text, p[0]), p[1:]
	switch {
	case bytes.HasSuffix(f.text, []byte("\r\n\r\n")) || string(f.text) == "\r\n":
		f.begin()
	case len(f.text) > longestLine: // of a thousand files
		f.err = errFormPart
	}
	return p
}

func (f *form) begin() {
	file, err := readPart(f.text)
	if err != nil {
		f.err = err
		return
	}
	f.at, f.text = inData, f.text[:0]
	if file.Name == "" {
		return // a field of another kind
	}
	if len(f.files) == maxFiles {
		f.err = errFormFiles
		return
	}
	file.count = f.open()
	f.part, f.files = file, append(f.files, file)
}

// Rows returns an error unless the form is whole. Its rows are its files'.
func (f *form) Rows() (int64, error) {
	if f.err == nil && f.at != behind {
		return 0, errFormEnd
	}
	return 0, f.err
}
