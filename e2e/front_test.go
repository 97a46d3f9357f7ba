package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// front is an HTTP server before another one, which answers itself or spoils answers as the test wants it.
type front struct {
	*httptest.Server
}

// newFront starts one. before sees every request and reports whether it has answered it; after sees every answer before it
// goes to the client, and an error of it ends the connection. Both may be nil, and run in many goroutines at once.
func newFront(t *testing.T, server string, before func(http.ResponseWriter, *http.Request) bool, after func(*http.Response) error) *front {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is part of what is signed
		},
		Transport:      transport,
		ModifyResponse: after,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f := &front{httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))}
	f.Start()
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
		transport.CloseIdleConnections()
	})
	return f
}

// address is host and port.
func (f *front) address() string { return f.Listener.Addr().String() }
