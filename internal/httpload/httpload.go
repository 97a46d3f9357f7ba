// Package httpload sends batches over HTTP/1.1: bodies of a known length, redirects left to the caller, and answers
// that are read whole.
//
// It exists because net/http's defaults lose data or speed here. A client that follows redirects sends a body twice or
// drops the Authorization header on the way from a frontend to a backend; two idle connections a host make a new
// connection for nearly every request of 64 workers; one HTTP/2 connection is one flow, and a flow is capped in clouds.
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

// Options shape a client.
type Options struct {
	// Dial opens the connections: loader.Deps.Dial.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the configuration for https; nil for a client that only speaks http.
	TLS *tls.Config
	// Connections is how many may stay open while idle: the number of workers.
	Connections int
	// ExpectContinue is how long a request with "Expect: 100-continue" waits for the server to ask for the body before it
	// is sent all the same; 0 does not wait. A server that refuses the body and leaves the connection open is sent it too,
	// since that is the only way to go on using the connection.
	ExpectContinue time.Duration
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
}

// NewClient makes a client.
func NewClient(o Options) *Client {
	return &Client{transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := o.Dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &patient{Conn: c}, nil
		},
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        0, // no bound of its own
		MaxIdleConnsPerHost: max(o.Connections, 1),
		IdleConnTimeout:     60 * time.Second,
		DisableCompression:  true,
		Protocols:           onlyHTTP1(),

		ExpectContinueTimeout: o.ExpectContinue,
	}}
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

// MaxAnswer bounds the body of an answer in bytes. Answers to loads are a few hundred.
const MaxAnswer = 16 << 20

// Do sends the request and reads the answer. No redirect is followed, whatever the status. When it returns an error
// the request may have been carried out, unless loader.NotSent says otherwise. The request's body is closed as soon as
// nothing reads it any more, which may be after Do has returned: it must keep its bytes until then, as batch.Body does.
func (c *Client) Do(r *http.Request) (*Response, error) {
	answer, err := c.transport.RoundTrip(r)
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

// RoundTrip sends the request as Do does, and leaves the answer to be read and closed by the caller.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, &brokenError{err}
	}
	return answer, nil
}

// brokenError is what the transport says of a request without an answer. It is marked where it comes from, since net/http
// gives some of these errors neither a type nor a cause: a server that closes an idle connection while a request is on its
// way into it is the plain text "http: server closed idle connection".
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// Broken tells that a request ended without an answer for a reason that lies between here and the server, so another
// connection may do. Whether it was carried out nobody knows, unless loader.NotSent is true as well. What the request's own
// context ended is not broken.
func Broken(err error) bool {
	var broken *brokenError
	return errors.As(err, &broken) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Close closes the idle connections.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}
