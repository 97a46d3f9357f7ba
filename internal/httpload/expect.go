package httpload

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// askFirst is how long the first request waits for the server to ask for the body. A server that has asked once is
// given Options.ExpectContinue: it may be busy.
const askFirst = time.Second

// asking is what is known of a server that may ask for bodies. Many a proxy and simple server never does, and each
// batch would wait in vain. So one request finds out, the others wait for it, and what it finds is remembered.
type asking struct {
	first   *http.Transport // waits for askFirst
	silent  func()          // Options.Silent
	answer  atomic.Int32    // unknown, asks or says nothing
	known   chan struct{}   // closed when the answer is no longer unknown
	turn    chan struct{}   // held by the request that finds out
	timeout time.Duration
}

const (
	unknown int32 = iota
	asks
	saysNothing
)

func newAsking(o Options, t *http.Transport) *asking {
	a := &asking{
		first: t.Clone(), silent: o.Silent, timeout: min(askFirst, o.ExpectContinue),
		known: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	a.first.ExpectContinueTimeout = a.timeout
	return a
}

// roundTrip sends a request, with "Expect: 100-continue" only where the server may answer that.
func (c *Client) roundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Expect") == "" || r.Body == nil || r.Body == http.NoBody || c.transport.ExpectContinueTimeout == 0 {
		return c.transport.RoundTrip(r)
	}
	for c.asking.answer.Load() == unknown {
		select {
		case c.asking.turn <- struct{}{}:
			if c.asking.answer.Load() == unknown {
				defer func() { <-c.asking.turn }()
				return c.asking.find(r)
			}
			<-c.asking.turn
		case <-c.asking.known:
		case <-r.Context().Done():
			_ = r.Body.Close()
			return nil, r.Context().Err()
		}
	}
	if c.asking.answer.Load() == saysNothing {
		r = r.Clone(r.Context())
		r.Header.Del("Expect")
	}
	return c.transport.RoundTrip(r)
}

// find sends the request that finds out. A server that refuses it, or that cannot be reached, leaves that to the next
// one. One that asks after all, when it has the body, was only late.
func (a *asking) find(r *http.Request) (*http.Response, error) {
	over, end := context.WithCancel(r.Context())
	defer end()
	trace := &httptrace.ClientTrace{
		Wait100Continue: func() { go a.listen(over) }, // in a goroutine of the transport's
		Got100Continue: func() {
			if a.answer.Swap(asks) == unknown {
				close(a.known)
			}
		},
	}
	began := time.Now()
	answer, err := a.first.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err == nil && answer.StatusCode < http.StatusMultipleChoices && time.Since(began) >= a.timeout {
		a.heardNothing() // it took a body that it had not asked for, and listen comes too late
	}
	return answer, err
}

// listen notes that the server says nothing, unless it answers in time, by whatever answer.
func (a *asking) listen(over context.Context) {
	select {
	case <-time.After(a.timeout):
	case <-a.known:
	case <-over.Done():
		return
	}
	a.heardNothing()
}

func (a *asking) heardNothing() {
	if !a.answer.CompareAndSwap(unknown, saysNothing) {
		return
	}
	if a.silent != nil {
		a.silent()
	}
	close(a.known)
}
