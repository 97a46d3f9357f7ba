//go:build !godror

package oracle

import (
	"context"
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

	"github.com/terapush/terapush/internal/fake/tns"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// What the real go-ora makes of a listener, as far as one can be had without a server.

func listen(t *testing.T, answer tns.Answer) *tns.Listener {
	t.Helper()
	l, err := tns.Start(answer)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// nobody is an address that nobody listens at.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

const password = "word-that-must-not-show"

// refused opens a target that cannot be opened, and checks what holds for every such error: it says where, for which
// service and as whom, and what to do next, nothing is in the table, and the password is nowhere.
func refused(ctx context.Context, t *testing.T, trust netio.Trust, hosts, rest string, says ...string) {
	t.Helper()
	to, err := loader.ParseTarget("oracle://scott:" + password + "@" + hosts + "/" + rest)
	require.NoError(t, err)
	to.Table = "journal"
	var log strings.Builder
	_, err = New().Open(ctx, to, loader.Deps{
		Dial: new(netio.Dialer).DialContext, TLS: trust.TLS, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.Error(t, err)
	for host := range strings.SplitSeq(hosts, ",") {
		assert.Contains(t, err.Error(), host)
	}
	assert.Contains(t, err.Error(), `user "scott"`)
	for _, text := range says {
		assert.Contains(t, err.Error(), text)
	}
	var known *loader.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, loader.No, known.Applied)
	assert.NotEmpty(t, known.Hint, "what to do next: %v", err)
	assert.Equal(t, loader.No, New().Classify(err).Applied)
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, to), log.String()} {
		assert.NotContains(t, text, password)
		assert.NotContains(t, text, "must-not-show")
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		answer tns.Answer
		rest   string
		says   []string
	}{
		"wrong service":      {tns.Refuse(12514), "NOPE", []string{"ORA-12514", `service "NOPE"`, "lsnrctl services"}},
		"wrong SID":          {tns.Refuse(12505), "?sid=NOPE", []string{"ORA-12505", `SID "NOPE"`}},
		"no handler":         {tns.Refuse(12516), "s", []string{"ORA-12516", "--workers"}},
		"blocked":            {tns.Refuse(12528), "s", []string{"ORA-12528"}},
		"unwelcome":          {tns.Refuse(12506), "s", []string{"ORA-12506", "client's address"}},
		"hung up":            {tns.HangUp, "s", nil},
		"hung up after that": {tns.Accept(tns.HangUp), "s", nil},
		"another protocol":   {tns.Raw("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", tns.HangUp), "s", nil},
		"an unknown packet":  {tns.Raw("\x00\x08\x00\x00\x63\x00\x00\x00", tns.HangUp), "s", nil},
		"HTTP/2":             {tns.Raw("\x00\x00\x12\x04\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 18), tns.Hang), "s", []string{"does not speak Oracle's protocol"}},
		"an ssh server":      {tns.Raw("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", tns.HangUp), "s", nil},
		// go-ora takes each of these for a packet that it is not, and panics.
		"a short ACCEPT":   {tns.Raw("\x00\x08\x00\x00\x02\x00\x00\x00", tns.Hang), "s", []string{"panicked"}},
		"a short REFUSE":   {tns.Raw("\x00\x08\x00\x00\x04\x00\x00\x00", tns.Hang), "s", []string{"panicked"}},
		"a short REDIRECT": {tns.Raw("\x00\x08\x00\x00\x05\x00\x00\x00", tns.Hang), "s", []string{"panicked"}},
		"a lying ACCEPT": {
			tns.Raw("\x00\x20\x00\x00\x02\x00\x00\x00\x01\x38\x00\x00\x20\x00\x20\x00\x00\x01\x00\x00\xff\xff"+strings.Repeat("\x00", 10), tns.Hang),
			"s", []string{"panicked"},
		},
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

func TestNobodyThere(t *testing.T) {
	refused(t.Context(), t, netio.Trust{}, nobody(t), "FREEPDB1", "connection refused", `service "FREEPDB1"`)
	refused(t.Context(), t, netio.Trust{}, "no-such-host.invalid:1521", "FREEPDB1", "no such host", "check the host's name")
}

// Hosts are taken in turn until one answers; when none does, each is told of.
func TestSeveralHosts(t *testing.T) {
	last := listen(t, tns.Refuse(12514))
	busy := listen(t, tns.Refuse(12516))
	refused(t.Context(), t, netio.Trust{}, nobody(t)+","+busy.Address()+","+last.Address(), "NOPE",
		"connection refused", "ORA-12516", "ORA-12514")
	require.Len(t, busy.Connects(), 1)
	require.Len(t, last.Connects(), 1)
}

// A listener hands clients on; go-ora follows by a connection that is dialled as the first one was.
func TestRedirect(t *testing.T) {
	other := listen(t, tns.Refuse(12514))
	host, port, err := net.SplitHostPort(other.Address())
	require.NoError(t, err)
	l := listen(t, tns.Redirect(host, port))
	refused(t.Context(), t, netio.Trust{}, l.Address(), "s", "ORA-12514")
	require.Len(t, other.Connects(), 1)
}

// Who says nothing is waited for no longer than the context lasts.
func TestHangs(t *testing.T) {
	for name, answer := range map[string]tns.Answer{
		"before an answer": tns.Hang,
		"after ACCEPT":     tns.Accept(tns.Hang),
		"within a packet":  tns.Raw("\x40\x00\x00\x00\x02\x00\x00\x00", tns.Hang),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l := listen(t, tns.Calling(cancel, answer))
			to, err := loader.ParseTarget("oracle://scott:" + password + "@" + l.Address() + "/s")
			require.NoError(t, err)
			to.Table = "journal"
			_, err = New().Open(ctx, to, loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS})
			require.ErrorIs(t, err, context.Canceled)
			require.Contains(t, err.Error(), l.Address())
			require.NotContains(t, err.Error(), password)
			l.Close() // waits for the client to be gone from it
		})
	}
}

func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, which is for 127.0.0.1 and example.com, and its own authority
	defer web.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	l, err := tns.StartTLS(web.TLS.Certificates[0], tns.Refuse(12514))
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Address())
	require.NoError(t, err)

	refused(t.Context(), t, netio.Trust{}, l.Address(), "s?ssl=true", "certificate", "--tls-ca")
	refused(t.Context(), t, netio.Trust{CAFile: ca}, "localhost:"+port, "s?ssl=true", "certificate", "localhost", "--tls-server-name")
	require.Empty(t, l.Connects(), "nobody has said a word to a server that is not trusted")

	refused(t.Context(), t, netio.Trust{CAFile: ca}, l.Address(), "s?ssl=true", "ORA-12514")
	refused(t.Context(), t, netio.Trust{CAFile: ca, ServerName: "example.com"}, "localhost:"+port, "s?ssl=true", "ORA-12514")
	refused(t.Context(), t, netio.Trust{CAFile: ca, ServerName: "example.org"}, l.Address(), "s?ssl=true", "certificate", "example.org")
	refused(t.Context(), t, netio.Trust{}, "localhost:"+port, "s?ssl=true&ssl_verify=false", "ORA-12514")
	require.Len(t, l.Connects(), 3)

	plain := listen(t, tns.Refuse(12514))
	refused(t.Context(), t, netio.Trust{}, plain.Address(), "s?ssl=true", "")
	require.Empty(t, plain.Connects())
	refused(t.Context(), t, netio.Trust{}, l.Address(), "s", "")
	require.Len(t, l.Connects(), 3)
}

func TestWalletThatIsNotThere(t *testing.T) {
	l := listen(t, tns.Refuse(12514))
	refused(t.Context(), t, netio.Trust{}, l.Address(), "s?wallet="+t.TempDir(), "cwallet.sso")
	require.Empty(t, l.Connects())
}
