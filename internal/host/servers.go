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
	URL string // without user, password and parameters; "" where nothing is known
	CPU float64
	// Cores is what CPU is a share of; 0 where the metrics do not have it: then CPU is in cores.
	Cores int
}

const (
	metricsInterval = 10 * time.Second
	metricsTimeout  = 2 * time.Second
	longestMetrics  = 16 << 20 // bytes; of a large Doris they are one or two MB
)

// ServerWatcher watches servers until Stop or Load.
type ServerWatcher struct {
	servers []*server
	stop    chan struct{}
	once    sync.Once // closes stop
	done    sync.WaitGroup
}

// WatchServers reads from servers' own metrics how busy their CPUs are: now, every ten seconds, and when the load
// ends. It returns at once; when ctx ends no more requests are sent. Errors become a warning and never end a run.
//
// The URLs are http or https, of Prometheus's text format, as node_exporter, Doris and most databases serve it. User and
// password in them are sent by basic authentication and shown nowhere. trust returns the TLS configuration for a host;
// nil is Go's own.
func WatchServers(ctx context.Context, urls []*url.URL, trust func(host string) (*tls.Config, error)) *ServerWatcher {
	return watchServers(ctx, urls, trust, metricsInterval)
}

func watchServers(ctx context.Context, urls []*url.URL, trust func(string) (*tls.Config, error), every time.Duration) *ServerWatcher {
	w := &ServerWatcher{stop: make(chan struct{})}
	for _, u := range urls {
		s := &server{url: u, shown: public(u)}
		w.servers = append(w.servers, s)
		w.done.Go(func() { s.watch(ctx, w.stop, trust, every) })
	}
	return w
}

// Stop sends the last request now, and does not wait for its answer. It may be called more than once.
func (w *ServerWatcher) Stop() { w.once.Do(func() { close(w.stop) }) }

// Load stops, waits for the last answer, and returns the load of the busiest server: by the share of its cores, or, where
// their number is not known, by the CPU time it took. warning names the servers of which nothing, or not all, is known,
// and why; "" where there are none. It takes two seconds at most, or four where a request was under way.
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

// busier prefers a share, which shows how much was left, to a number of cores, which does not.
func busier(a, b ServerLoad) bool {
	if (a.Cores > 0) != (b.Cores > 0) {
		return a.Cores > 0
	}
	return a.CPU > b.CPU
}

// public returns a URL as it may be shown.
func public(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// server is one that is watched. Its fields belong to the goroutine of watch until Load has waited for that.
type server struct {
	url   *url.URL
	shown string

	last             *counters // of the newest answer; nil before the first
	at               time.Time // when it was asked
	busy, total      float64   // ticks since the first answer, but for the time in which the server was started anew
	perCore, seconds float64
	cores            int
	problem          error // the first
}

func (s *server) watch(ctx context.Context, stop <-chan struct{}, trust func(string) (*tls.Config, error), every time.Duration) {
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

func (s *server) client(trust func(string) (*tls.Config, error)) (*http.Client, error) {
	t := &http.Transport{DisableKeepAlives: true}
	if trust != nil && s.url.Scheme == "https" {
		var err error
		if t.TLSClientConfig, err = trust(s.url.Hostname()); err != nil {
			return nil, err
		}
	}
	// A redirect would be asked with the same password elsewhere, or without.
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
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil) // net/http makes the header of the user info
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
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestMetrics+1))
	if err != nil {
		return counters{}, err
	}
	if len(text) > longestMetrics { // half of the metrics would be wrong ones
		return counters{}, fmt.Errorf("the answer is longer than %d MiB", longestMetrics>>20)
	}
	return readCounters(bytes.NewReader(text))
}

// withoutURL removes the URL that net/http puts in front of its errors.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// add adds what happened between two answers. Counters that fell are those of a server that was restarted.
func (s *server) add(before, after counters, seconds float64) {
	busy, total := after.busy-before.busy, after.total-before.total
	if before.from != after.from || busy < 0 || total < 0 || math.IsNaN(busy+total) || math.IsInf(busy+total, 0) {
		return
	}
	s.busy, s.total, s.seconds = s.busy+busy, s.total+total, s.seconds+seconds
	s.perCore, s.cores = after.perCore, after.cores
}

// load returns what the answers show.
func (s *server) load() (ServerLoad, error) {
	switch {
	case s.seconds == 0 && s.problem != nil:
		return ServerLoad{}, s.problem
	case s.seconds == 0:
		return ServerLoad{}, errors.New("no two of its answers can be compared: it was restarted in between, or the run was cancelled")
	case s.perCore == 0:
		return ServerLoad{URL: s.shown, CPU: s.busy / s.seconds}, s.problem
	case s.total == 0:
		return ServerLoad{}, errors.New("its counters stood still: the load was shorter than the server takes to count")
	}
	cores := s.cores
	if cores == 0 { // all of them make so many ticks in this time
		cores = max(int(math.Round(s.total/s.perCore/s.seconds)), 1)
	}
	return ServerLoad{URL: s.shown, CPU: s.busy / s.total, Cores: cores}, s.problem
}
