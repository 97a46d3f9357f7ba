package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/pkg/batch"
)

// copyIn runs statements of which the last one is a COPY … FROM STDIN, with the batch as its data.
//
// pgconn.CopyFrom copies the data into a buffer of 64 KiB and writes that: 1.26 to 1.37 times the client CPU of a plain
// write loop, against 1.11 to 1.15 for a whole push by frames of 256 KiB that the kernel takes out of the ring itself,
// stamping included. (PostgreSQL's documentation, "COPY Operations", calls the frames CopyData; their bounds mean
// nothing.)
//
// The server may answer while data is sent: an error ends the sending at once, and the server drops the frames on their
// way. ("Any subsequent CopyData, CopyDone, or CopyFail messages issued by the frontend will simply be dropped": the same
// chapter.) So where takesAhead says so, the data does not wait for the server to ask for it. When copyIn returns, nothing
// reads the batch any more.
func (s *session) copyIn(ctx context.Context, statements string, b *batch.Batch) answer {
	body := b.Open()
	defer func() { _ = body.Close() }()
	// A cancelled context must reach a Write and a Read that block. pgconn does it by deadlines as well.
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Conn().SetDeadline(time.Unix(1, 0)) })
	a := s.exchange(statements, body)
	if !stop() || a.lost {
		// A connection in the middle of a message, or with a deadline in the past, cannot be used again.
		closeSocket(s.conn)
		_ = closeConn(s.conn)
	}
	if a.lost && ctx.Err() != nil {
		a.err = ctx.Err()
	}
	return a
}

// answer is the server's answer to statements with a COPY.
type answer struct {
	claimed bool  // one row was inserted before the COPY
	ready   bool  // for the data
	rows    int64 // of the COPY
	err     error // the server's, or the connection's
	lost    bool  // the connection
}

// answerTimeout is how long a connection that takes no more data may still bring the server's reason.
const answerTimeout = time.Second

// exchange sends the statements and the data, and returns the last answer.
func (s *session) exchange(statements string, body *batch.Body) answer {
	front := s.conn.Frontend()
	front.SendQuery(&pgproto3.Query{String: statements})
	if err := front.Flush(); err != nil {
		return answer{err: err, lost: true}
	}
	if !s.ahead {
		if a := s.receive(front, true); !a.ready || a.err != nil {
			return a
		}
	}
	last := make(chan answer, 1)
	frames := &frames{to: s.conn.Conn()}
	go func() {
		a := s.receive(front, false)
		frames.answered.Store(true)
		last <- a
	}()
	_, err := body.WriteTo(frames)
	if err == nil {
		// The frontend's buffer belongs to the goroutine that receives.
		_, err = frames.to.Write([]byte{'c', 0, 0, 0, 4}) // CopyDone
	}
	if err != nil && !frames.answered.Load() {
		_ = s.conn.Conn().SetReadDeadline(time.Now().Add(answerTimeout))
	}
	a := <-last
	a.lost = a.lost || err != nil && !errors.Is(err, errAnswered)
	if a.lost && (a.err == nil || errors.Is(a.err, os.ErrDeadlineExceeded)) {
		a.err = err
	}
	return a
}

// receive reads messages until the server is ready for the next message, or for data if that is waited for.
func (s *session) receive(front *pgproto3.Frontend, data bool) (a answer) {
	for {
		message, err := front.Receive()
		if err != nil {
			a.lost = true
			if a.err == nil { // otherwise the server has said why it closes the connection
				a.err = err
			}
			return a
		}
		switch m := message.(type) {
		case *pgproto3.CopyInResponse:
			a.ready = true
			if data {
				return a
			}
		case *pgproto3.CommandComplete:
			tag := pgconn.NewCommandTag(string(m.CommandTag))
			switch {
			case tag.Insert():
				a.claimed = tag.RowsAffected() == 1
			case strings.HasPrefix(tag.String(), "COPY"):
				a.rows = tag.RowsAffected()
			}
		case *pgproto3.ErrorResponse:
			a.err = serverError{pgconn.ErrorResponseToPgError(m)}
		case *pgproto3.NoticeResponse:
			s.addNotice(m.Severity, m.Message)
		case *pgproto3.ReadyForQuery:
			return a
		}
	}
}

// frameBytes is the data of one CopyData message. More makes no difference to the client's CPU.
const frameBytes = 256 << 10

// errAnswered ends the sending when the server has answered before it had everything.
var errAnswered = errors.New("the server has answered already")

// frames writes data as CopyData messages until the server has answered.
type frames struct {
	to       net.Conn
	answered atomic.Bool
	copy     []byte // header and data, for connections that cannot take both at once
}

// vectored is a connection that takes several buffers with one system call, as the dialer's do.
type vectored interface {
	WriteBuffers(b *net.Buffers) (int64, error)
}

// Write sends p in whole frames.
func (f *frames) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		if f.answered.Load() {
			return sent, errAnswered
		}
		data := p[sent:min(sent+frameBytes, len(p))]
		var header [5]byte
		header[0] = 'd'
		binary.BigEndian.PutUint32(header[1:], uint32(4+len(data)))
		if err := f.write(header[:], data); err != nil {
			return sent, err
		}
		sent += len(data)
	}
	return sent, nil
}

func (f *frames) write(header, data []byte) error {
	if v, ok := f.to.(vectored); ok {
		_, err := v.WriteBuffers(&net.Buffers{header, data})
		return err
	}
	// TLS makes a record of each Write: the header alone would be one.
	f.copy = append(append(f.copy[:0], header...), data...)
	_, err := f.to.Write(f.copy)
	return err
}
