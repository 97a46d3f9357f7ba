// Package web is a sink for loads over HTTP/1.1: bodies of a known length that are put, bare or as the one part of a form.
// What it answers is a text, so it stands in for an object store as well as for a database that is loaded over HTTP.
package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// Answers are what the sink says. The zero value is an object store that is always empty.
type Answers struct {
	// Load is the answer's body after a PUT that brought rows. {rows} and {bytes} in it are replaced by what arrived,
	// {label} by the header of that name.
	Load string
	// Query makes the answer's body to everything else from the request's body, of which it sees the beginning. nil is a
	// store's empty listing.
	Query func(body string) string
	// Redirects tells that a PUT without a body asks where its rows may go: to this same server.
	Redirects bool
}

// emptyBucket answers the listing that S3 clients begin with.
const emptyBucket = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
	`<KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>`

// Listen opens a sink on addr that answers as an object store.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return ListenWith(addr, o, Answers{}) }

// ListenWith opens a sink on addr.
func ListenWith(addr string, o sink.Options, a Answers) (*sink.Server, error) {
	if a.Query == nil {
		a.Query = func(string) string { return emptyBucket }
	}
	return sink.Listen(addr, o, func(_ uint32, stream *sink.Stream, count *sink.Counters) error {
		for {
			if err := serve(stream, count, a); err != nil {
				return err
			}
		}
	})
}

// serve takes one request.
func serve(stream *sink.Stream, count *sink.Counters, a Answers) error {
	r, err := readHead(stream)
	if err != nil {
		return err
	}
	count.Statement()
	switch {
	case r.ContentLength < 0:
		return errors.Join(errors.New("web sink: a body of unknown length"), answer(stream, http.StatusLengthRequired, r, ""))
	case r.ContentLength == 0 && r.Method == http.MethodPut && a.Redirects:
		return answer(stream, http.StatusTemporaryRedirect, r, "")
	case r.ContentLength == 0 || r.Method != http.MethodPut:
		// Only loads bring bytes worth counting.
		body, err := begin(stream, int(r.ContentLength))
		if err != nil {
			return err
		}
		return answer(stream, http.StatusOK, r, a.Query(body))
	}
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(stream, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	took, rows, err := take(stream, r)
	if err != nil {
		return err
	}
	count.Loaded(took, rows)
	said := strings.NewReplacer("{rows}", strconv.FormatInt(rows, 10), "{bytes}", strconv.FormatInt(took, 10),
		"{label}", r.Header.Get("label")).Replace(a.Load)
	return answer(stream, http.StatusOK, r, said)
}

// take takes the rows in: the whole body, or the part of the form that it is.
func take(stream *sink.Stream, r *http.Request) (took, rows int64, err error) {
	size, tail := int(r.ContentLength), 0
	if kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		tail = len("\r\n--" + options["boundary"] + "--\r\n")
		if size < tail { // a form without a part has no line end in front of its boundary
			return 0, 0, stream.Drop(size)
		}
		head, err := readUpTo(stream, "\r\n\r\n", min(size-tail, longestHead))
		if err != nil {
			return 0, 0, err
		}
		size -= len(head) + tail
	}
	load := stream.Load(&ends{end: rowEnd(r)})
	if err := load.Take(size); err != nil {
		return 0, 0, err
	}
	took, rows, _ = load.End() // any text is rows
	return took, rows, stream.Drop(tail)
}

// rowEnd is the byte that ends a row: Doris is told, to all others it is a line feed.
func rowEnd(r *http.Request) byte {
	if text, err := strconv.Unquote(`"` + r.Header.Get("line_delimiter") + `"`); err == nil && len(text) == 1 {
		return text[0]
	}
	return '\n'
}

// ends counts rows by what ends them, and a last one that nothing ends.
type ends struct {
	end  byte
	n    int64
	open bool
}

func (e *ends) Write(p []byte) {
	if len(p) > 0 {
		e.n += int64(bytes.Count(p, []byte{e.end}))
		e.open = p[len(p)-1] != e.end
	}
}

func (e *ends) Rows() (int64, error) {
	if e.open {
		return e.n + 1, nil
	}
	return e.n, nil
}

// begin reads the beginning of a body and drops the rest.
func begin(stream *sink.Stream, size int) (string, error) {
	body := make([]byte, 0, min(size, longestHead))
	for len(body) < cap(body) {
		p, err := stream.Some(cap(body) - len(body))
		if err != nil {
			return "", err
		}
		body = append(body, p...)
	}
	return string(body), stream.Drop(size - len(body))
}

// longestHead bounds what a client may say before the rows, in bytes.
const longestHead = 64 << 10

// readHead reads up to the empty line and not a byte further, for what follows may be dropped inside the kernel.
func readHead(stream *sink.Stream) (*http.Request, error) {
	head, err := readUpTo(stream, "\r\n\r\n", longestHead)
	if err != nil {
		return nil, err
	}
	return http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
}

func readUpTo(stream *sink.Stream, end string, most int) ([]byte, error) {
	var head []byte
	for !bytes.HasSuffix(head, []byte(end)) {
		if len(head) >= most {
			return nil, errors.New("web sink: a head is too long, or has no end")
		}
		p, err := stream.Some(1)
		if err != nil {
			return nil, err
		}
		head = append(head, p...)
	}
	return head, nil
}

func answer(stream *sink.Stream, status int, r *http.Request, body string) error {
	var location string
	if status == http.StatusTemporaryRedirect {
		location = "Location: http://" + r.Host + r.URL.RequestURI() + "\r\n"
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nServer: terapush-sink\r\nETag: \"0\"\r\n%sContent-Length: %d\r\n\r\n",
		status, http.StatusText(status), location, len(body))
	if r.Method == http.MethodHead {
		body = ""
	}
	_, err := io.WriteString(stream, head+body)
	return err
}
