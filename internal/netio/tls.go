package netio

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/loader"
)

// Trust names the certificates. The zero value trusts the system's authorities and has no client certificate.
type Trust struct {
	CAFile            string // PEM; in place of the system's authorities
	CertFile, KeyFile string // PEM; the client's own
	ServerName        string // in place of the host in the target
}

// TLS returns the client configuration of a mode for a host. plain reports whether the connection may go on without TLS
// when the server has none. An authority that is given is always checked, whatever the mode.
func (t Trust) TLS(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	switch {
	case mode == loader.TLSOff && t.CAFile != "":
		return nil, false, errors.New("TLS is off, so that --tls-ca cannot be checked: leave one of them out")
	case mode == loader.TLSOff:
		return nil, true, nil
	case mode == loader.TLSVerifyCA && t.CAFile == "": // or anybody with a certificate of a public authority would do
		mode = loader.TLSVerify
	case mode == loader.TLSVerifyCA:
	case t.CAFile != "" && strings.HasPrefix(host, "/") && t.ServerName == "": // a socket has no name
		mode = loader.TLSVerifyCA
	case t.CAFile != "":
		mode = loader.TLSVerify
	case mode == loader.TLSAuto && Local(host) && t.ServerName == "": // a name is given to be compared
		mode = loader.TLSPrefer
	case mode == loader.TLSAuto:
		mode = loader.TLSVerify
	}
	config = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.ServerName != "" {
		config.ServerName = t.ServerName
	}
	// Prefer and require encrypt without verifying the server, as their users ask for; the plan shows it.
	config.InsecureSkipVerify = mode == loader.TLSPrefer || mode == loader.TLSRequire
	if err := t.Add(config); err != nil {
		return nil, false, err
	}
	if mode == loader.TLSVerifyCA {
		chainOnly(config)
	}
	return config, mode == loader.TLSPrefer, nil
}

// Add gives a configuration the authorities and the client's certificate that it does not have yet.
func (t Trust) Add(config *tls.Config) error {
	if t.CAFile != "" && config.RootCAs == nil {
		pem, err := file.Read(t.CAFile, file.MaxCerts)
		if err != nil {
			return fmt.Errorf("reading the certificate authorities: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s holds no certificate in PEM", t.CAFile)
		}
		config.RootCAs = roots
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("a client's certificate and its key belong together: give both or neither")
	}
	if t.CertFile != "" && len(config.Certificates) == 0 {
		pair, err := keyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return fmt.Errorf("reading the client's certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Checked returns the mode for which an authority of a URL or of a client's own files is checked: at least the chain, as
// libpq does, and all where no mode is asked for. Off stays off, as the flags refuse it and the URL says it.
func (t Trust) Checked(mode loader.TLSMode) loader.TLSMode {
	switch {
	case t.CAFile == "" || mode == loader.TLSOff:
		return mode
	case mode == loader.TLSPrefer || mode == loader.TLSRequire:
		return loader.TLSVerifyCA
	case mode == loader.TLSAuto:
		return loader.TLSVerify
	}
	return mode
}

// After returns the configuration of the flags for a host, with what they leave open.
func (t Trust) After(
	flags func(loader.TLSMode, string) (*tls.Config, bool, error), mode loader.TLSMode, host string,
) (config *tls.Config, plain bool, err error) {
	if config, plain, err = flags(mode, host); err != nil || config == nil {
		return config, plain, err
	}
	chain := t.CAFile != "" && config.RootCAs == nil && (mode == loader.TLSVerifyCA || config.InsecureSkipVerify)
	if err := t.Add(config); err != nil {
		return nil, false, err
	}
	if chain {
		chainOnly(config)
	}
	return config, plain, nil
}

// chainOnly lets a configuration verify that one of its authorities has signed the server's certificate, and not that
// it is the host's: libpq's verify-ca. Package tls can only verify both.
func chainOnly(config *tls.Config) {
	config.InsecureSkipVerify = true
	VerifyAs(config, "")
}

// VerifyAs verifies the server's certificate by hand, in an unverified handshake: for a name, or for any if it is empty.
func VerifyAs(config *tls.Config, name string) {
	roots, then := config.RootCAs, config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) error {
		options := x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			options.Intermediates.AddCert(c)
		}
		if _, err := s.PeerCertificates[0].Verify(options); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
		}
		if then != nil {
			return then(s)
		}
		return nil
	}
}

// keyPair is tls.LoadX509KeyPair with a limit of size.
func keyPair(cert, key string) (tls.Certificate, error) {
	certPEM, err := file.Read(cert, file.MaxCerts)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := file.Read(key, file.MaxCerts)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil && bytes.Contains(keyPEM, []byte("ENCRYPTED")) { // in the label of PKCS #8, in a header of older keys
		err = fmt.Errorf("%s is encrypted with a passphrase, and such keys are not read: "+
			"make one without by openssl pkey -in %s -out FILE, with mode 0600", key, key)
	}
	return pair, err
}

// Local reports whether a host is this machine: a Unix socket, a loopback address or localhost. No one can listen there,
// so TLS is only preferred.
func Local(host string) bool {
	if strings.HasPrefix(host, "/") || host == "localhost" || host == "" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
