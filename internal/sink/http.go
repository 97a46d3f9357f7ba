package sink

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
)

// Answer is the response to a request.
type Answer struct {
	Status int
	Header []string // names and values in turn
	Type   string   // of the body
	Body   []byte
}

// AnswerJSON makes an answer of a value of our own.
func AnswerJSON(status int, value any) Answer {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Answer{Status: status, Type: "application/json;charset=utf-8", Body: append(text, '\n')}
}

// HandlerFunc answers a request. Its body's reader ends with an error other than io.EOF where the client has cut it
// short.
type HandlerFunc func(c *Conn, r *http.Request) Answer

// maxHead bounds the head of a request, in bytes.
const maxHead = 64 << 10

// ListenHTTP opens a server for HTTP/1.1, over TLS where the client wants it.
func ListenHTTP(addr string, o Options, h HandlerFunc) (*Server, error) {
	l := &handover{conns: make(chan net.Conn)}
	web := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveHTTP(w, r, h) }),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ReadHeaderTimeout: greetingTime, MaxHeaderBytes: maxHead,
		ErrorLog: log.New(io.Discard, "", 0), // of clients that send garbage
	}
	s, err := Listen(addr, o, func(_ uint32, c *Conn) error {
		if err := c.Greet(func() error { return c.AcceptTLS("http/1.1") }); err != nil {
			return err
		}
		select {
		case l.conns <- c:
			<-c.closed
		case <-c.server.closing:
		}
		return nil
	})
	if err == nil {
		l.server = s
		s.handlers.Go(func() { _ = web.Serve(l) })
	}
	return s, err
}

// handover is a listener for connections that were accepted elsewhere.
type handover struct {
	conns  chan net.Conn
	server *Server
}

func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.server.closing:
		return nil, net.ErrClosed
	}
}

func (h *handover) Close() error   { return nil }
func (h *handover) Addr() net.Addr { return h.server.listener.Addr() }

type connKey struct{}

// awaited is the body of a client that waits until it is asked for it, as the first Read does.
type awaited struct {
	io.ReadCloser
	asked bool
}

func (a *awaited) Read(p []byte) (int, error) {
	a.asked = true
	return a.ReadCloser.Read(p)
}

// serveHTTP answers a request. What is left of the body is read before, since a client that is still sending may never
// read the answer. One that waits to be asked for its body is not asked; net/http then ends the connection.
func serveHTTP(w http.ResponseWriter, r *http.Request, h HandlerFunc) {
	c := r.Context().Value(connKey{}).(*Conn)
	c.Statement()
	body := &awaited{r.Body, true}
	if r.Header.Get("Expect") != "" {
		body.asked, r.Body = false, body
	}
	a := h(c, r)
	r.Body = body.ReadCloser // which net/http knows by its type
	head := w.Header()
	if body.asked {
		var err error
		for void := c.Void(); err == nil; {
			_, err = r.Body.Read(void)
		}
		if !errors.Is(err, io.EOF) { // the client is gone, or its body is malformed
			head.Set("Connection", "close")
		}
	}
	head.Set("Server", c.Options.Name())
	if a.Type != "" {
		head.Set("Content-Type", a.Type)
	}
	if a.Status != http.StatusNoContent {
		head.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	for i := 0; i+1 < len(a.Header); i += 2 {
		head[a.Header[i]] = []string{a.Header[i+1]}
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}
