package postgres

import (
	"errors"
	"fmt"

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
	if !s.stream.Options.NoCount {
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
	o, err := s.take(s.stream.Load(rows))
	o.copied = true
	return o, err
}

func (s *session) take(load *sink.Load) (outcome, error) {
	for {
		kind, n, err := s.header()
		if err != nil {
			return outcome{}, err
		}
		switch kind {
		case 'd':
			err = load.Take(n)
		case 'H', 'S': // clients that pipeline send these; they mean nothing here
			err = s.stream.Drop(n)
		case 'c':
			if err := s.stream.Drop(n); err != nil {
				return outcome{}, err
			}
			return s.copied(load), nil
		case 'f':
			if err := s.stream.Drop(n); err != nil {
				return outcome{}, err
			}
			load.GiveUp()
			return refuse(errCanceled, "COPY from stdin failed"), nil
		default:
			return outcome{}, errMalformed
		}
		if err != nil {
			return outcome{}, err
		}
	}
}

func (s *session) copied(load *sink.Load) outcome {
	bytes, rows, err := load.End()
	switch {
	case errors.Is(err, sink.ErrTold):
		return injected()
	case err != nil:
		return refuse(errBadFormat, err.Error())
	}
	s.count.Loaded(bytes, rows)
	return done(fmt.Sprintf("COPY %d", rows))
}
