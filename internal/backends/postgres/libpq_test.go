package postgres

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// gate is a server that says how a client came in, and no more. Without a certificate it has no TLS.
func gate(t *testing.T, certificate *tls.Certificate) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go admit(c, certificate)
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func admit(c net.Conn, certificate *tls.Certificate) {
	defer func() { _ = c.Close() }()
	how := "plain"
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return
	}
	if binary.BigEndian.Uint32(head[4:]) == 80877103 { // SSLRequest
		if certificate == nil {
			_, _ = c.Write([]byte("N"))
			return
		}
		_, _ = c.Write([]byte("S"))
		secure := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*certificate}, ClientAuth: tls.RequestClientCert})
		if secure.Handshake() != nil {
			return
		}
		how = "encrypted"
		for _, one := range secure.ConnectionState().PeerCertificates {
			how += " by " + one.Subject.CommonName
		}
		c = secure
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
	}
	_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head))-8)
	fields := "SFATAL\x00VFATAL\x00C28000\x00Mcame in " + how + "\x00\x00"
	answer := binary.BigEndian.AppendUint32([]byte("E"), uint32(4+len(fields)))
	_, _ = c.Write(append(answer, fields...))
}

// libpq's settings from all of its places decide whom the password goes to, as in libpq or more strictly. What a
// gate says is the only sign that anything was sent to it.
func TestTLSAsInLibpq(t *testing.T) {
	ca, foreign := backendtest.NewAuthority(t), backendtest.NewAuthority(t)
	issue := func(change func(*x509.Certificate)) *tls.Certificate {
		leaf := ca.Leaf()
		change(leaf)
		pair := ca.Issue(t, leaf)
		return &pair
	}
	good := gate(t, issue(func(*x509.Certificate) {}))
	other := gate(t, issue(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"db.example"}, nil }))
	expired := gate(t, issue(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	nameless := gate(t, issue(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil }))
	plain := gate(t, nil)

	const encrypted, inPlain, unknown = "came in encrypted", "came in plain", "signed by unknown authority"
	home := func(root string) func(*testing.T) {
		return func(t *testing.T) {
			text, err := os.ReadFile(root)
			require.NoError(t, err)
			folder := filepath.Join(os.Getenv("HOME"), ".postgresql")
			require.NoError(t, os.MkdirAll(folder, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "root.crt"), text, 0o600))
		}
	}
	env := func(pairs ...string) func(*testing.T) {
		return func(t *testing.T) {
			for i := 0; i < len(pairs); i += 2 {
				t.Setenv(pairs[i], pairs[i+1])
			}
		}
	}
	service := func(lines string) func(*testing.T) {
		return func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "services")
			require.NoError(t, os.WriteFile(file, []byte("[mine]\n"+lines+"\n"), 0o600))
			t.Setenv("PGSERVICEFILE", file)
			t.Setenv("PGSERVICE", "mine")
		}
	}
	for name, c := range map[string]struct {
		port, query string
		trust       netio.Trust
		mode        loader.TLSMode
		prepare     func(*testing.T)
		want        string
	}{
		"nothing on this machine":       {port: good, want: encrypted},
		"nothing, and no TLS":           {port: plain, want: inPlain},
		"require, and no TLS":           {port: plain, query: "sslmode=require", want: "the server offers no TLS; --tls off connects without"},
		"verify-full":                   {port: good, query: "sslmode=verify-full&sslrootcert=" + ca.File, want: encrypted},
		"verify-full, foreign":          {port: good, query: "sslmode=verify-full&sslrootcert=" + foreign.File, want: unknown},
		"verify-full, other name":       {port: other, query: "sslmode=verify-full&sslrootcert=" + ca.File, want: "the certificate is for another name"},
		"verify-full, no SAN":           {port: nameless, query: "sslmode=verify-full&sslrootcert=" + ca.File, want: "subject alternative name (SAN)"},
		"verify-full without authority": {port: good, query: "sslmode=verify-full", want: unknown},
		"verify-ca":                     {port: other, query: "sslmode=verify-ca&sslrootcert=" + ca.File, want: encrypted},
		"verify-ca, no SAN":             {port: nameless, query: "sslmode=verify-ca&sslrootcert=" + ca.File, want: encrypted},
		"verify-ca, foreign":            {port: other, query: "sslmode=verify-ca&sslrootcert=" + foreign.File, want: unknown},
		"verify-ca, expired":            {port: expired, query: "sslmode=verify-ca&sslrootcert=" + ca.File, want: "has expired"},
		"verify-ca without authority":   {port: good, query: "sslmode=verify-ca", want: unknown},
		"verify-ca of the system":       {port: good, query: "sslmode=verify-ca&sslrootcert=system", want: unknown},
		"require":                       {port: expired, query: "sslmode=require", want: encrypted},
		"require with authority":        {port: other, query: "sslmode=require&sslrootcert=" + ca.File, want: encrypted},
		"require with a foreign one":    {port: good, query: "sslmode=require&sslrootcert=" + foreign.File, want: unknown},
		"prefer with a foreign one":     {port: good, query: "sslmode=prefer&sslrootcert=" + foreign.File, want: unknown},
		"authority alone, other name":   {port: other, query: "sslrootcert=" + ca.File, want: "the certificate is for another name"},
		"ssl=true":                      {port: plain, query: "ssl=true", want: "the server offers no TLS"},

		"service":                 {port: good, prepare: service("sslmode=verify-full\nsslrootcert=" + foreign.File), want: unknown},
		"service, and no TLS":     {port: plain, prepare: service("sslmode=require"), want: "the server offers no TLS"},
		"service in the URL":      {port: good, query: "service=mine", prepare: service("sslmode=verify-ca"), want: unknown},
		"the URL over a service":  {port: good, query: "sslmode=require", prepare: service("sslmode=verify-full"), want: encrypted},
		"a service over PGSSL":    {port: good, prepare: func(t *testing.T) { env("PGSSLMODE", "disable")(t); service("sslmode=verify-full")(t) }, want: unknown},
		"PGSSLMODE":               {port: plain, prepare: env("PGSSLMODE", "require"), want: "the server offers no TLS"},
		"PGREQUIRESSL":            {port: plain, prepare: env("PGREQUIRESSL", "1"), want: "the server offers no TLS"},
		"PGSSLROOTCERT":           {port: good, prepare: env("PGSSLMODE", "require", "PGSSLROOTCERT", foreign.File), want: unknown},
		"root.crt":                {port: other, query: "sslmode=require", prepare: home(ca.File), want: encrypted},
		"root.crt, foreign":       {port: good, query: "sslmode=require", prepare: home(foreign.File), want: unknown},
		"root.crt, nothing asked": {port: good, prepare: home(foreign.File), want: inPlain}, // as in libpq

		"--tls-ca":                       {port: good, trust: netio.Trust{CAFile: ca.File}, want: encrypted},
		"--tls-ca, foreign":              {port: good, trust: netio.Trust{CAFile: foreign.File}, want: unknown},
		"--tls-ca, expired":              {port: expired, trust: netio.Trust{CAFile: ca.File}, want: "has expired"},
		"--tls-ca, other name":           {port: other, trust: netio.Trust{CAFile: ca.File}, mode: loader.TLSRequire, want: "the certificate is for another name"},
		"--tls-ca, other name in tunnel": {port: other, trust: netio.Trust{CAFile: ca.File, ServerName: "db.example"}, want: encrypted},
		"--tls-ca with verify-ca":        {port: other, trust: netio.Trust{CAFile: ca.File}, mode: loader.TLSVerifyCA, want: encrypted},
		"--tls-ca with prefer":           {port: good, trust: netio.Trust{CAFile: foreign.File}, mode: loader.TLSPrefer, want: unknown},
		"--tls-ca, and no TLS":           {port: plain, trust: netio.Trust{CAFile: ca.File}, want: "the server offers no TLS"},
		"--tls-ca and disable":           {port: good, query: "sslmode=disable", trust: netio.Trust{CAFile: ca.File}, want: "TLS is off, so that --tls-ca cannot be checked"},
		"--tls-ca over PGSSLROOTCERT":    {port: good, trust: netio.Trust{CAFile: ca.File}, prepare: env("PGSSLROOTCERT", foreign.File), want: encrypted},
		"--tls-server-name":              {port: good, trust: netio.Trust{ServerName: "localhost"}, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			noClientFiles(t)
			if c.prepare != nil {
				c.prepare(t)
			}
			a := accessTo(t, "postgres://u@127.0.0.1:"+c.port+"/d?"+c.query)
			a.target.TLS, a.deps.TLS = c.mode, c.trust.TLS
			_, err := Driver{}.Open(t.Context(), a.target, a.deps)
			require.Contains(t, loader.Explain(err), c.want)
		})
	}
}

// The client's certificate comes from the flags, libpq's settings or its usual place; a key must be nobody else's.
func TestClientCertificates(t *testing.T) {
	ca := backendtest.NewAuthority(t)
	server := ca.Issue(t, ca.Leaf())
	port := gate(t, &server)
	leaf := ca.Leaf()
	leaf.Subject.CommonName = "alice"
	alice := ca.Issue(t, leaf)
	at := func(t *testing.T, folder string) (cert, key string) {
		cert, key = filepath.Join(folder, "postgresql.crt"), filepath.Join(folder, "postgresql.key")
		backendtest.WritePair(t, alice, cert, key)
		return cert, key
	}
	usual := func(t *testing.T) (string, string) { return at(t, filepath.Join(os.Getenv("HOME"), ".postgresql")) }
	open := func(a access) error {
		_, err := Driver{}.Open(t.Context(), a.target, a.deps)
		return err
	}
	for name, c := range map[string]struct {
		prepare func(*testing.T, *access)
		want    string
	}{
		"none":     {func(*testing.T, *access) {}, "came in encrypted (SQLSTATE"},
		"at home":  {func(t *testing.T, _ *access) { usual(t) }, "by alice"},
		"disabled": {func(t *testing.T, _ *access) { usual(t); t.Setenv("PGSSLCERTMODE", "disable") }, "came in encrypted (SQLSTATE"},
		"in the environment": {func(t *testing.T, _ *access) {
			cert, key := at(t, t.TempDir())
			t.Setenv("PGSSLCERT", cert)
			t.Setenv("PGSSLKEY", key)
		}, "by alice"},
		"in the URL": {func(t *testing.T, a *access) {
			cert, key := at(t, t.TempDir())
			a.target.Params = url.Values{"sslcert": {cert}, "sslkey": {key}}
		}, "by alice"},
		"flags": {func(t *testing.T, a *access) {
			cert, key := at(t, t.TempDir())
			t.Setenv("PGSSLCERT", "none")
			a.deps.TLS = netio.Trust{CertFile: cert, KeyFile: key}.TLS
		}, "by alice"},
		"half a flag": {func(_ *testing.T, a *access) { a.deps.TLS = netio.Trust{KeyFile: "x"}.TLS }, "belong together"},
		"readable by others": {func(t *testing.T, _ *access) {
			_, key := usual(t)
			require.NoError(t, os.Chmod(key, 0o644))
		}, "can be read by others: chmod 600"},
		"with a passphrase": {func(t *testing.T, _ *access) {
			_, key := usual(t)
			text := "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
			require.NoError(t, os.WriteFile(key, []byte(text), 0o600))
		}, "is encrypted with a passphrase, and such keys are not read"},
	} {
		t.Run(name, func(t *testing.T) {
			noClientFiles(t)
			a := accessTo(t, "postgres://u@127.0.0.1:"+port+"/d")
			c.prepare(t, &a)
			require.ErrorContains(t, open(a), c.want)
		})
	}
}

// What a server's refusal means for TLS, in the words of version 15 and of those before 14.
func TestRefusedByPgHba(t *testing.T) {
	for message, want := range map[string]string{
		`no pg_hba.conf entry for host "::1", user "u", database "d", no encryption`:    "--tls require",
		`no pg_hba.conf entry for host "::1", user "u", database "d", SSL off`:          "--tls require",
		`pg_hba.conf rejects connection for host "::1", user "u", database "d", SSL on`: "no line for this user",
		`no pg_hba.conf entry for host "::1", user "u", database "d", SSL encryption`:   "no line for this user",
		`connection requires a valid client certificate`:                                "--tls-cert",
		`certificate authentication failed for user "u"`:                                "for another user",
		`pg_hba.conf-Eintrag fehlt`:                                                     "check user and password",
	} {
		err := connectError(endpoint{"h", "1"}, &pgconn.Config{}, &pgconn.PgError{Severity: "FATAL", Code: "28000", Message: message})
		assert.Contains(t, loader.Explain(err), want)
	}
	err := connectError(endpoint{"h", "1"}, &pgconn.Config{}, &pgconn.PgError{
		Severity: "FATAL", Code: "42704", Message: `unrecognized configuration parameter "pgbouncer"`,
	})
	assert.Contains(t, loader.Explain(err), `"pgbouncer" (SQLSTATE 42704) (the target's parameters are those of libpq`)
}

// What libpq knows and terapush cannot do is refused by name, wherever it stands; what nobody misses is left out and not
// sent to the server.
func TestLibpqsParameters(t *testing.T) {
	for query, want := range map[string]string{
		"gssencmode=require":                    "parameter gssencmode=require",
		"sslcrl=/x":                             "parameter sslcrl=/x",
		"sslcrldir=/x":                          "parameter sslcrldir=/x",
		"sslsni=0":                              "parameter sslsni=0",
		"replication=database":                  "parameter replication=database",
		"ssl=maybe":                             "parameter ssl=maybe: write sslmode=",
		"ssl_max_protocol_version=TLSv1.1":      "parameter ssl_max_protocol_version=TLSv1.1",
		"ssl_min_protocol_version=2":            "parameter ssl_min_protocol_version=2",
		"oauth_issuer=x":                        "parameter oauth_issuer",
		"sslmode=maybe":                         "verify-full",
		"sslmode=disable&sslnegotiation=direct": "contradict each other",
		"hostaddr=1,2":                          "hostaddr has 2 addresses for 1 hosts",
		"keepalives=1&keepalives_idle=3":        "",
		"keepalives_interval=1&hostaddr=::1":    "",
		"keepalives_count=1&tcp_user_timeout=9": "",
		"gssencmode=prefer&channel_binding=require&require_auth=scram-sha-256":  "",
		"client_encoding=LATIN1&load_balance_hosts=random&sslcompression=0":     "",
		"krbsrvname=x&gsslib=x&gssdelegation=0&requirepeer=x&replication=off":   "",
		"fallback_application_name=x&target_session_attrs=any&sslsni=1":         "",
		"ssl_min_protocol_version=TLSv1.3&connect_timeout=5&options=-c%20a.b=c": "",
	} {
		t.Run(query, func(t *testing.T) {
			noClientFiles(t)
			a := accessTo(t, "postgres://u@h/d?"+query)
			config, err := a.config(endpoint{"h", "5432"})
			if want != "" {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			_, _, err = planOf(a.target)
			require.NotContains(t, fmt.Sprint(err), "parameter")
			for name := range config.RuntimeParams {
				assert.Contains(t, []string{"client_encoding", "options"}, name)
			}
			if strings.Contains(query, "hostaddr") {
				addresses, err := config.LookupFunc(t.Context(), "h")
				require.NoError(t, err)
				assert.Equal(t, []string{"::1"}, addresses)
			}
			if strings.Contains(query, "TLSv1.3") {
				assert.Equal(t, uint16(tls.VersionTLS13), config.TLSConfig.MinVersion)
			}
		})
	}
	for variable, want := range map[string]string{"PGGSSENCMODE=require": "gssencmode", "PGSSLCRL=/x": "sslcrl", "PGHOSTADDR=::1,::2": "hostaddr"} {
		t.Run(variable, func(t *testing.T) {
			noClientFiles(t)
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
			_, err := accessTo(t, "postgres://u@h/d").config(endpoint{"h", "5432"})
			require.ErrorContains(t, err, want)
		})
	}
}

// Passwords that others can read are not used, and that is said.
func TestOpenPassfile(t *testing.T) {
	noClientFiles(t)
	file := filepath.Join(os.Getenv("HOME"), ".pgpass")
	require.NoError(t, os.WriteFile(file, []byte("*:*:*:*:hush\n"), 0o600))
	a := accessTo(t, "postgres://u@h/d")
	var said bytes.Buffer
	a.deps.Log = slog.New(slog.NewTextHandler(&said, nil))
	for mode, want := range map[os.FileMode]string{0o600: "hush", 0o400: "hush", 0o644: "", 0o640: ""} {
		said.Reset()
		require.NoError(t, os.Chmod(file, mode))
		config, err := a.config(endpoint{"h", "5432"})
		require.NoError(t, err)
		assert.Equal(t, want, config.Password, mode)
		_, err = a.endpoints()
		require.NoError(t, err)
		assert.Equal(t, want == "", strings.Contains(said.String(), "password file "+file+" can be read by others, and is not read: chmod 600"), mode)
	}
}
