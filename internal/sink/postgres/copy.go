package postgres

import (
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
	bytes, rows, err := s.conn.Take(&copyData{wire: &s.wire}, count)
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

// copyData reads the data of the messages of a COPY, up to the one that ends it.
type copyData struct {
	*wire
	left int // of the message
}

func (c *copyData) Read(p []byte) (int, error) {
	for c.left == 0 {
		kind, n, err := c.header()
		if err != nil {
			return 0, sink.Unexpected(err)
		}
		if kind == 'd' {
			c.left = n
			continue
		}
		if _, err := c.in.Discard(n); err != nil {
			return 0, sink.Unexpected(err)
		}
		switch kind {
		case 'H', 'S': // clients that pipeline send these; they mean nothing here
		case 'c':
			return 0, io.EOF
		case 'f':
			return 0, errCopyFailed
		default:
			return 0, errMalformed
		}
	}
	n, err := c.in.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, sink.Unexpected(err)
}
