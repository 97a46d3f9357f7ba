package doris

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// httpServer speaks HTTP/1.1 by hand. net/http's server reads ahead, hides the one of two contradicting length headers,
// answers 100-continue and closes connections as it sees fit; all of that is what the tests here are about.
type httpServer struct {
	listener  net.Listener
	handle    func(*exchange)
	bodyBytes atomic.Int64 // bytes of bodies that nobody asked for

	mu     sync.Mutex
	conns  map[net.Conn]bool // nil once closed
	served sync.WaitGroup
}

func listen(host string) (*httpServer, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	return &httpServer{listener: l, conns: map[net.Conn]bool{}}, nil
}

func (s *httpServer) address() string { return s.listener.Addr().String() }

func (s *httpServer) serve() {
	s.served.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			if s.conns == nil {
				s.mu.Unlock()
				c.Close()
				return
			}
			s.conns[c] = true
			s.served.Go(func() { s.connection(c.(*net.TCPConn)) })
			s.mu.Unlock()
		}
	})
}

func (s *httpServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.served.Wait()
}

func (s *httpServer) connection(c *net.TCPConn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		x, err := readHead(c, r)
		if err != nil {
			return
		}
		s.handle(x)
		if x.gone {
			return
		}
		if !x.sent {
			x.answer(http.StatusNotFound, "text/plain", []byte("not found\n"))
		}
		if x.unread() {
			s.bodyBytes.Add(drain(c, r))
			return
		}
		if strings.EqualFold(x.header.Get("Connection"), "close") {
			return
		}
	}
}

// drain counts what the client still sends after it was answered, until it closes. The write side is closed first, so
// that a client without anything to send notices.
func drain(c *net.TCPConn, r *bufio.Reader) int64 {
	_ = c.CloseWrite() // the client is gone otherwise
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return int64(r.Buffered())
	}
	n, _ := io.Copy(io.Discard, r) // the connection is given up either way
	return n
}

// exchange is one request and its answer.
type exchange struct {
	conn   *net.TCPConn
	r      *bufio.Reader
	method string
	url    *url.URL
	header http.Header
	length int64 // Content-Length; -1 without one
	chunks bool

	body     io.Reader // nil until begun
	finished bool      // the body was read to its end
	sent     bool
	gone     bool // the connection is closed
}

func readHead(c *net.TCPConn, r *bufio.Reader) (*exchange, error) {
	t := textproto.NewReader(r)
	line, err := t.ReadLine()
	if err != nil {
		return nil, err
	}
	header, err := t.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	method, rest, _ := strings.Cut(line, " ")
	target, _, _ := strings.Cut(rest, " ")
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	x := &exchange{conn: c, r: r, method: method, url: u, header: http.Header(header), length: -1}
	x.chunks = strings.Contains(strings.ToLower(x.header.Get("Transfer-Encoding")), "chunked")
	if text := x.header.Get("Content-Length"); text != "" {
		if x.length, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// unread tells that a body was announced and not read: what follows on the connection is not a request.
func (x *exchange) unread() bool { return (x.length > 0 || x.chunks) && !x.finished }

// begin asks the client for the body where it waits for that, and returns it.
func (x *exchange) begin() (io.Reader, error) {
	if strings.EqualFold(x.header.Get("Expect"), "100-continue") && (x.length > 0 || x.chunks) {
		if _, err := io.WriteString(x.conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	if x.chunks {
		x.body = httputil.NewChunkedReader(x.r)
	} else {
		x.body = io.LimitReader(x.r, max(x.length, 0))
	}
	return x.body, nil
}

// readAll reads the body. With a length it also reports whether all of it came.
func (x *exchange) readAll() ([]byte, error) {
	body, err := x.begin()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return data, err
	}
	if x.chunks {
		// The reader of chunks stops behind the last one; trailers and an empty line follow.
		if _, err := textproto.NewReader(x.r).ReadMIMEHeader(); err != nil {
			return data, err
		}
	} else if int64(len(data)) < x.length {
		return data, io.ErrUnexpectedEOF
	}
	x.finished = true
	return data, nil
}

func (x *exchange) answer(status int, contentType string, body []byte) {
	x.answerWith(status, http.Header{"Content-Type": {contentType}}, body)
}

func (x *exchange) answerWith(status int, h http.Header, body []byte) {
	x.sent = true
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), len(body))
	for name, values := range h {
		fmt.Fprintf(&head, "%s: %s\r\n", name, values[0])
	}
	if x.unread() {
		head.WriteString("Connection: close\r\n")
	}
	head.WriteString("\r\n")
	if _, err := x.conn.Write(append([]byte(head.String()), body...)); err != nil {
		x.cut()
	}
}

// cut ends the connection without a word.
func (x *exchange) cut() {
	x.gone = true
	_ = x.conn.Close()
}

// reset ends the connection with an RST: what the client has not read yet of an answer it may lose.
func (x *exchange) reset() {
	x.gone = true
	_ = x.conn.SetLinger(0) // without it the client sees a FIN instead, which it must survive as well
	_ = x.conn.Close()
}

// basicAuth is the user and password of the request.
func (x *exchange) basicAuth() (user, password string, ok bool) {
	scheme, encoded, _ := strings.Cut(x.header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), ":")
}
