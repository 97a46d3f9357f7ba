package mysql

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // mysql_native_password is made of it
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
)

// The ways to prove a password. Clients of MySQL 9 know caching_sha2_password only, older ones of MariaDB
// mysql_native_password only.
const (
	cachingSHA2 = "caching_sha2_password"
	native      = "mysql_native_password"
)

// login is what a client sends to log in. Its names and proof are the message's bytes.
type login struct {
	flags  uint32
	user   string
	proof  []byte
	plugin string
}

// parseLogin reads a login of protocol 4.1: flags, largest packet, character set and 23 bytes of nothing, then the name,
// the proof in one of three lengths, the database, and the method of the proof.
func parseLogin(p []byte) (login, error) {
	if len(p) < fixedLogin || binary.LittleEndian.Uint32(p)&clientProtocol41 == 0 {
		return login{}, errMalformed
	}
	l := login{flags: binary.LittleEndian.Uint32(p), plugin: native}
	user, rest, ok := bytes.Cut(p[fixedLogin:], []byte{0})
	if !ok {
		return login{}, errMalformed
	}
	l.user = string(user)
	switch {
	case l.flags&(clientPluginAuthLenEnc|clientSecureConnection) != 0: // no proof has more than 250 bytes
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return login{}, errMalformed
		}
		l.proof, rest = rest[1:1+rest[0]], rest[1+rest[0]:]
	default:
		l.proof, rest, _ = bytes.Cut(rest, []byte{0})
	}
	if l.flags&clientConnectWithDB != 0 {
		_, rest, _ = bytes.Cut(rest, []byte{0})
	}
	if l.flags&clientPluginAuth != 0 {
		plugin, _, _ := bytes.Cut(rest, []byte{0})
		l.plugin = string(plugin)
	}
	return l, nil
}

// admit checks the password, where there is one to check, and sends the result.
//
// Clients answer the greeting by their own method first, and some of them without a proof if the greeting named another.
// So a first answer that proves nothing is asked for again, by the client's method if it is one of the two.
func (s *session) admit(l login, nonce string) error {
	password := s.conn.Options.Password
	known := password == "" || proves(l.plugin, l.proof, password, nonce)
	if !known {
		if l.plugin != native {
			l.plugin = cachingSHA2
		}
		if err := s.send(append(append([]byte{0xfe}, l.plugin+"\x00"+nonce...), 0)); err != nil {
			return err
		}
		var err error
		if l.proof, err = s.receive(maxLogin); err != nil {
			return err
		}
		known = proves(l.plugin, l.proof, password, nonce)
	}
	if !known {
		using := "YES"
		if len(l.proof) < sha1.Size {
			using = "NO"
		}
		_ = s.fail(errAccessDenied, fmt.Sprintf("Access denied for user '%s' (using password: %s)", l.user, using))
		return errWrongPassword
	}
	// A client that sent a SHA-2 proof waits to hear that it was right, before the OK. Of an empty password it is
	// shorter.
	if l.plugin == cachingSHA2 && len(l.proof) == sha256.Size {
		if err := s.send([]byte{1, 3}); err != nil {
			return err
		}
	}
	return s.ok(0, "")
}

// proves reports whether a proof is that of the password. Both methods send hash(password) ⊕ hash(nonce,
// hash(hash(password))), in one order or the other.
func proves(plugin string, proof []byte, password, nonce string) bool {
	var want []byte
	switch plugin {
	case native:
		once := sha1.Sum([]byte(password)) //nolint:gosec // as above
		twice := sha1.Sum(once[:])         //nolint:gosec // as above
		mask := sha1.Sum(append([]byte(nonce), twice[:]...))
		subtle.XORBytes(mask[:], mask[:], once[:])
		want = mask[:]
	case cachingSHA2:
		once := sha256.Sum256([]byte(password))
		twice := sha256.Sum256(once[:])
		mask := sha256.Sum256(append(twice[:], nonce...))
		subtle.XORBytes(mask[:], mask[:], once[:])
		want = mask[:]
	default:
		return false
	}
	return subtle.ConstantTimeCompare(want, proof) == 1
}
