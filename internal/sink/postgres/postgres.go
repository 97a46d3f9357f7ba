// Package postgres is a sink that speaks the PostgreSQL protocol, version 3.0: COPY … FROM STDIN and INSERT … VALUES
// are counted and forgotten; transactions, settings and definitions are agreed to. Simple queries may hold several
// statements. The extended protocol, and so every prepared statement, is refused.
//
// Rows of COPY are those of its FORMAT, HEADER, QUOTE and ESCAPE: a line end in quotes or behind a backslash is data,
// and \. ends it. Lines end with a line feed, behind a carriage return or not, and never with a carriage return alone.
// COPY … WHERE and INSERT … SELECT are refused: how many rows those are only tables could tell.
//
// Tables have no rows here, and queries of them an empty result. Transactions begin and end, and change nothing: what
// was counted stays counted, and a statement that fails does not fail those behind it. There is no COPY TO, no
// cancelling, and LISTEN hears nothing.
package postgres

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// release is the server's version, behind which its name stands, as behind that of a distribution's server.
const release = "17.0"

// The errors of a real server, by SQLSTATE; all of them leave the connection usable but those of the greeting.
const (
	errProtocol      = "08P01"
	errUnsupported   = "0A000"
	errBadFormat     = "22P04"
	errSerialization = "40001"
	errCanceled      = "57014"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, serve) }

func serve(id uint32, c *sink.Conn) error {
	s := &session{wire: wire{conn: c, in: bufio.NewReaderSize(c, readAhead)}, id: id, tx: idle}
	if err := c.Greet(s.greet); err != nil {
		return err
	}
	for {
		err := s.message()
		if errors.Is(err, errMalformed) {
			_ = s.send(failure("FATAL", errProtocol, "terapush sink: "+err.Error()))
		}
		if err != nil {
			return err
		}
	}
}

// readAhead is small: the bytes of a load that are read ahead are copied once more.
const readAhead = 512

// The states of a transaction, as ReadyForQuery has them.
const (
	idle   = 'I'
	within = 'T'
)

type session struct {
	wire
	id       uint32
	tx       byte
	skipping bool // after a message of the extended protocol, up to its Sync
}

func (s *session) message() error {
	kind, n, err := s.header()
	if err != nil {
		return err
	}
	body, err := s.body(n, maxBody)
	if err != nil {
		return err
	}
	switch kind {
	case 'Q':
		if n == 0 {
			return errMalformed
		}
		return s.query(string(bytes.TrimRight(body, "\x00")))
	case 'X':
		return errLeft
	case 'd', 'c', 'f', 'H': // of a COPY that is over, and a wish for answers that were never held back
		return nil
	case 'S':
		s.skipping = false
		return s.send(s.ready())
	case 'P', 'B', 'D', 'E', 'C', 'F':
		if s.skipping {
			return nil
		}
		s.skipping = true
		return s.send(failure("ERROR", errUnsupported,
			"terapush sink: nothing can be prepared here; use the simple query protocol"))
	}
	return errMalformed
}

// query runs the statements of a simple query, up to the first that fails.
func (s *session) query(text string) error {
	all := sink.Split(text, sink.Standard)
	if len(all) == 0 {
		return s.send(&pgproto3.EmptyQueryResponse{}, s.ready())
	}
	var out []pgproto3.BackendMessage // answers that have not been sent
	for _, st := range all {
		s.conn.Statement()
		o := outcome{}
		if st.Verb == "COPY" {
			var err error
			if o, err = s.copyIn(st.Text, &out); err != nil {
				return err
			}
		} else {
			o = s.run(st)
		}
		out = append(out, o.messages()...)
		if o.refused != nil {
			break
		}
	}
	return s.send(append(out, s.ready())...)
}

func (s *session) ready() *pgproto3.ReadyForQuery { return &pgproto3.ReadyForQuery{TxStatus: s.tx} }

// outcome is what a statement comes to: one value or none where there is a column, and a tag, or an error.
type outcome struct {
	column  string
	value   string
	tag     string
	refused *pgproto3.ErrorResponse
}

func refuse(state, message string) outcome { return outcome{refused: failure("ERROR", state, message)} }

// injected is the outcome of a load that has to fail: an error after which clients retry the transaction.
func injected() outcome {
	return refuse(errSerialization, "could not serialize access (terapush sink: told to fail some loads)")
}

// messages returns the answer to the client.
func (o outcome) messages() []pgproto3.BackendMessage {
	if o.refused != nil {
		return []pgproto3.BackendMessage{o.refused}
	}
	var out []pgproto3.BackendMessage
	if o.column != "" {
		out = append(out,
			&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{
				Name: []byte(o.column), DataTypeOID: textOID, DataTypeSize: -1, TypeModifier: -1,
			}}},
			&pgproto3.DataRow{Values: [][]byte{[]byte(o.value)}})
	}
	return append(out, &pgproto3.CommandComplete{CommandTag: []byte(o.tag)})
}

// run runs a statement that is no COPY.
func (s *session) run(st sink.Statement) outcome {
	if why := st.Refusal(); why != "" {
		return refuse(errUnsupported, "terapush sink: "+why)
	}
	switch st.Verb {
	case "INSERT":
		if s.conn.Insert(st) != nil {
			return injected()
		}
		return outcome{tag: fmt.Sprintf("INSERT 0 %d", st.Rows)}
	case "BEGIN", "START":
		s.tx = within
	case "COMMIT", "END", "ROLLBACK", "ABORT":
		s.tx = idle
	case "SELECT", "SHOW":
		return s.look(st)
	case "UPDATE", "DELETE":
		return outcome{tag: st.Verb + " 0"}
	}
	return outcome{tag: st.Verb}
}

// look answers a question: about the version, or with no rows.
func (s *session) look(st sink.Statement) outcome {
	switch item := st.Item(); item {
	case "":
		return outcome{tag: "SELECT 0"}
	case "1": // to find out whether the connection lives
		return outcome{column: "?column?", value: item, tag: "SELECT 1"}
	case "version()":
		version := "PostgreSQL " + release + " (" + s.conn.Options.Name() + ": counts and forgets)"
		return outcome{column: "version", value: version, tag: "SELECT 1"}
	default:
		return refuse(errUnsupported, "terapush sink: what is "+item+"?")
	}
}
