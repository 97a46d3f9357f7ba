package databend

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"strings"
)

// streamingLoad takes the file of a form as the rows of a statement.
func (r *request) streamingLoad() (any, error) {
	format, err := formatOfSQL(r.Header.Get("X-Databend-Sql"))
	if err != nil {
		return nil, err
	}
	count, err := format.counter()
	if err != nil {
		return nil, failed(codeUnimplemented, err.Error())
	}
	file, err := r.form()
	if err != nil {
		return nil, err
	}
	size, rows, err := r.conn.Take(file, count)
	if err != nil {
		return nil, loadError(err)
	}
	if err := file.close(); err != nil {
		return nil, err
	}
	r.conn.Loaded(size, rows)
	return map[string]any{"id": r.id(), "stats": map[string]int64{"rows": rows, "bytes": size}}, nil
}

// maxPart bounds the head of a form's part, in bytes.
const maxPart = 4 << 10

// formFile is the one file of a form that says its length: what lies between the head of its part and its end. To look
// for boundaries in between as mime/multipart does would take more time than all else.
type formFile struct {
	io.Reader
	name string
	body *bufio.Reader
	end  string
	next []byte // what another part would begin with; nil where nobody looks
	last []byte // the end of what was read, in which that may have begun
}

// form opens the form of a request.
func (r *request) form() (*formFile, error) {
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	boundary := options["boundary"]
	if err != nil || kind != "multipart/form-data" || boundary == "" {
		return nil, failed(http.StatusBadRequest, "the body is no multipart/form-data with a boundary")
	}
	if r.ContentLength < 0 {
		return nil, failed(http.StatusBadRequest, "a form has to say its length: send Content-Length, not chunks")
	}

	f := &formFile{body: bufio.NewReaderSize(r.Body, maxPart), end: "\r\n--" + boundary + "--\r\n"}
	head, err := f.body.Peek(int(min(maxPart, r.ContentLength)))
	size := bytes.Index(head, []byte("\r\n\r\n")) + 4
	if err != nil || size < 4 || !strings.HasPrefix(string(head), "--"+boundary) {
		return nil, failed(http.StatusBadRequest, "the form has no part with a head of at most 4 KiB")
	}
	fields := textproto.NewReader(bufio.NewReader(bytes.NewReader(head[:size])))
	_, _ = fields.ReadLine() // the boundary
	about, _ := fields.ReadMIMEHeader()
	_, disposition, _ := mime.ParseMediaType(about.Get("Content-Disposition"))
	if f.name = disposition["filename"]; f.name == "" {
		return nil, failed(http.StatusBadRequest, "the form's one part is a file with a name")
	}
	_, _ = f.body.Discard(size) // it was peeked at

	f.Reader = io.LimitReader(f.body, r.ContentLength-int64(size+len(f.end)))
	if !r.conn.Options.NoCount {
		f.next = []byte("\r\n--" + boundary)
	}
	return f, nil
}

var errParts = errors.New("a form has one part here: send several files in several forms")

// Read reads from the file. It fails where another part follows, which would pass for rows.
func (f *formFile) Read(to []byte) (int, error) {
	n, err := f.Reader.Read(to)
	if f.next == nil || n == 0 {
		return n, err
	}
	keep := len(f.next) - 1
	f.last = append(f.last, to[:min(n, keep)]...)
	if bytes.Contains(f.last, f.next) || bytes.Contains(to[:n], f.next) {
		return n, errParts
	}
	if n > keep {
		f.last = append(f.last[:0], to[n-keep:n]...)
	}
	f.last = append(f.last[:0], f.last[max(0, len(f.last)-keep):]...)
	return n, err
}

// close reads what stands behind the file.
func (f *formFile) close() error {
	if end, err := io.ReadAll(f.body); err != nil || string(end) != f.end {
		return failed(http.StatusBadRequest, "the form does not end with its boundary and a line end")
	}
	return nil
}
