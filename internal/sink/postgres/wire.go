package postgres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

const (
	maxMessage = 1 << 30   // bytes of copy data, as PostgreSQL
	maxBody    = 256 << 20 // bytes of any other message
	textOID    = 25
)

var (
	errLeft      = errors.New("postgres sink: the client has left")
	errMalformed = errors.New("malformed or oversized message")
)

// wire is the message layer of one connection. What pgproto3's own would hold in memory, copy data, passes by here.
type wire struct {
	conn *sink.Conn
	in   *bufio.Reader // of conn
}

// header reads a message's kind and the length of what follows.
func (w *wire) header() (kind byte, n int, err error) {
	var h [5]byte
	if _, err := io.ReadFull(w.in, h[:]); err != nil {
		return 0, 0, err
	}
	length := binary.BigEndian.Uint32(h[1:])
	if length < 4 || length > maxMessage {
		return 0, 0, errMalformed
	}
	return h[0], int(length) - 4, nil
}

// body reads a message's n bytes.
func (w *wire) body(n, most int) ([]byte, error) {
	if n > most {
		return nil, errMalformed
	}
	p := make([]byte, n)
	_, err := io.ReadFull(w.in, p)
	return p, err
}

// unknownOptions returns the protocol's own among the pairs of a startup message: the sink knows none of them.
func unknownOptions(startup []byte) []string {
	var found []string
	words := bytes.Split(startup, []byte{0})
	for i := 0; i+1 < len(words); i += 2 {
		if name := string(words[i]); strings.HasPrefix(name, "_pq_.") {
			found = append(found, name)
		}
	}
	return found
}

func (w *wire) send(messages ...pgproto3.BackendMessage) error {
	var out []byte
	for _, m := range messages {
		var err error
		if out, err = m.Encode(out); err != nil {
			return err
		}
	}
	if len(out) == 0 {
		return nil
	}
	_, err := w.conn.Write(out)
	return err
}

func failure(severity, state, message string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: state, Message: message}
}

// describe names columns of one type.
func describe(columns []string, oid uint32) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{}
	for _, c := range columns {
		d.Fields = append(d.Fields, pgproto3.FieldDescription{
			Name: []byte(c), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1,
		})
	}
	return d
}

// messages returns the answer to the client, the columns first.
func (o outcome) messages(oid uint32) []pgproto3.BackendMessage {
	if o.refused != nil {
		return []pgproto3.BackendMessage{o.refused}
	}
	var out []pgproto3.BackendMessage
	if len(o.columns) > 0 {
		out = append(out, describe(o.columns, oid))
	}
	for _, r := range o.rows {
		var values [][]byte
		for _, v := range r {
			values = append(values, []byte(v))
		}
		out = append(out, &pgproto3.DataRow{Values: values})
	}
	return append(out, &pgproto3.CommandComplete{CommandTag: []byte(o.tag)})
}
