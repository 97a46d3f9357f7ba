//go:build !godror

package oracle

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// What the real go-ora makes of a listener, as far as one can be had without a server.

func listen(t *testing.T, answer fake.Answer) *fake.Listener {
	t.Helper()
	l, err := fake.Listen(answer, nil)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// unused is an address without a listener.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

const password = "word-that-must-not-show"

// refused opens a target that cannot be opened, and checks what holds for every such error: it says where, for which
// service, as whom, and what to do next; nothing is in the table; and the password is nowhere.
func refused(ctx context.Context, t *testing.T, trust netio.Trust, hosts, rest string, says ...string) {
	t.Helper()
	to := target(t, "oracle://scott:"+password+"@"+hosts+"/"+rest, func(to *loader.Target) { to.Table = "journal" })
	var log strings.Builder
	_, err := New().Open(ctx, to, loader.Deps{
		Dial: new(netio.Dialer).DialContext, TLS: trust.TLS, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.Error(t, err)
	for _, text := range append(strings.Split(hosts, ","), append(says, `user "scott"`)...) {
		assert.Contains(t, loader.Explain(err), text)
	}
	var known *loader.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, loader.No, known.Applied)
	assert.NotEmpty(t, known.Hint, "what to do next: %v", err)
	assert.Equal(t, loader.No, New().Classify(err).Applied)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, to), log.String()} {
		assert.NotContains(t, text, "must-not-show")
	}
}

func TestRefusals(t *testing.T) {
	raw := func(packet string) fake.Answer { return fake.Answer{Packet: packet} }
	hang := func(packet string) fake.Answer { return fake.Answer{Packet: packet, Hang: true} }
	for name, c := range map[string]struct {
		answer fake.Answer
		rest   string
		says   []string
	}{
		"wrong service":     {fake.Refuse(12514), "NOPE", []string{"ORA-12514", `service "NOPE"`, "lsnrctl services"}},
		"wrong SID":         {fake.Refuse(12505), "?sid=NOPE", []string{"ORA-12505", `SID "NOPE"`}},
		"closed":            {fake.Answer{}, "s", nil},
		"another protocol":  {raw("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "s", nil},
		"an unknown packet": {raw("\x00\x08\x00\x00\x63\x00\x00\x00"), "s", nil},
		"HTTP/2": {
			hang("\x00\x00\x12\x04\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 18)), "s", []string{"does not speak Oracle's protocol"},
		},
		// go-ora takes it for a packet that it is not, and panics.
		"a short ACCEPT": {hang("\x00\x08\x00\x00\x02\x00\x00\x00"), "s", []string{"panicked"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, c.answer)
			refused(t.Context(), t, netio.Trust{}, l.Address(), c.rest, c.says...)
			require.Len(t, l.Connects(), 1, "asked once")
			if sid, found := strings.CutPrefix(c.rest, "?sid="); found {
				require.Contains(t, l.Connects()[0], "(SID="+sid+")")
			} else {
				require.Contains(t, l.Connects()[0], "(SERVICE_NAME="+c.rest+")")
			}
			require.NotContains(t, l.Connects()[0], password)
		})
	}
}

// Hosts are tried in turn until one answers; when none does, each is named. A listener may redirect a client.
func TestSeveralHosts(t *testing.T) {
	busy, last := listen(t, fake.Refuse(12516)), listen(t, fake.Refuse(12514))
	host, port, err := net.SplitHostPort(last.Address())
	require.NoError(t, err)
	redirects := listen(t, fake.Redirect(host, port))
	hosts := strings.Join([]string{"no-such-host.invalid:1521", unused(t), busy.Address(), redirects.Address()}, ",")
	refused(t.Context(), t, netio.Trust{}, hosts, "NOPE", "no such host", "connection refused", "ORA-12516", "ORA-12514")
	for _, l := range []*fake.Listener{busy, redirects, last} {
		require.Len(t, l.Connects(), 1)
	}
}

// A listener that says nothing is waited for no longer than the context lasts.
func TestHangs(t *testing.T) {
	for name, answer := range map[string]fake.Answer{
		"before an answer": {}, "after ACCEPT": fake.Accept(), "within a packet": {Packet: "\x40\x00\x00\x00\x02\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			answer.Called, answer.Hang = cancel, true
			l := listen(t, answer)
			to := target(t, "oracle://scott:"+password+"@"+l.Address()+"/s", func(to *loader.Target) { to.Table = "journal" })
			_, err := New().Open(ctx, to, backendtest.Deps())
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, l.Address())
			require.NotContains(t, err.Error(), password)
			l.Close() // the client is gone
		})
	}
}

func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1 and example.com, and its own authority
	defer web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	require.NoError(t, os.WriteFile(ca, certificate, 0o600))
	l, err := fake.Listen(fake.Refuse(12514), func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	})
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Address())
	require.NoError(t, err)
	plain := listen(t, fake.Refuse(12514))

	for _, c := range []struct {
		trust      netio.Trust
		hosts      string
		rest       string
		says       []string
		understood bool // the listener has seen a CONNECT packet
	}{
		{netio.Trust{}, l.Address(), "s?ssl=true", []string{"certificate", "--tls-ca"}, false},
		{netio.Trust{CAFile: ca}, "localhost:" + port, "s?ssl=true", []string{"certificate", "localhost", "--tls-server-name"}, false},
		{netio.Trust{CAFile: ca, ServerName: "example.org"}, l.Address(), "s?ssl=true", []string{"certificate", "example.org"}, false},
		{netio.Trust{CAFile: ca}, l.Address(), "s?ssl=true", []string{"ORA-12514"}, true},
		{netio.Trust{CAFile: ca, ServerName: "example.com"}, "localhost:" + port, "s?ssl=true", []string{"ORA-12514"}, true},
		{netio.Trust{}, "localhost:" + port, "s?ssl=true&ssl_verify=false", []string{"ORA-12514"}, true},
		{netio.Trust{}, plain.Address(), "s?ssl=true", nil, false},
		{netio.Trust{}, l.Address(), "s", nil, false},
		{netio.Trust{}, l.Address(), "s?wallet=" + t.TempDir(), []string{"cwallet.sso"}, false}, // there is none
	} {
		before := len(l.Connects())
		refused(t.Context(), t, c.trust, c.hosts, c.rest, c.says...)
		require.Equal(t, c.understood, len(l.Connects()) > before, "%+v", c)
		require.Empty(t, plain.Connects())
	}
}
