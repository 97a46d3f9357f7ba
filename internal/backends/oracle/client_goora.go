//go:build !godror

package oracle

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	goora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/terapush/terapush/pkg/loader"
)

// builtIn is go-ora: Go alone, and part of the static binary.
func builtIn() client {
	return client{
		name:      "go-ora v2.9.0",
		connector: gooraConnector,
		code:      gooraCode,
		explain:   gooraExplain,
		array:     gooraTimes,
		moment:    func(micros int64) any { return goora.TimeStamp(time.UnixMicro(micros).UTC()) },
	}
}

// gooraTimes binds TIMESTAMP. A time.Time would become a TIMESTAMP WITH TIME ZONE, and go-ora looks through its whole
// list of zones for each: 7 µs a value.
func gooraTimes(old any, values []int64, unit int64) any {
	all, _ := old.([]goora.TimeStamp)
	if cap(all) < len(values) {
		all = make([]goora.TimeStamp, len(values))
	}
	all = all[:len(values)]
	for i, v := range values {
		all[i] = goora.TimeStamp(time.UnixMicro(v * unit).UTC())
	}
	return all
}

func gooraConnector(t loader.Target, d loader.Deps, host int) (driver.Connector, error) {
	address := t.Address(host, defaultPort)
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	mode, err := tlsMode(t)
	if err != nil {
		return nil, err
	}
	config, err := gooraTLS(t, d, mode, name, host)
	if err != nil {
		return nil, err
	}
	text := gooraURL(t, mode, address)
	return guard{
		dial: d.Dial,
		connector: func(dial dialer) driver.Connector {
			c := goora.NewConnector(text).(*goora.OracleConnector)
			c.Dialer(dial)
			if config != nil {
				c.WithTLSConfig(config.Clone()) // go-ora writes into it
			}
			return c
		},
		driver: goora.NewDriver(), // package sql asks it nothing
	}, nil
}

// gooraURL is the connection as go-ora wants it. It escapes everything, since go-ora's errors about a URL quote it.
func gooraURL(t loader.Target, mode loader.TLSMode, address string) string {
	words := url.Values{"PROGRAM": {"terapush"}}
	if sid := t.Params.Get(paramSID); sid != "" {
		words.Set("SID", sid)
	}
	if encrypted(mode) {
		words.Set("SSL", "true")
		words.Set("SSL VERIFY", "true")
		if mode != loader.TLSVerify {
			words.Set("SSL VERIFY", "false")
		}
	}
	if wallet := t.Params.Get(paramWallet); wallet != "" {
		words.Set("WALLET", wallet)
	}
	u := url.URL{
		Scheme: "oracle", User: url.UserPassword(t.User, t.Password.Reveal()), Host: address, Path: "/" + t.Database,
		RawQuery: words.Encode(),
	}
	return u.String()
}

// encrypted reports whether a connection begins with TLS. A port speaks TCP or TCPS and never both: what nobody asked for
// is not tried, and a preference is TCP.
func encrypted(mode loader.TLSMode) bool {
	return mode == loader.TLSRequire || mode == loader.TLSVerify
}

// gooraTLS is nil without TLS, and where a wallet brings certificates and authorities of its own.
func gooraTLS(t loader.Target, d loader.Deps, mode loader.TLSMode, host string, index int) (*tls.Config, error) {
	if t.Params.Get(paramWallet) != "" {
		return nil, withoutFiles(t, d, index)
	}
	if !encrypted(mode) {
		return nil, nil
	}
	config, _, err := d.TLS(mode, host)
	if err != nil || config == nil {
		return nil, err
	}
	if want := config.ServerName; want != host && !config.InsecureSkipVerify {
		// go-ora writes the host over the name, and it would be the host that the certificate has to name.
		config = config.Clone()
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(s tls.ConnectionState) error { return verifies(s, want, config.RootCAs) }
	}
	return config, nil
}

// verifies is what package tls does by itself where it may.
func verifies(s tls.ConnectionState, name string, roots *x509.CertPool) error {
	options := x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(options)
	return err
}

// gooraCode reads go-ora's error. Where the server answers ORA-24381, go-ora puts the first row's error in its place.
func gooraCode(err error) (int, string, bool) {
	said := (*network.OracleError)(nil)
	if !errors.As(err, &said) {
		return 0, "", false
	}
	text := said.Error()
	if i := strings.Index(text, " error occur at position: "); i >= 0 { // go-ora's addition
		text = text[:i]
	}
	return said.ErrCode, text, true
}

// gooraExplain knows what a port says that speaks TCP where TCPS was meant, or the other way round.
func gooraExplain(err error) string {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &record):
		return "this port speaks no TLS: name the TCPS port, or use --tls off"
	case errors.As(err, &authority):
		return "name the server's certificate authority with --tls-ca, or its wallet with ?" + paramWallet + "="
	case strings.Contains(err.Error(), "cwallet.sso"), strings.Contains(err.Error(), "ewallet.p12"):
		return "?" + paramWallet + "= wants the folder with the auto-login wallet cwallet.sso"
	}
	return ""
}
