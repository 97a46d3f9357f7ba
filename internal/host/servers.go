package host

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// ServerLoad is how busy a server was.
type ServerLoad struct {
	URL   string  // without user, password and parameters; "" if nothing is known
	CPU   float64 // as a share of Cores; in cores if Cores is 0
	Cores int     // 0 if the metrics do not have it
}

// trust returns the TLS configuration for a host.
type trust = func(host string) (*tls.Config, error)

const (
	metricsInterval = 10 * time.Second
	metricsTimeout  = 2 * time.Second
	maxMetrics      = 16 << 20 // bytes; those of a large Doris are one or two MB
)

// ServerWatcher watches servers until Stop or Load.
type ServerWatcher struct {
	servers []*server
	stop    chan struct{}
	once    sync.Once // closes stop
	done    sync.WaitGroup
}

// WatchServers reads how busy servers' CPUs are from their own metrics: now, every ten seconds, and when the load ends.
// It returns at once, and stops when ctx ends. Errors become a warning and never end a run.
//
// The URLs are http or https, of Prometheus's text format, as node_exporter, Doris and most databases serve it. User
// and password in them are sent by basic authentication and never shown. trust returns the TLS configuration for a
// host; nil is Go's own.
func WatchServers(ctx context.Context, urls []*url.URL, trust trust) *ServerWatcher {
	return watchServers(ctx, urls, trust, metricsInterval)
}

func watchServers(ctx context.Context, urls []*url.URL, trust trust, every time.Duration) *ServerWatcher {
	w := &ServerWatcher{stop: make(chan struct{})}
	for _, u := range urls {
		s := &server{url: u, shown: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()}
		w.servers = append(w.servers, s)
		w.done.Go(func() { s.watch(ctx, w.stop, trust, every) })
	}
	return w
}

// Stop sends the last request now, without waiting for the answer. It may be called more than once.
func (w *ServerWatcher) Stop() { w.once.Do(func() { close(w.stop) }) }

// Load stops, waits for the last answers, and returns the load of the busiest server: by the share of its cores or, if
// their number is unknown, by its CPU time. warning names the servers about which something is unknown, and why. It
// takes two seconds at most, or four if a request was under way.
func (w *ServerWatcher) Load() (busiest ServerLoad, warning string) {
	w.Stop()
	w.done.Wait()
	var problems []error
	for _, s := range w.servers {
		l, err := s.load()
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.shown, err))
		}
		if l.URL != "" && (busiest.URL == "" || busier(l, busiest)) {
			busiest = l
		}
	}
	if err := errors.Join(problems...); err != nil {
		return busiest, "--server-metrics: " + err.Error()
	}
	return busiest, ""
}

// busier prefers a share, which shows how much was left, to a number of cores.
func busier(a, b ServerLoad) bool {
	if (a.Cores > 0) != (b.Cores > 0) {
		return a.Cores > 0
	}
	return a.CPU > b.CPU
}

// server is a watched server. Its fields belong to watch's goroutine until that ends.
type server struct {
	url   *url.URL
	shown string // the URL without secrets

	last    *counters // the newest answer; nil before the first
	at      time.Time // of last
	sum     counters  // what happened between answers, without restarts of the server
	seconds float64   // between them
	problem error     // the first
}

func (s *server) watch(ctx context.Context, stop <-chan struct{}, trust trust, every time.Duration) {
	client, err := s.client(trust)
	if err != nil {
		s.problem = err
		return
	}
	defer client.CloseIdleConnections()
	next := time.NewTicker(every)
	defer next.Stop()
	for over := false; ; {
		s.ask(ctx, client)
		if over || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-stop:
			over = true
		case <-next.C:
		}
	}
}

func (s *server) client(trust trust) (*http.Client, error) {
	t := &http.Transport{DisableKeepAlives: true}
	if trust != nil && s.url.Scheme == "https" {
		var err error
		if t.TLSClientConfig, err = trust(s.url.Hostname()); err != nil {
			return nil, err
		}
	}
	// A redirect could send the password elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, Timeout: metricsTimeout, CheckRedirect: stay}, nil
}

func (s *server) ask(ctx context.Context, client *http.Client) {
	now := time.Now()
	c, err := s.fetch(ctx, client)
	if err != nil {
		if s.problem == nil {
			s.problem = withoutURL(err)
		}
		return
	}
	if s.last != nil {
		s.add(*s.last, c, now.Sub(s.at).Seconds())
	}
	s.last, s.at = &c, now
}

func (s *server) fetch(ctx context.Context, client *http.Client) (counters, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil) // with basic authentication of its user
	if err != nil {
		return counters{}, err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := client.Do(r)
	if err != nil {
		return counters{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return counters{}, fmt.Errorf("the answer is %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetrics+1))
	if err != nil {
		return counters{}, err
	}
	if len(text) > maxMetrics {
		return counters{}, fmt.Errorf("the answer is longer than %d MiB", maxMetrics>>20)
	}
	return readCounters(bytes.NewReader(text))
}

// withoutURL removes net/http's prefix with the URL.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// add adds what happened between two answers, unless the server was restarted, when counters decrease.
func (s *server) add(before, after counters, seconds float64) {
	busy, total := after.busy-before.busy, after.total-before.total
	if before.metric != after.metric || busy < 0 || total < 0 || math.IsNaN(busy+total) || math.IsInf(busy+total, 0) {
		return
	}
	after.busy, after.total = s.sum.busy+busy, s.sum.total+total
	s.sum, s.seconds = after, s.seconds+seconds
}

// load returns what the answers show.
func (s *server) load() (ServerLoad, error) {
	switch {
	case s.seconds == 0 && s.problem != nil:
		return ServerLoad{}, s.problem
	case s.seconds == 0:
		return ServerLoad{}, errors.New("no two of its answers can be compared: it was restarted, or the run was cancelled")
	case s.sum.perCore == 0:
		return ServerLoad{URL: s.shown, CPU: s.sum.busy / s.seconds}, s.problem
	case s.sum.total == 0:
		return ServerLoad{}, errors.New("its counters did not change: the load was shorter than their interval")
	}
	cores := s.sum.cores
	if cores == 0 {
		cores = max(int(math.Round(s.sum.total/s.sum.perCore/s.seconds)), 1)
	}
	return ServerLoad{URL: s.shown, CPU: s.sum.busy / s.sum.total, Cores: cores}, s.problem
}
