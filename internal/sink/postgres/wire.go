package postgres

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

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

// wire is the message layer of one connection. What pgproto3's Backend would hold in memory, copy data, passes by here.
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

const (
	sslRequest = 80877103
	gssRequest = 80877104
	version30  = 3 << 16
	maxStartup = 10_000 // as PostgreSQL
	maxAsks    = 4      // how often a client may ask for encryption before it has to go on without
	alpn       = "postgresql"
)

// greet takes the startup message, encrypts where the client asks for TLS, and accepts whoever it is.
func (s *session) greet() error {
	// Since version 17, clients may begin with TLS at once: sslnegotiation=direct.
	if err := s.conn.AcceptTLS(alpn); err != nil {
		return err
	}
	for range maxAsks {
		h, err := s.body(8, 8)
		if err != nil {
			return err
		}
		length, code := binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:])
		switch {
		case length < 8 || length > maxStartup:
			return errMalformed
		case length == 8 && (code == sslRequest || code == gssRequest):
			if err := s.encrypt(code); err != nil {
				return err
			}
		case code == version30:
			return s.start(int(length) - 8)
		default: // a newer protocol, or a request to cancel: nothing here takes long enough
			return errors.Join(errMalformed, s.send(failure("FATAL", errUnsupported, "terapush sink: it speaks protocol 3.0")))
		}
	}
	return errMalformed
}

func (s *session) encrypt(code uint32) error {
	if code != sslRequest || s.conn.Options.TLS == nil || s.conn.Encrypted() {
		_, err := s.conn.Write([]byte{'N'})
		return err
	}
	// What a stranger put there in front of another's handshake must not be taken for encrypted commands.
	if s.in.Buffered() > 0 {
		return errMalformed
	}
	if _, err := s.conn.Write([]byte{'S'}); err != nil {
		return err
	}
	return s.conn.StartTLS(nil, alpn)
}

// start reads the n bytes with user and database, of which nothing matters, and asks for no password.
func (s *session) start(n int) error {
	if _, err := s.body(n, maxStartup); err != nil {
		return err
	}
	return s.send(
		&pgproto3.AuthenticationOk{},
		&pgproto3.ParameterStatus{Name: "server_version", Value: release + " (" + s.conn.Options.Name() + ")"},
		&pgproto3.ParameterStatus{Name: "server_encoding", Value: "UTF8"},
		&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"},
		&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"},
		&pgproto3.BackendKeyData{ProcessID: s.id, SecretKey: make([]byte, 4)},
		s.ready())
}
