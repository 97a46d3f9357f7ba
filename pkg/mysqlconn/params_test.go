package mysqlconn_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// What providers and other clients write into URLs is accepted, or refused by name.
func TestParameters(t *testing.T) {
	authority := backendtest.NewAuthority(t).File
	const (
		off, prefer, encrypt, chain, verify = "off", "prefer", "require", "chain", "verify"
		usual                               = verify // of another machine
	)
	for query, want := range map[string]string{
		"": usual, "tls=false": off, "tls=preferred": prefer, "tls=skip-verify": encrypt, "tls=true": verify,
		"ssl-mode=REQUIRED": encrypt, "sslmode=require": encrypt, "ssl_mode=VERIFY_IDENTITY": verify, "sslMode=DISABLED": off,
		"ssl-mode=PREFERRED": prefer, "ssl-mode=VERIFY_CA": verify, "sslmode=verify-full": verify,
		"ssl-mode=VERIFY_CA&ssl-ca=" + authority: chain, "ssl-mode=REQUIRED&ssl-ca=" + authority: chain,
		"sslmode=prefer&sslCA=" + authority: chain, "ssl-ca=" + authority: verify,
		"useSSL=true": encrypt, "useSSL=false": off, "useSSL=true&requireSSL=false": encrypt, "requireSSL=true": encrypt,
		"useSSL=true&verifyServerCertificate=true": verify, "useSSL=true&verifyServerCertificate=false": encrypt,
		"useSSL=true&sslMode=VERIFY_IDENTITY": verify, "trustServerCertificate=true": encrypt,
		`ssl={"rejectUnauthorized":true}`: verify, `ssl={"rejectUnauthorized": false}`: encrypt, "ssl=true": verify, "ssl=0": off,
		"sslaccept=strict": verify, "allowPublicKeyRetrieval=true": usual, "tls=preferred&allowPublicKeyRetrieval=false": encrypt,
		"charset=utf8mb4&useUnicode=true&characterEncoding=UTF-8&serverTimezone=UTC&parseTime=true&loc=Local": usual,
		"serverVersion=8.0.32&connectTimeout=3&tls-version=TLSv1.2,TLSv1.3":                                   usual,

		"useSSL=false&requireSSL=true":                   "parameters requireSSL=true and useSSL=false of the target contradict each other",
		"allowPublicKeyRetrieval=false&sslMode=DISABLED": "contradict each other",
		"sslMode=DISABLED&ssl-ca=/x":                     "names a certificate authority, and switches TLS off",
		"ssl-cert=/x":                                    "a client's certificate and its key belong together",
		"ssl-ca=/nowhere":                                "/nowhere",
		"ssl-capath=/x":                                  "parameter ssl-capath of the target cannot be honoured: name a file with authorities by --tls-ca",
		"trustCertificateKeyStoreUrl=file:/x":            "name a file in PEM by --tls-ca",
		"ssl-crl=/x":                                     "lists of revoked certificates are not read",
		"tlsVersion=TLSv1.3":                             "TLSv1.2 and TLSv1.3 are spoken here",
		"ssl-mode=yes":                                   "parameter ssl-mode=yes of the target is not known; there are: disable, disabled, prefer",
		"tls=maybe":                                      "parameter tls=maybe of the target is not known; there are: 0, 1, false, preferred, skipverify, true",
		"useSsI=true":                                    `parameter "useSsI" of the target is not known; there are: socket, tls, ssl-mode, ssl-ca, ssl-cert, ssl-key`,
		"sql_mode=ANSI":                                  "; a session variable goes into --set sql_mode=…",
	} {
		target, err := loader.ParseTarget("mysql://h/d?" + query)
		require.NoError(t, err)
		config, err := mysqlconn.Config(target, backendtest.Deps(), "tcp", "h:3306")
		params, unreadable := mysqlconn.ReadParams(target.Params)
		if err = errors.Join(unreadable, params.Unknown("socket"), err); err != nil {
			assert.ErrorContains(t, err, want, query)
			continue
		}
		got := verify
		switch {
		case config.TLS == nil:
			got = off
		case config.AllowFallbackToPlaintext:
			got = prefer
		case config.TLS.InsecureSkipVerify && config.TLS.VerifyConnection != nil:
			got = chain
		case config.TLS.InsecureSkipVerify:
			got = encrypt
		}
		assert.Equal(t, want, got, query)
	}
}

// The --tls flags come before the URL, whose authority is checked all the same.
func TestTLSFlagsAndParameters(t *testing.T) {
	authority := backendtest.NewAuthority(t).File
	target := loader.Target{Hosts: []string{"h"}, TLS: loader.TLSVerify, Params: url.Values{"tls": {"false"}}}
	config, err := mysqlconn.Config(target, backendtest.Deps(), "tcp", "h:3306")
	require.NoError(t, err)
	assert.False(t, config.TLS.InsecureSkipVerify)

	target = loader.Target{Hosts: []string{"h"}, TLS: loader.TLSRequire, Params: url.Values{"ssl-ca": {authority}}}
	config, err = mysqlconn.Config(target, backendtest.Deps(), "tcp", "h:3306")
	require.NoError(t, err)
	assert.NotNil(t, config.TLS.VerifyConnection)
}
