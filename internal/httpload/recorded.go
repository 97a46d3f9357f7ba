package httpload

import (
	"bytes"
	"io"
	"net/http"
)

// Recorded returns a client for loader.Driver.Explain: what is sent to an http:// address goes to answer, and nothing
// leaves this process.
func Recorded(answer func(*http.Request) Response) *Client {
	c := NewClient(Options{})
	c.transport.RegisterProtocol("http", recorded(answer))
	return c
}

type recorded func(*http.Request) Response

// RoundTrip implements http.RoundTripper.
func (answer recorded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	a := answer(r)
	return &http.Response{
		StatusCode: a.Status, Header: a.Header, Request: r,
		Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
	}, nil
}

// WithHeaders adds to the text of a request a line for each of these headers that it has. Others may hold secrets.
func WithHeaders(text string, r *http.Request, names ...string) string {
	for _, name := range names {
		if value := r.Header.Get(name); value != "" {
			text += "\n" + name + ": " + value
		}
	}
	return text
}
