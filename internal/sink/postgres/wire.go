package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

const (
	maxMessage = 1 << 30 // as PostgreSQL
	textOID    = 25
)

var (
	errLeft      = errors.New("postgres sink: the client has left")
	errMalformed = errors.New("postgres sink: malformed message")
)

// wire is the message layer of one connection. Answers are pgproto3's; what comes in is read here, since pgproto3
// would hold every message in memory and copy data has to pass by.
type wire struct {
	stream *sink.Stream
}

// header reads a message's kind and the length of what follows.
func (w *wire) header() (kind byte, n int, err error) {
	h, err := w.stream.Next(5)
	if err != nil {
		return 0, 0, err
	}
	length := binary.BigEndian.Uint32(h[1:])
	if length < 4 || length > maxMessage || h[0] == 'Q' && length < 5 {
		return 0, 0, errMalformed
	}
	return h[0], int(length) - 4, nil
}

// receive reads the next n bytes piece by piece.
func (w *wire) receive(n int, take func([]byte)) error {
	for n > 0 {
		p, err := w.stream.Some(n)
		if err != nil {
			return err
		}
		take(p)
		n -= len(p)
	}
	return nil
}

func (w *wire) send(messages ...pgproto3.BackendMessage) error {
	var out []byte
	for _, m := range messages {
		var err error
		if out, err = m.Encode(out); err != nil {
			return err
		}
	}
	_, err := w.stream.Write(out)
	return err
}

// answer sends messages and says that the next query may come.
func (s *session) answer(messages ...pgproto3.BackendMessage) error {
	status := byte('I')
	if s.inTx {
		status = 'T'
	}
	return s.send(append(messages, &pgproto3.ReadyForQuery{TxStatus: status})...)
}

func (s *session) ready() error { return s.answer() }

func (s *session) done(tag string) error {
	return s.answer(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

func (s *session) fail(state, message string) error {
	return s.answer(&pgproto3.ErrorResponse{
		Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: state, Message: message,
	})
}

// result sends rows, every column as text.
func (s *session) result(columns []string, rows [][]string) error {
	var fields []pgproto3.FieldDescription
	for _, c := range columns {
		fields = append(fields, pgproto3.FieldDescription{
			Name: []byte(c), DataTypeOID: textOID, DataTypeSize: -1, TypeModifier: -1,
		})
	}
	out := []pgproto3.BackendMessage{&pgproto3.RowDescription{Fields: fields}}
	for _, r := range rows {
		var values [][]byte
		for _, v := range r {
			values = append(values, []byte(v))
		}
		out = append(out, &pgproto3.DataRow{Values: values})
	}
	return s.answer(append(out, &pgproto3.CommandComplete{CommandTag: fmt.Appendf(nil, "SELECT %d", len(rows))})...)
}
