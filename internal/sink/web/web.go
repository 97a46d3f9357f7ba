// Package web is what the sinks over HTTP/1.1 share. It reads a request's head byte by byte and not one further, so that
// the body can be dropped inside the kernel; it takes bodies of either framing into loads; and it takes forms apart.
//
// net/http's server is not used: it reads ahead, copies every body through a buffer of its own, and hides whether a
// client waits to be asked for one.
package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// Handler answers one request. An error ends the connection; a *Malformed is answered before.
type Handler func(*Exchange) error

// Talk makes a handler a protocol of the sink.
func Talk(h Handler) sink.Protocol {
	return func(_ uint32, stream *sink.Stream, count *sink.Counters) error {
		if err := stream.AcceptTLS("http/1.1"); err != nil {
			return err
		}
		for {
			if err := serve(stream, count, h); err != nil {
				return err
			}
		}
	}
}

// Malformed is how a request violates HTTP. Where the next request begins is not known any more.
type Malformed struct {
	Status int
	Reason string
}

func (m *Malformed) Error() string { return "web sink: " + m.Reason }

func malformed(format string, values ...any) error {
	return &Malformed{http.StatusBadRequest, fmt.Sprintf(format, values...)}
}

var errClosing = errors.New("web sink: the connection was to be closed")

// serve takes one request.
func serve(stream *sink.Stream, count *sink.Counters, h Handler) error {
	x, err := accept(stream, count)
	if err == nil {
		err = h(x)
	}
	var bad *Malformed
	switch {
	case errors.As(err, &bad) && (x == nil || !x.answered):
		return errors.Join(err, refuse(stream, bad))
	case err != nil:
		return err
	case !x.answered:
		return errors.New("web sink: a request without an answer")
	case x.Close:
		return errClosing
	}
	return nil
}

// refuse answers what is no request, or has no end.
func refuse(stream *sink.Stream, bad *Malformed) error {
	_, err := fmt.Fprintf(stream, "HTTP/1.1 %d %s\r\nServer: %s\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\n",
		bad.Status, http.StatusText(bad.Status), stream.Options.Name(), len(bad.Reason)+1, bad.Reason)
	return err
}

// Exchange is a request and its answer. The Body of the Request is empty: Exchange.Content is the one to read.
type Exchange struct {
	*http.Request
	// Content is what follows the head.
	Content *Body
	// Count is where what was loaded is counted.
	Count *sink.Counters
	// Stream is the connection: its options, and loads that begin on it.
	Stream *sink.Stream

	answered bool
}

// longestHead bounds a head, and what a client may say besides rows, in bytes.
const longestHead = 64 << 10

// accept reads a head. Between two requests a client may take its time, within a head it may not.
func accept(stream *sink.Stream, count *sink.Counters) (*Exchange, error) {
	first, err := stream.Some(1)
	if err != nil {
		return nil, err
	}
	if err := stream.Hurry(); err != nil {
		return nil, err
	}
	head := append(make([]byte, 0, 1<<10), first...)
	for !endsHead(head) {
		if len(head) >= longestHead {
			return nil, &Malformed{http.StatusRequestHeaderFieldsTooLarge, "a head is longer than 64 KiB"}
		}
		p, err := stream.Some(1)
		if err != nil {
			return nil, err
		}
		head = append(head, p...)
	}
	if err := stream.Relax(); err != nil {
		return nil, err
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return nil, malformed("%v", err)
	}
	if r.Method == "PRI" || r.ProtoMajor != 1 {
		return nil, &Malformed{http.StatusHTTPVersionNotSupported, "HTTP/1.1 is spoken here"}
	}
	count.Statement()
	r.Close = r.Close || !r.ProtoAtLeast(1, 1)
	return &Exchange{Request: r, Content: newBody(stream, r), Stream: stream, Count: count}, nil
}

// endsHead reports whether an empty line is the last.
func endsHead(head []byte) bool {
	rest, ended := bytes.CutSuffix(head, []byte("\n"))
	return ended && (bytes.HasSuffix(rest, []byte("\n\r")) || bytes.HasSuffix(rest, []byte("\n")))
}

// Counting reports whether loads are looked at, and not dropped.
func (x *Exchange) Counting() bool { return !x.Stream.Options.NoCount }

// Answer sends the answer, with header fields as names and values in turn. What is left of the body is dropped before,
// since a client that is still sending may never read what it is told. One that waits to be asked for its body is not
// asked any more; whether it sends it all the same is not known, so that its connection ends.
func (x *Exchange) Answer(status int, kind string, body []byte, fields ...string) error {
	x.answered = true
	if x.Content.awaited() {
		x.Close = true
	} else if err := x.Content.Drop(); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nServer: %s\r\n", status, http.StatusText(status), x.Stream.Options.Name())
	sized := status == http.StatusNoContent
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", fields[i], fields[i+1])
		sized = sized || strings.EqualFold(fields[i], "Content-Length") // of what a HEAD asks about
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", kind)
	}
	if !sized {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	if x.Close {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	if x.Method != http.MethodHead {
		b.Write(body)
	}
	_, err := x.Stream.Write(b.Bytes())
	return err
}

// Password checks the password of HTTP's own authentication, which is the sink's or, where it has none, any. A token is
// taken for a password.
func (x *Exchange) Password() bool {
	want := x.Stream.Options.Password
	_, given, basic := x.BasicAuth()
	if !basic {
		given, _ = strings.CutPrefix(x.Header.Get("Authorization"), "Bearer ")
	}
	return want == "" || given == want
}

// User returns the name that the client gave, or "".
func (x *Exchange) User() string {
	name, _, _ := x.BasicAuth()
	return name
}

// unexpected makes the end of a connection in the middle of something the error that it is.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
