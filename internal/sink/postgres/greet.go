package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	sslRequest   = 80877103
	gssRequest   = 80877104
	majorVersion = 3
	maxStartup   = 10_000 // as PostgreSQL
	maxAsks      = 4      // how often a client may ask for encryption before it has to go on without
)

// greet takes the startup message, refuses encryption and lets everybody in.
func (s *session) greet() error {
	if err := s.stream.Hurry(); err != nil {
		return err
	}
	for range maxAsks {
		h, err := s.stream.Next(8)
		if err != nil {
			return err
		}
		length, code := binary.BigEndian.Uint32(h), binary.BigEndian.Uint32(h[4:])
		switch {
		case length < 8 || length > maxStartup:
			return errMalformed
		case length == 8 && (code == sslRequest || code == gssRequest):
			if _, err := s.stream.Write([]byte{'N'}); err != nil {
				return err
			}
		case code>>16 == majorVersion:
			// Who it is and which database makes no difference.
			if err := s.stream.Drop(int(length) - 8); err != nil {
				return err
			}
			return s.welcome()
		default: // among others a request to cancel: nothing here takes long enough
			return errMalformed
		}
	}
	return errMalformed
}

func (s *session) welcome() error {
	hello := []pgproto3.BackendMessage{&pgproto3.AuthenticationOk{}}
	for _, p := range parameters() {
		hello = append(hello, &p)
	}
	hello = append(hello,
		&pgproto3.BackendKeyData{ProcessID: s.id, SecretKey: make([]byte, 4)},
		&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := s.send(hello...); err != nil {
		return err
	}
	return s.stream.Relax()
}

// parameters are what a server tells every client unasked.
func parameters() []pgproto3.ParameterStatus {
	return []pgproto3.ParameterStatus{
		{Name: "server_version", Value: version},
		{Name: "server_encoding", Value: "UTF8"},
		{Name: "client_encoding", Value: "UTF8"},
		{Name: "DateStyle", Value: "ISO, MDY"},
		{Name: "TimeZone", Value: "UTC"},
		{Name: "integer_datetimes", Value: "on"},
		{Name: "standard_conforming_strings", Value: "on"},
	}
}
