package mysql

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

const (
	cachingSHA2 = "caching_sha2_password"
	maxLogin    = 64 << 10 // connection attributes are the large part
)

// greet says hello, reads the login and lets everybody in.
func (s *session) greet() error {
	if err := s.stream.Hurry(); err != nil {
		return err
	}
	if err := s.send(greeting(s.id)); err != nil {
		return err
	}
	var login []byte
	tooLong := false
	err := s.receive(func(p []byte) {
		tooLong = tooLong || len(login)+len(p) > maxLogin
		if !tooLong {
			login = append(login, p...)
		}
	})
	switch {
	case err != nil:
		return err
	case tooLong || len(login) < 32 || binary.LittleEndian.Uint32(login)&clientProtocol41 == 0:
		return errMalformed
	}
	// Clients of MySQL 9 know caching_sha2_password only, older ones of MariaDB mysql_native_password only, and every
	// client answers by its own method first. What it answered is not looked at; but a client that sent a SHA-2 proof
	// waits to hear that it was right, before the OK.
	if provesSHA2(login) {
		if err := s.send([]byte{1, 3}); err != nil {
			return err
		}
	}
	if err := s.ok(0, ""); err != nil {
		return err
	}
	return s.stream.Relax()
}

// provesSHA2 tells that the login carries the proof of a password by caching_sha2_password. Behind 32 bytes of fixed
// fields stand the user's name, NUL, and the length of the proof, which for an empty password is 0 or 1.
func provesSHA2(login []byte) bool {
	_, proof, _ := bytes.Cut(login[32:], []byte{0})
	return bytes.Contains(proof, []byte(cachingSHA2)) && proof[0] == sha256.Size
}

func greeting(id uint32) []byte {
	const challenge = "terapush-sink-takes-" // 20 bytes, in two parts; nobody is going to check the proof
	p := append([]byte{10}, version...)
	p = append(p, 0)
	p = binary.LittleEndian.AppendUint32(p, id)
	p = append(p, challenge[:8]...)
	p = append(p, 0, capabilities&0xff, capabilities>>8&0xff, utf8mb4, statusAutocommit, 0)
	p = binary.LittleEndian.AppendUint16(p, capabilities>>16)
	p = append(p, byte(len(challenge)+1))
	p = append(p, make([]byte, 10)...)
	p = append(p, challenge[8:]...)
	p = append(p, 0)
	p = append(p, cachingSHA2...)
	return append(p, 0)
}
