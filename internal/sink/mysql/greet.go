package mysql

import (
	"crypto/rand"
	"encoding/binary"
)

const (
	fixedLogin = 32       // bytes, which are all that a client sends before TLS
	maxLogin   = 64 << 10 // connection attributes are the large part
	nonceBytes = 20
)

// greet sends the handshake, reads the login and accepts clients that know the password.
func (s *session) greet() error {
	nonce := rand.Text()[:nonceBytes] // letters: a NUL in it would end it
	if err := s.send(greeting(s.id, s.version, nonce, s.conn.Options.TLS != nil)); err != nil {
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
	l, err := parseLogin(p)
	if err != nil {
		return err
	}
	return s.admit(l, nonce)
}

func greeting(id uint32, version, nonce string, withTLS bool) []byte {
	offered := uint32(capabilities)
	if withTLS {
		offered |= clientSSL
	}
	p := append([]byte{10}, version...)
	p = append(p, 0)
	p = binary.LittleEndian.AppendUint32(p, id)
	p = append(p, nonce[:8]...)
	p = append(p, 0, byte(offered), byte(offered>>8), utf8mb4, statusAutocommit, 0)
	p = binary.LittleEndian.AppendUint16(p, uint16(offered>>16))
	p = append(p, byte(len(nonce)+1))
	p = append(p, make([]byte, 10)...)
	p = append(p, nonce[8:]...)
	p = append(p, 0)
	p = append(p, cachingSHA2...)
	return append(p, 0)
}
