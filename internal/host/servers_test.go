package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// exporter answers with one text after the other, and with the last from then on.
func exporter(t *testing.T, texts ...string) (*url.URL, *atomic.Int64) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(asked.Add(1))
		_, _ = io.WriteString(w, texts[min(n, len(texts))-1])
	}))
	t.Cleanup(s.Close)
	return parsed(t, s.URL+"/metrics"), &asked
}

func parsed(t *testing.T, text string) *url.URL {
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func TestTheBusiestServerIsTold(t *testing.T) {
	node, _ := exporter(t, sample(t, "node_exporter_0.txt"), sample(t, "node_exporter_1.txt"))
	doris, asked := exporter(t, sample(t, "doris_be_by_core_0.txt"), sample(t, "doris_be_by_core_1.txt"))
	itself, _ := exporter(t, sample(t, "process_0.txt"), sample(t, "process_1.txt"))
	frontend, _ := exporter(t, sample(t, "doris_fe.txt"))
	doris.RawQuery = "type=core"
	l, warning := WatchServers(t.Context(), []*url.URL{frontend, itself, node, doris}, nil).Load() // of a load that is over at once
	require.EqualValues(t, 2, asked.Load(), "at the start and at the end")
	require.Equal(t, "http://"+doris.Host+"/metrics", l.URL, "a share says more than cores of an unknown number")
	require.InDelta(t, 0.875, l.CPU, 1e-6)
	require.Contains(t, warning, "--server-metrics: http://"+frontend.Host+"/metrics: no CPU time in there")
	require.NotContains(t, warning, node.Host)

	l, _ = WatchServers(t.Context(), nil, nil).Load()
	require.Equal(t, ServerLoad{}, l)
}

func TestItIsAskedAgainDuringALongLoad(t *testing.T) {
	node, asked := exporter(t, sample(t, "node_exporter_0.txt"), "out of order", sample(t, "node_exporter_1.txt"))
	w := watchServers(t.Context(), []*url.URL{node}, nil, time.Millisecond)
	require.Eventually(t, func() bool { return asked.Load() > 3 }, 10*time.Second, time.Millisecond)
	l, warning := w.Load()
	require.InDelta(t, 0.75, l.CPU, 1e-6, "one answer that is missing does no harm")
	require.Contains(t, warning, "no CPU time in there", "and is told")
}

func TestPasswordsAreSentAndNotShown(t *testing.T) {
	var user, password atomic.Value
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, p, _ := r.BasicAuth()
		user.Store(u)
		password.Store(p)
		http.Redirect(w, r, "/elsewhere?token=s3cr3t", http.StatusFound)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	hosts := make(chan string, 1)
	trust := func(host string) (*tls.Config, error) {
		hosts <- host
		return &tls.Config{RootCAs: roots}, nil
	}
	u := parsed(t, s.URL+"/metrics?token=s3cr3t")
	u.User = url.UserPassword("scraper", "s3cr3t")
	l, warning := WatchServers(t.Context(), []*url.URL{u}, trust).Load()
	require.Empty(t, l.URL)
	require.Equal(t, "127.0.0.1", <-hosts)
	require.Equal(t, [2]any{"scraper", "s3cr3t"}, [2]any{user.Load(), password.Load()})
	require.Contains(t, warning, s.URL+"/metrics: the answer is 302 Found")
	require.NotContains(t, warning, "s3cr3t")

	_, warning = WatchServers(t.Context(), []*url.URL{u}, nil).Load()
	require.Contains(t, warning, "certificate", "nobody trusts it")
	require.NotContains(t, warning, "s3cr3t")
}

func TestServersThatTellNothing(t *testing.T) {
	gone, _ := exporter(t, "")
	gone.Host = "127.0.0.1:1"
	endless, _ := exporter(t, strings.Repeat("\n", maxMetrics+1))
	l, warning := WatchServers(t.Context(), []*url.URL{gone, endless}, nil).Load()
	require.Equal(t, ServerLoad{}, l)
	require.Contains(t, warning, "http://127.0.0.1:1/metrics: dial tcp 127.0.0.1:1")
	require.Contains(t, warning, "the answer is longer than 16 MiB")
}

func TestTheEndOfTheRunEndsTheQuestions(t *testing.T) {
	asked := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	w := WatchServers(ctx, []*url.URL{parsed(t, s.URL)}, nil)
	<-asked
	cancel()
	_, warning := w.Load()
	require.Contains(t, warning, "context canceled")
}
