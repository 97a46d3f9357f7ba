package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// Body is what follows a head: as many bytes as it says, or chunks. It is read in pieces that lie on the connection side
// by side, so that each can be counted where it lies or dropped there.
type Body struct {
	stream  *sink.Stream
	left    int64 // of the piece at hand
	chunked bool
	waits   bool // the client waits to be asked for it
	inside  bool // a chunk has begun: its line end comes before the next
	ended   bool
}

func newBody(stream *sink.Stream, r *http.Request) *Body {
	b := &Body{stream: stream, left: max(r.ContentLength, 0), chunked: r.ContentLength < 0}
	b.waits = (b.chunked || b.left > 0) && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
	b.ended = !b.chunked && b.left == 0
	return b
}

// Empty reports whether the head announces no body.
func (b *Body) Empty() bool { return !b.chunked && b.left == 0 }

// awaited reports whether the client still waits to be asked for the body.
func (b *Body) awaited() bool { return b.waits }

// Length returns how many bytes are to come, −1 if that is not known.
func (b *Body) Length() int64 {
	if b.chunked {
		return -1
	}
	return b.left
}

// More makes sure that there is a piece at hand; false is the end of the body.
func (b *Body) More() (bool, error) {
	if b.waits {
		b.waits = false
		if _, err := io.WriteString(b.stream, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return false, err
		}
	}
	if b.left == 0 && b.chunked && !b.ended {
		if err := b.chunk(); err != nil {
			return false, err
		}
	}
	b.ended = b.left == 0
	return !b.ended, nil
}

// chunk reads the line in front of a chunk, and behind the last one the trailers, of which none means anything here.
func (b *Body) chunk() error {
	if b.inside {
		if line, err := b.wireLine(); err != nil || len(line) > 0 {
			return errors.Join(malformed("a chunk is longer than its size"), err)
		}
	}
	line, err := b.wireLine()
	if err != nil {
		return err
	}
	if b.left, err = ChunkSize(line); err != nil {
		return err
	}
	b.inside = true
	for total := 0; b.left == 0; total += len(line) {
		if line, err = b.wireLine(); err != nil || len(line) == 0 {
			return err
		}
		if total > longestHead {
			return malformed("trailers are longer than 64 KiB")
		}
	}
	return nil
}

// ChunkSize reads the hexadecimal size that a chunk's line begins with; what follows a semicolon is for others.
func ChunkSize(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 63)
	if err != nil {
		return 0, malformed("%.40q is no size of a chunk", digits)
	}
	return int64(size), nil
}

// longestLine bounds the lines between chunks. A signature of aws-chunked has a hundred bytes.
const longestLine = 4 << 10

// wireLine reads a line that belongs to the chunks.
func (b *Body) wireLine() ([]byte, error) {
	return line(func() (byte, error) {
		p, err := b.stream.Some(1)
		if err != nil {
			return 0, unexpected(err)
		}
		return p[0], nil
	})
}

func line(next func() (byte, error)) ([]byte, error) {
	var text []byte
	for len(text) <= longestLine {
		c, err := next()
		if err != nil {
			return nil, err
		}
		if c == '\n' {
			return bytes.TrimSuffix(text, []byte("\r")), nil
		}
		text = append(text, c)
	}
	return nil, malformed("a line is longer than 4 KiB")
}

// Line reads a line of the body, without its end. The end of the body before is an error.
func (b *Body) Line() ([]byte, error) {
	return line(func() (byte, error) {
		p, err := b.Some(1)
		if errors.Is(err, io.EOF) {
			return 0, malformed("the body ends within a line")
		}
		if err != nil {
			return 0, err
		}
		return p[0], nil
	})
}

// Some reads at least one byte and at most limit. They are valid until the next call. io.EOF is the end of the body.
func (b *Body) Some(limit int) ([]byte, error) {
	there, err := b.More()
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, io.EOF
	}
	p, err := b.stream.Some(int(min(b.left, int64(limit))))
	b.left -= int64(len(p))
	return p, unexpected(err)
}

// Read is Some as an io.Reader.
func (b *Body) Read(to []byte) (int, error) {
	if len(to) == 0 {
		return 0, nil
	}
	p, err := b.Some(len(to))
	return copy(to, p), err
}

// maxTake is what a load takes at a time: an int, wherever it is small.
const maxTake = 1 << 30

// Take takes the next bytes into a load: limit of them, or what there is.
func (b *Body) Take(l *sink.Load, limit int64) (n int64, err error) {
	return b.each(limit, l.Take)
}

// TakeAll takes what is left into a load.
func (b *Body) TakeAll(l *sink.Load) (n int64, err error) { return b.Take(l, 1<<63-1) }

// Drop passes over what is left.
func (b *Body) Drop() error {
	_, err := b.each(1<<63-1, b.stream.Drop)
	return err
}

func (b *Body) each(limit int64, take func(int) error) (n int64, err error) {
	for n < limit {
		there, err := b.More()
		if err != nil || !there {
			return n, err
		}
		size := min(b.left, limit-n, maxTake)
		if err := take(int(size)); err != nil {
			return n, unexpected(err)
		}
		b.left -= size
		n += size
	}
	return n, nil
}

// Text reads the whole body, which is refused when it is longer than limit.
func (b *Body) Text(limit int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(b, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = &Malformed{http.StatusRequestEntityTooLarge, "the body is too long for what it is sent to"}
	}
	return text, err
}
