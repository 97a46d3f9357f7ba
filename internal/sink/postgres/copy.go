package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// copyIn takes in the data of one COPY, after the answers before it have been sent.
func (s *session) copyIn(sql string, before []pgproto3.BackendMessage) (outcome, error) {
	m := copyIn.FindStringSubmatch(sql)
	if m == nil {
		return refuse(errUnsupported, "terapush sink: only COPY … FROM STDIN"), nil
	}
	format := formatOf(m[1], m[2])
	var rows sink.RowCounter
	if !s.conn.Options.NoCount {
		var why string
		if rows, why = format.counter(); why != "" {
			return refuse(errUnsupported, "terapush sink: "+why), nil
		}
	}
	overall := byte(0)
	if format.binary {
		overall = 1
	}
	// A real server lists the columns here. No client depends on it, and the sink has no tables.
	if err := s.send(append(before, &pgproto3.CopyInResponse{OverallFormat: overall})...); err != nil {
		return outcome{}, err
	}
	o, err := s.take(rows)
	o.copied = true
	return o, err
}

func (s *session) take(count sink.RowCounter) (outcome, error) {
	var bytes, rows int64
	err := s.conn.Wide(s.in, func(in *bufio.Reader) (err error) {
		data := wire{conn: s.conn, in: in}
		bytes, rows, err = s.conn.Take(&sink.Packets{In: in, Next: data.nextCopy}, count)
		return err
	})
	bad := (*sink.DataError)(nil)
	switch {
	case errors.Is(err, errCopyFailed):
		return refuse(errCanceled, err.Error()), nil
	case errors.Is(err, sink.ErrTold):
		return injected(), nil
	case errors.As(err, &bad):
		return refuse(errBadFormat, err.Error()), nil
	case err != nil:
		return outcome{}, err
	}
	s.conn.Loaded(bytes, rows)
	return done(fmt.Sprintf("COPY %d", rows)), nil
}

var errCopyFailed = errors.New("COPY from stdin failed")

// nextCopy reads the header of the next message with data, up to the one that ends the COPY.
func (w *wire) nextCopy() (int, error) {
	for {
		kind, n, err := w.header()
		if err == nil && kind == 'd' {
			return n, nil
		}
		if err == nil {
			_, err = w.in.Discard(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case kind == 'H' || kind == 'S': // clients that pipeline send these; they mean nothing here
		case kind == 'c':
			return 0, io.EOF
		case kind == 'f':
			return 0, errCopyFailed
		default:
			return 0, errMalformed
		}
	}
}
