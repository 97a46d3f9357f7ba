package postgres

import (
	"encoding/binary"
	"errors"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	sslRequest   = 80877103
	gssRequest   = 80877104
	majorVersion = 3
	maxStartup   = 10_000 // as PostgreSQL
	maxAsks      = 4      // how often a client may ask for encryption before it has to go on without
	alpn         = "postgresql"
)

// greet takes the startup message, encrypts where the client asks for TLS, and accepts clients that know the password.
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
		case code>>16 == majorVersion:
			return s.start(code, int(length)-8)
		default: // among others a request to cancel: nothing here takes long enough
			return errMalformed
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

// start reads the n bytes with user and database, of which nothing matters, and checks the password.
func (s *session) start(code uint32, n int) error {
	said, err := s.body(n, maxStartup)
	if err != nil {
		return err
	}
	if asked := unknownOptions(said); code&0xffff > 0 || len(asked) > 0 { // newer than 3.0, or with an option of such a one
		if err := s.send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: majorVersion << 16, UnrecognizedOptions: asked}); err != nil {
			return err
		}
	}
	if password := s.conn.Options.Password; password != "" {
		if err := s.authenticate(password); err != nil {
			return err
		}
	}
	hello := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}}
	for _, p := range s.parameters() {
		hello = append(hello, &p)
	}
	hello = append(hello, &pgproto3.BackendKeyData{ProcessID: s.id, SecretKey: make([]byte, 4)}, s.ready())
	return s.send(hello...)
}

// parameters returns what a server sends every client unasked.
func (s *session) parameters() []pgproto3.ParameterStatus {
	return []pgproto3.ParameterStatus{
		{Name: "server_version", Value: release + " (" + s.name + ")"},
		{Name: "server_encoding", Value: "UTF8"},
		{Name: "client_encoding", Value: "UTF8"},
		{Name: "DateStyle", Value: "ISO, MDY"},
		{Name: "TimeZone", Value: "UTC"},
		{Name: "integer_datetimes", Value: "on"},
		{Name: "standard_conforming_strings", Value: "on"},
	}
}

var errPassword = errors.New("postgres sink: a wrong password")

// authenticate asks for the password in clear, which every client can answer. SCRAM would need a library, for a server that
// has nothing to protect.
func (s *session) authenticate(password string) error {
	if err := s.send(&pgproto3.AuthenticationCleartextPassword{}); err != nil {
		return err
	}
	kind, n, err := s.header()
	if err != nil || kind != 'p' {
		return errors.Join(errMalformed, err)
	}
	given, err := s.body(n, maxStartup)
	if err != nil {
		return err
	}
	if string(given) != password+"\x00" {
		return errors.Join(errPassword, s.send(failure("FATAL", errWrongPassword, "password authentication failed")))
	}
	return nil
}
