package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// copyIn takes in the data of one COPY.
func (s *session) copyIn(sql string) error {
	m := copyIn.FindStringSubmatch(sql)
	if m == nil {
		return s.fail(errSyntax, "terapush sink: only COPY … FROM STDIN")
	}
	var rows sink.RowCounter = &sink.Lines{}
	format := byte(0)
	if inBinary.MatchString(m[1]) {
		rows, format = &binaryRows{}, 1
	}
	// A real server lists the columns here. Nobody counts on it, and the sink has no tables.
	if err := s.send(&pgproto3.CopyInResponse{OverallFormat: format}); err != nil {
		return err
	}
	load := s.stream.Load(rows)
	for {
		kind, n, err := s.header()
		if err != nil {
			return err
		}
		switch kind {
		case 'd':
			err = load.Take(n)
		case 'H', 'S': // clients that pipeline send these; they mean nothing here
			err = s.stream.Drop(n)
		case 'c':
			if err := s.stream.Drop(n); err != nil {
				return err
			}
			return s.copied(load)
		case 'f':
			if err := s.stream.Drop(n); err != nil {
				return err
			}
			_, _, _ = load.End() // given up
			return s.fail(errCanceled, "COPY from stdin failed")
		default:
			return errMalformed
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) copied(load *sink.Load) error {
	bytes, rows, err := load.End()
	if err != nil {
		return s.fail(errBadFormat, err.Error())
	}
	s.count.Loaded(bytes, rows)
	return s.done(fmt.Sprintf("COPY %d", rows))
}
