// Package httpload sends batches over HTTP/1.1: bodies of a known length, no redirects, and answers that are read whole.
//
// net/http's defaults lose data or speed here. A client that follows redirects sends a body twice or drops the
// Authorization header between a frontend and a backend; with two idle connections a host, 64 workers open a new
// connection for nearly every request; an HTTP/2 connection is one flow, which clouds cap.
package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Options are those of a client.
type Options struct {
	// Dial opens the connections: loader.Deps.Dial.
	Dial dial
	// TLS is the configuration for https; nil for http only.
	TLS *tls.Config
	// Connections is how many stay open while idle: the number of workers.
	Connections int
	// ExpectContinue is how long a request with "Expect: 100-continue" waits for the server before it sends the body; 0 does
	// not wait. A server that refuses the body and keeps the connection open receives it, too: else the connection could
	// not be used again. Of a server that has never asked for a body, one request waits for a second at most, and later
	// ones not at all.
	ExpectContinue time.Duration
	// Silent is called once if the server did not ask for the first body. It may be nil.
	Silent func()
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	asking    *asking
}

// NewClient returns a client.
func NewClient(o Options) *Client {
	t := &http.Transport{
		DialContext:         patient(o.Dial),
		MaxIdleConnsPerHost: max(o.Connections, 1),
		IdleConnTimeout:     60 * time.Second,
		DisableCompression:  true,
		Protocols:           onlyHTTP1(),

		ExpectContinueTimeout: o.ExpectContinue,
	}
	if o.TLS != nil {
		t.DialTLSContext = patient(encrypted(o.Dial, o.TLS))
	}
	return &Client{transport: t, asking: newAsking(o, t)}
}

func onlyHTTP1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// Response is an answer, read whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// MaxAnswer limits the body of an answer, in bytes. Answers to loads have a few hundred.
const MaxAnswer = 16 << 20

// Do sends the request and reads the answer, whatever the status. After an error the request may have been carried out,
// unless loader.NotSent reports that it was not sent. The transport may read the request's body after Do has returned;
// it must keep its bytes until it is closed, as batch.Body does.
func (c *Client) Do(r *http.Request) (*Response, error) {
	answer, err := c.roundTrip(r)
	if err != nil {
		return nil, &brokenError{err}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer+1))
	if err != nil {
		err = &brokenError{err}
	} else if len(body) > MaxAnswer {
		err = fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s (status %d): %w", r.Method, r.URL.Path, answer.StatusCode, err)
	}
	return &Response{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// RoundTrip is Do for a caller that reads and closes the answer itself.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.roundTrip(r)
	if err != nil {
		return nil, &brokenError{err}
	}
	return answer, nil
}

// brokenError marks the transport's errors. Some have neither a type nor a cause, such as "http: server closed idle
// connection".
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// Broken reports whether a request ended without an answer because of the connection, so that another one may do. Whether
// it was carried out is unknown, unless loader.NotSent is true as well. A request that its context ended is not broken.
func Broken(err error) bool {
	var broken *brokenError
	return errors.As(err, &broken) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Close closes the idle connections.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	c.asking.first.CloseIdleConnections()
	return nil
}
