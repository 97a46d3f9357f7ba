//go:build !godror

package oracle

import (
	"errors"
	"net"
)

// socket is a driver's network connection that tells when the driver has sent what it had to send. Reads and writes come
// from one goroutine at a time; only Close may come from any.
type socket struct {
	net.Conn
	wrote  bool
	answer func() // called once, at the first read after a write; nil

	heard int  // bytes that have come, as far as they are looked at
	high  byte // the first of them
}

// errNoTNS is an answer that no listener of Oracle gives.
var errNoTNS = errors.New("what answers does not speak Oracle's protocol")

func (s *socket) Write(p []byte) (int, error) {
	s.wrote = true
	return s.Conn.Write(p)
}

func (s *socket) Read(p []byte) (int, error) {
	if f := s.answer; f != nil && s.wrote {
		s.answer = nil
		f()
	}
	n, err := s.Conn.Read(p)
	if s.heard < lengthBytes && !s.begins(p[:n]) {
		return 0, errNoTNS
	}
	return n, err
}

// What a packet begins with until both sides have agreed on a version: its length, which counts the header as well.
const (
	lengthBytes = 2
	headerBytes = 8
)

// begins looks at the length of the first packet. One below its header's own makes go-ora ask for 4 GiB of memory; what
// sends it is another protocol, such as HTTP/2. Later packets are not looked at: where their length lies depends on the
// version, and inside TLS it cannot be seen from here.
func (s *socket) begins(p []byte) bool {
	for _, b := range p {
		if s.heard++; s.heard == 1 {
			s.high = b
			continue
		}
		return int(s.high)<<8|int(b) >= headerBytes
	}
	return true
}

// onAnswer waits for a write that is still to come.
func (s *socket) onAnswer(f func()) { s.wrote, s.answer = false, f }
