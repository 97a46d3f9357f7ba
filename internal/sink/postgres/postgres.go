// Package postgres is a sink that speaks the PostgreSQL protocol, version 3: COPY … FROM STDIN and INSERT are counted
// and forgotten; transactions, settings and definitions are agreed to. Simple queries may hold several statements, and
// the extended protocol prepares and runs one.
//
// Rows of COPY are those of its FORMAT, HEADER, QUOTE and ESCAPE: a line end in quotes or behind a backslash is data, and
// \. ends it. Lines end with a line feed, behind a carriage return or not, and never with a carriage return alone. COPY …
// WHERE and INSERT … SELECT are refused: how many rows those are only tables could tell.
//
// Tables have no rows here, and columns of no known type. A described parameter has the type that the client named, or
// none (OID 0), and so has every column that a SELECT lists by name: a client such as pgx then encodes a value by what
// it is in the program, which is what COPY's binary format takes here anyway. SELECT * has no columns and RETURNING no
// rows. There is no COPY TO, no cancelling, and LISTEN hears nothing.
package postgres

import (
	"bufio"
	"bytes"
	"errors"

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
	errTxFailed      = "25P02"
	errUnknownName   = "26000"
	errUnknownPortal = "34000"
	errWrongPassword = "28P01"
	errSerialization = "40001"
	errSyntax        = "42601"
	errUnknownObject = "42704"
	errTooMany       = "54000"
	errCanceled      = "57014"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, serve) }

func serve(id uint32, c *sink.Conn) error {
	s := &session{
		wire: wire{conn: c, in: bufio.NewReaderSize(c, readAhead)}, id: id, tx: idle, name: c.Options.Name(),
		extended: extended{statements: map[string]*statement{}, portals: map[string]*portal{}},
	}
	if err := c.Greet(s.greet); err != nil {
		return err
	}
	for {
		if err := s.message(); err != nil {
			if errors.Is(err, errMalformed) {
				_ = s.send(failure("FATAL", errProtocol, "terapush sink: "+err.Error()))
			}
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
	failed = 'E' // nothing but its end is accepted
)

type session struct {
	wire
	id       uint32
	name     string
	tx       byte
	extended extended
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
		s.extended.skipping = false
		if s.tx == idle { // portals live as long as their transaction
			clear(s.extended.portals)
		}
		return s.send(s.ready())
	case 'P', 'B', 'D', 'E', 'C':
		return s.extend(kind, body)
	}
	return errMalformed
}

// query runs the statements of a simple query, up to the first that fails.
func (s *session) query(text string) error {
	all := sink.Split(text, sink.Standard)
	if len(all) == 0 {
		return s.send(&pgproto3.EmptyQueryResponse{}, s.ready())
	}
	var out []pgproto3.BackendMessage
	for _, st := range all {
		s.conn.Statement()
		o, err := s.run(st, int64(len(st.Text)), s.conn.Checksum(st.Text), out)
		if err != nil {
			return err
		}
		if o.copied {
			out = nil // run has sent them
		}
		out = append(out, o.messages(textOID)...)
		if o.refused != nil {
			break
		}
	}
	return s.send(append(out, s.ready())...)
}

func (s *session) ready() *pgproto3.ReadyForQuery { return &pgproto3.ReadyForQuery{TxStatus: s.tx} }
