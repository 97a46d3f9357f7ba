package mysql

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Capabilities of protocol version 4.1, those that the sink has and those whose fields it has to read. Without
// DEPRECATE_EOF and COMPRESS there is one shape for every answer. SSL is offered where there is a certificate.
const (
	clientLongPassword     = 1 << 0
	clientFoundRows        = 1 << 1
	clientLongFlag         = 1 << 2
	clientConnectWithDB    = 1 << 3
	clientLocalFiles       = 1 << 7
	clientProtocol41       = 1 << 9
	clientSSL              = 1 << 11
	clientTransactions     = 1 << 13
	clientSecureConnection = 1 << 15
	clientPluginAuth       = 1 << 19

	needed  = clientProtocol41 | clientSecureConnection | clientPluginAuth
	offered = clientLongPassword | clientFoundRows | clientLongFlag | clientConnectWithDB | clientLocalFiles |
		clientTransactions | needed
)

// cachingSHA2 is the one way to prove a password that clients of MySQL 9 know. Others may answer by ways of their own.
const cachingSHA2 = "caching_sha2_password"

const (
	fixedLogin = 32       // bytes, which are all that a client sends before TLS
	maxLogin   = 64 << 10 // bytes
	nonceBytes = 20
)

// greet sends the handshake, reads the login and accepts whoever it is.
func (s *session) greet() error {
	nonce := rand.Text()[:nonceBytes] // letters: a NUL in it would end it
	if err := s.send(s.greeting(nonce)); err != nil {
		return err
	}
	p, err := s.receive(maxLogin)
	if err != nil {
		return err
	}
	if len(p) == fixedLogin && binary.LittleEndian.Uint32(p)&clientSSL != 0 {
		ahead, _ := s.in.Peek(s.in.Buffered())
		if err := s.conn.StartTLS(ahead); err != nil {
			return err
		}
		s.in.Reset(s.conn)
		if p, err = s.receive(maxLogin); err != nil {
			return err
		}
	}
	return s.admit(p)
}

func (s *session) greeting(nonce string) []byte {
	flags := uint32(offered)
	if s.conn.Options.TLS != nil {
		flags |= clientSSL
	}
	p := append([]byte{10}, s.version...)
	p = append(p, 0)
	p = binary.LittleEndian.AppendUint32(p, s.id)
	p = append(p, nonce[:8]...)
	p = append(p, 0, byte(flags), byte(flags>>8), utf8mb4, statusAutocommit, 0)
	p = binary.LittleEndian.AppendUint16(p, uint16(flags>>16))
	p = append(p, byte(len(nonce)+1))
	p = append(p, make([]byte, 10)...)
	p = append(p, nonce[8:]...)
	p = append(p, 0)
	p = append(p, cachingSHA2...)
	return append(p, 0)
}

// admit reads a login of protocol 4.1, in which every password is right: behind the fixed part come the user's name, the
// length of the proof and the proof, the database, and the method of the proof.
func (s *session) admit(p []byte) error {
	if len(p) < fixedLogin || binary.LittleEndian.Uint32(p)&needed != needed {
		return errors.Join(errMalformed, s.fail(errUnknownCommand, "terapush sink: the client is too old to log in"))
	}
	flags := binary.LittleEndian.Uint32(p)
	_, rest, _ := bytes.Cut(p[fixedLogin:], []byte{0})
	if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
		return errMalformed
	}
	proof, rest := rest[1:1+rest[0]], rest[1+rest[0]:]
	if flags&clientConnectWithDB != 0 {
		_, rest, _ = bytes.Cut(rest, []byte{0})
	}
	method, _, _ := bytes.Cut(rest, []byte{0})

	// A client that sent a SHA-2 proof waits to hear that it was right, before the OK. Of an empty password it is
	// shorter.
	if string(method) == cachingSHA2 && len(proof) == sha256.Size {
		if err := s.send([]byte{1, 3}); err != nil {
			return err
		}
	}
	return s.ok(0, "")
}
