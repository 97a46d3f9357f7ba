package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	scramName       = "SCRAM-SHA-256"
	scramIterations = 4096 // PostgreSQL's default
	maxProof        = 4 << 10
)

var errPassword = errors.New("postgres sink: a wrong password, or a client that proves none")

// authenticate asks for the password by SCRAM-SHA-256 (RFC 5802 and 7677), which every client has had for years and
// which sends nothing by which the password could be known; the other ways are cleartext, and MD5, which clients begin to
// refuse. There is no channel binding: a client that insists on it refuses the sink. Passwords are taken as they are,
// without SASLprep, which changes none of ASCII.
func (s *session) authenticate(password string) error {
	if err := s.send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{scramName}}); err != nil {
		return err
	}
	p, err := s.proof()
	if err != nil {
		return err
	}
	method, rest, ok := strings.Cut(string(p), "\x00")
	if !ok || method != scramName || len(rest) < 4 || int(binary.BigEndian.Uint32([]byte(rest))) != len(rest)-4 {
		return errPassword
	}
	x, err := newExchange(rest[4:], rand.Text(), rand.Text())
	if err != nil {
		return err
	}
	if err := s.send(&pgproto3.AuthenticationSASLContinue{Data: []byte(x.serverFirst)}); err != nil {
		return err
	}
	if p, err = s.proof(); err != nil {
		return err
	}
	final, err := x.check(string(p), password)
	if err != nil {
		return err
	}
	return s.send(&pgproto3.AuthenticationSASLFinal{Data: []byte(final)})
}

// proof reads a message of the authentication.
func (s *session) proof() ([]byte, error) {
	kind, n, err := s.header()
	if err != nil {
		return nil, err
	}
	if kind != 'p' {
		return nil, errMalformed
	}
	return s.small(n, maxProof)
}

// exchange is one round of SCRAM as the server sees it.
type exchange struct {
	header      string // of GS2: whether the client binds to a channel, and whose name it asks for
	clientFirst string // without the header
	serverFirst string
	nonce, salt string
}

// newExchange answers a client's first message: "n,,n=user,r=nonce".
func newExchange(first, nonce, salt string) (*exchange, error) {
	binding, rest, _ := strings.Cut(first, ",")
	name, bare, ok := strings.Cut(rest, ",")
	if !ok || binding != "n" && binding != "y" {
		return nil, errPassword
	}
	x := &exchange{header: binding + "," + name + ",", clientFirst: bare, salt: salt}
	_, theirs, ok := strings.Cut(bare, ",r=")
	if !ok || theirs == "" || strings.Contains(theirs, ",") {
		return nil, errPassword
	}
	x.nonce = theirs + nonce
	x.serverFirst = fmt.Sprintf("r=%s,s=%s,i=%d", x.nonce, base64.StdEncoding.EncodeToString([]byte(salt)), scramIterations)
	return x, nil
}

// check checks a client's last message, "c=header,r=nonce,p=proof", and returns the server's.
func (x *exchange) check(last, password string) (string, error) {
	without, proof64, ok := strings.Cut(last, ",p=")
	if !ok || without != "c="+base64.StdEncoding.EncodeToString([]byte(x.header))+",r="+x.nonce {
		return "", errPassword
	}
	proof, err := base64.StdEncoding.DecodeString(proof64)
	if err != nil || len(proof) != sha256.Size {
		return "", errPassword
	}
	salted, err := pbkdf2.Key(sha256.New, password, []byte(x.salt), scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	all := x.clientFirst + "," + x.serverFirst + "," + without
	stored := sha256.Sum256(sign(salted, "Client Key"))
	key := make([]byte, sha256.Size)
	subtle.XORBytes(key, proof, sign(stored[:], all))
	if got := sha256.Sum256(key); subtle.ConstantTimeCompare(got[:], stored[:]) != 1 {
		return "", errPassword
	}
	return "v=" + base64.StdEncoding.EncodeToString(sign(sign(salted, "Server Key"), all)), nil
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
