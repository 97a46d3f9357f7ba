package netio

import (
	"crypto/tls"
	"crypto/x509"
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
// when the server has none.
func (t Trust) TLS(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	if mode == loader.TLSAuto {
		mode = loader.TLSVerify
		if Local(host) {
			mode = loader.TLSPrefer
		}
	}
	if mode == loader.TLSOff {
		return nil, true, nil
	}
	config = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if t.ServerName != "" {
		config.ServerName = t.ServerName
	}
	// Prefer and require encrypt without verifying the server, as their users ask for; the plan shows it.
	config.InsecureSkipVerify = mode != loader.TLSVerify
	if t.CAFile != "" {
		pem, err := file.Read(t.CAFile, file.MaxCerts)
		if err != nil {
			return nil, false, fmt.Errorf("reading the certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, false, fmt.Errorf("%s holds no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := keyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, false, fmt.Errorf("reading the client's certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, mode == loader.TLSPrefer, nil
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
	return tls.X509KeyPair(certPEM, keyPEM)
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
