package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// index is what a person sees who opens the address.
const index = `<!doctype html><html lang="en"><title>terapush</title><h1>terapush</h1>
<ul><li><a href="/metrics">metrics</a>, for Prometheus</li><li><a href="/healthz">healthz</a>: ok while the process runs</li></ul></html>
`

// Server serves /metrics and /healthz on --metrics-addr, and links to both at /.
type Server struct {
	listener net.Listener
	http     *http.Server // nil before Serve
	done     chan struct{}
}

// Listen opens the address, before anything else of the run: an address in use costs no time. Scrapes before Serve wait
// in the listen queue.
func Listen(ctx context.Context, address string) (*Server, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics-addr %s: %w", address, err)
	}
	return &Server{listener: l, done: make(chan struct{})}, nil
}

// Addr returns the address with the port that the system chose for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve starts serving the metrics of the run, the Go runtime and the process. It must be called only once.
func (s *Server) Serve(m *Metrics) error {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, index)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		// A failing listener makes scrapes fail, which must not end the run.
		_ = s.http.Serve(s.listener)
	}()
	return nil
}

// Linger keeps serving for d or until ctx ends, for the last scrape.
func (s *Server) Linger(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Close waits up to a second for running scrapes and frees the address.
func (s *Server) Close() error {
	if s.http == nil {
		return s.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.done
	return err
}
