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

// loadIn runs statements of which the last one takes the batch: as the data of a COPY … FROM STDIN, or as the rest of
// its text in an INSERT. When it returns, nothing reads the batch any more.
//
// The bytes go out of the ring. pgconn.CopyFrom copies them into a buffer of 64 KiB and writes that: 1.26 to 1.37 times
// the client CPU of a plain write loop, against 1.11 to 1.15 for a whole push by writes of 256 KiB that the kernel
// takes itself, stamping included. pgconn.Exec takes an INSERT as a string and copies it once more: six times the
// client CPU.
func (s *session) loadIn(ctx context.Context, statements string, b *batch.Batch) answer {
	body := b.Open()
	defer func() { _ = body.Close() }()
	// A cancelled context must reach a Write and a Read that block. pgconn does it by deadlines as well.
	stop := context.AfterFunc(ctx, func() { _ = s.wire.Conn().SetDeadline(time.Unix(1, 0)) })
	var a answer
	if s.method == methodInsert {
		a = s.insert(statements, body)
	} else {
		a = s.copyIn(statements, body)
	}
	if !stop() || a.lost {
		// A connection in the middle of a message, or with a deadline in the past, cannot be used again.
		closeSocket(s.wire)
		_ = closeConn(s.wire)
	}
	if a.lost && ctx.Err() != nil {
		a.err = ctx.Err()
	}
	return a
}

// answer is the server's answer to the statements of loadIn.
type answer struct {
	ready bool    // for the data of a COPY
	rows  []int64 // of each INSERT and COPY
	err   error   // the server's, or the connection's
	lost  bool    // the connection
}

// count returns the rows of the i-th INSERT or COPY, 0 if there is none.
func (a answer) count(i int) int64 {
	if i >= len(a.rows) {
		return 0
	}
	return a.rows[i]
}

// answerTimeout is how long a connection that takes no more data may still bring the server's reason.
const answerTimeout = time.Second

// copyIn sends statements and the data behind them as messages CopyData, whose bounds mean nothing, and returns the
// last answer.
//
// The server may answer while data is sent: an error ends the sending at once, and the server drops the frames on their
// way. ("Any subsequent CopyData, CopyDone, or CopyFail messages issued by the frontend will simply be dropped":
// PostgreSQL's documentation, "COPY Operations".) So where takesAhead says so, the data does not wait for the server to
// ask for it.
func (s *session) copyIn(statements string, body *batch.Body) answer {
	front := s.wire.Frontend()
	front.SendQuery(&pgproto3.Query{String: statements})
	if err := front.Flush(); err != nil {
		return answer{err: err, lost: true}
	}
	if !s.ahead {
		if a := s.receive(true); !a.ready || a.err != nil {
			return a
		}
	}
	last := make(chan answer, 1)
	frames := &frames{to: s.wire.Conn()}
	go func() {
		a := s.receive(false)
		frames.answered.Store(true)
		last <- a
	}()
	_, err := body.WriteTo(frames)
	if err == nil {
		// The frontend's buffer belongs to the goroutine that receives.
		_, err = frames.to.Write([]byte{'c', 0, 0, 0, 4}) // CopyDone
	}
	if err != nil && !frames.answered.Load() {
		_ = s.wire.Conn().SetReadDeadline(time.Now().Add(answerTimeout))
	}
	return (<-last).after(err)
}

// insert sends a message Query, of which the body is the end. The server reads all of it before it answers.
func (s *session) insert(statements string, body *batch.Body) answer {
	to := s.wire.Conn()
	head := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(4+len(statements)+int(body.Size())+1))
	_, err := to.Write(append(head, statements...))
	if err == nil {
		_, err = body.WriteTo(to)
	}
	if err == nil {
		_, err = to.Write([]byte{0})
	}
	if err != nil {
		_ = to.SetReadDeadline(time.Now().Add(answerTimeout))
	}
	return s.receive(false).after(err)
}

// after returns the answer behind a sending that ended with err.
func (a answer) after(err error) answer {
	a.lost = a.lost || err != nil && !errors.Is(err, errAnswered)
	if a.lost && (a.err == nil || errors.Is(a.err, os.ErrDeadlineExceeded)) {
		a.err = err
	}
	return a
}

// receive reads messages until the server is ready for the next message, or for data if that is waited for.
func (s *session) receive(data bool) (a answer) {
	for {
		message, err := s.wire.Frontend().Receive()
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
			if tag.Insert() || strings.HasPrefix(tag.String(), "COPY") {
				a.rows = append(a.rows, tag.RowsAffected())
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

// frameHeader is a CopyData message's type and length.
const frameHeader = 5

// frameBytes is the data of one CopyData message. The server puts a message together before it parses it: COPY from one
// connection costs PostgreSQL 15 6 % more CPU with messages of 256 KiB, which push its rows out of the nearest cache.
// With 32 KiB the client takes 5 % more.
const frameBytes = 64 << 10

// framesAtOnce go out by one system call.
const framesAtOnce = 4

// tlsFrameBytes is the same over TLS. With its header it is as long as 16 records.
const tlsFrameBytes = 16*tlsRecord - frameHeader

// tlsRecord is the most that a record of TLS holds.
const tlsRecord = 16 << 10

// errAnswered ends the sending when the server has answered before it had everything.
var errAnswered = errors.New("the server has answered already")

// frames writes data as CopyData messages until the server has answered.
type frames struct {
	to       net.Conn
	answered atomic.Bool
	headers  [framesAtOnce][frameHeader]byte
	buffers  [2 * framesAtOnce][]byte
	first    [tlsRecord]byte // of a frame over TLS
}

// Write sends p in whole frames.
func (f *frames) Write(p []byte) (int, error) {
	write, most := f.writeTLS, tlsFrameBytes
	if plain, is := f.to.(*socket); is {
		write, most = func(data []byte) error { return f.writePlain(plain, data) }, framesAtOnce*frameBytes
	}

	sent := 0
	for sent < len(p) {
		if f.answered.Load() {
			return sent, errAnswered
		}
		data := p[sent:min(sent+most, len(p))]
		if err := write(data); err != nil {
			return sent, err
		}
		sent += len(data)
	}
	return sent, nil
}

func (f *frames) writePlain(to *socket, data []byte) error {
	buffers := net.Buffers(f.buffers[:0])
	for i := 0; len(data) > 0; i++ {
		frame := data[:min(frameBytes, len(data))]
		putFrameHeader(f.headers[i][:], frame)
		buffers = append(buffers, f.headers[i][:], frame)
		data = data[len(frame):]
	}
	_, err := to.WriteBuffers(&buffers)
	return err
}

// writeTLS sends one frame. TLS makes records of each Write, so the header takes the start of the data along.
func (f *frames) writeTLS(data []byte) error {
	putFrameHeader(f.first[:], data)
	n := copy(f.first[frameHeader:], data)
	_, err := f.to.Write(f.first[:frameHeader+n])
	if err == nil && n < len(data) {
		_, err = f.to.Write(data[n:])
	}
	return err
}

func putFrameHeader(to, data []byte) {
	to[0] = 'd'
	binary.BigEndian.PutUint32(to[1:], uint32(4+len(data)))
}
