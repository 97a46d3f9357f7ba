package sink

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// handshake is the first byte of a TLS connection: the record's type. No command of the protocols here begins with it.
const handshake = 0x16

var errNoTLS = errors.New("sink: a client wants TLS, which this sink was not given")

// AcceptTLS finds out by the first byte whether the client begins a TLS handshake, and shakes hands if it does: for
// protocols that do not ask before, as HTTP. The client has ten seconds to say something.
func (s *Stream) AcceptTLS(protocols ...string) error {
	if err := s.Hurry(); err != nil {
		return err
	}
	begins, err := s.BeginsTLS()
	if err != nil {
		return err
	}
	if begins {
		if err := s.StartTLS(protocols...); err != nil {
			return err
		}
	}
	return s.Relax()
}

// BeginsTLS looks at the next byte without taking it.
func (s *Stream) BeginsTLS() (bool, error) {
	p, err := s.Peek(1)
	return err == nil && p[0] == handshake, err
}

// StartTLS shakes hands; all that follows is encrypted. What was read ahead goes into the handshake: a client of MySQL
// begins it without waiting, and a stranger who put plain commands there in front of another's handshake only
// breaks it. protocols are those of ALPN that the server speaks, which the client need not name.
func (s *Stream) StartTLS(protocols ...string) error {
	if s.Options.TLS == nil {
		return errNoTLS
	}
	config := s.Options.TLS
	if len(protocols) > 0 {
		config = config.Clone()
		config.NextProtos = protocols
	}
	ahead := bytes.Clone(s.buf[s.r:s.w])
	s.r, s.w = 0, 0
	c := tls.Server(&preceded{Conn: s.conn, ahead: ahead}, config)
	if err := c.Handshake(); err != nil {
		return err
	}
	s.conn, s.drop = c, discard(c)
	return nil
}

// Encrypted reports whether StartTLS was called.
func (s *Stream) Encrypted() bool {
	_, ok := s.conn.(*tls.Conn)
	return ok
}

// preceded is a connection whose first bytes have been read already.
type preceded struct {
	net.Conn
	ahead []byte
}

func (p *preceded) Read(b []byte) (int, error) {
	if len(p.ahead) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.ahead)
	p.ahead = p.ahead[n:]
	return n, nil
}

// validity of a certificate that lives as long as its process.
const validity = 10 * 365 * 24 * time.Hour

// SelfSigned makes a certificate that signs itself, for this machine's own names and addresses and the hosts given. A
// client can encrypt with it, and trusts it only if it is configured to.
func SelfSigned(hosts ...string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("sink: making a key: %w", err)
	}
	now := time.Now()
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "terapush sink"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, // so that it can be given to a client as its authority
	}
	for _, host := range append([]string{"localhost", "127.0.0.1", "::1"}, hosts...) {
		if ip := net.ParseIP(host); ip != nil {
			certificate.IPAddresses = append(certificate.IPAddresses, ip)
		} else if host != "" {
			certificate.DNSNames = append(certificate.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sink: making a certificate: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12,
	}, nil
}
