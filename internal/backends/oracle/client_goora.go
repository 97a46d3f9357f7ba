//go:build !godror

package oracle

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	goora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// builtIn is go-ora, which is pure Go and part of the static binary.
func builtIn() client {
	return client{
		name:      "go-ora v2.9.0",
		connector: gooraConnector,
		code:      gooraCode,
		explain:   gooraExplain,
		// As TIMESTAMP: a time.Time becomes a TIMESTAMP WITH TIME ZONE, for which go-ora searches its whole list of
		// zones, 7 µs a value.
		times: bindTimes(func(t time.Time) goora.TimeStamp { return goora.TimeStamp(t) }),
		maybeTimes: bindTimes(func(t time.Time) goora.NullTimeStamp {
			return goora.NullTimeStamp{TimeStamp: goora.TimeStamp(t), Valid: true}
		}),
	}
}

func gooraConnector(t loader.Target, d loader.Deps, host int) (driver.Connector, error) {
	config, err := gooraTLS(t, d, host)
	if err != nil {
		return nil, err
	}
	text := gooraURL(t, host)
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
		driver: goora.NewDriver(), // package sql calls nothing of it
	}, nil
}

// gooraURL is the connection URL of go-ora. All parts are escaped, since go-ora quotes a URL that it cannot parse.
func gooraURL(t loader.Target, host int) string {
	params := url.Values{"PROGRAM": {"terapush"}}
	if sid := t.Params.Get(paramSID); sid != "" {
		params.Set("SID", sid)
	}
	if encrypted(t.TLS) {
		params.Set("SSL", "true")
		params.Set("SSL VERIFY", strconv.FormatBool(t.TLS != loader.TLSRequire))
	}
	if wallet := t.Params.Get(paramWallet); wallet != "" {
		params.Set("WALLET", wallet)
	}
	u := url.URL{
		Scheme: "oracle", User: url.UserPassword(t.User, t.Password.Reveal()), Path: "/" + t.Database,
		Host: t.Address(host, defaultPort), RawQuery: params.Encode(),
	}
	return u.String()
}

// gooraTLS returns nil without TLS, and with a wallet, which has certificates and authorities of its own.
func gooraTLS(t loader.Target, d loader.Deps, host int) (*tls.Config, error) {
	if t.Params.Get(paramWallet) != "" {
		return nil, refuseCertificates(t, d, host)
	}
	if !encrypted(t.TLS) {
		return nil, nil
	}
	name, _ := hostPort(t, host)
	config, _, err := d.TLS(t.TLS, name)
	if err != nil || config == nil {
		return nil, err
	}
	if want := config.ServerName; want != name && !config.InsecureSkipVerify {
		// go-ora overwrites ServerName with the host, so that the certificate is verified for the wanted name here.
		config = config.Clone()
		config.InsecureSkipVerify = true
		netio.VerifyAs(config, want)
	}
	return config, nil
}

// gooraCode reads an error of go-ora, which replaces ORA-24381 by the error of the first row.
func gooraCode(err error) (int, string, bool) {
	e := (*network.OracleError)(nil)
	if !errors.As(err, &e) {
		return 0, "", false
	}
	text, _, _ := strings.Cut(e.Error(), " error occur at position: ") // added by go-ora
	return e.ErrCode, text, true
}

// gooraExplain recognizes a TCP port where TCPS was expected, and a missing authority or wallet.
func gooraExplain(err error) string {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &record):
		return "this port does not speak TLS: name the TCPS port, or use --tls off"
	case errors.As(err, &authority):
		return "name the server's certificate authority with --tls-ca, or its wallet with ?" + paramWallet + "="
	case strings.Contains(err.Error(), "cwallet.sso"), strings.Contains(err.Error(), "ewallet.p12"):
		return "?" + paramWallet + "= takes the folder of the auto-login wallet cwallet.sso"
	}
	return ""
}
