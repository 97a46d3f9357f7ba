// Package tns is the part of an Oracle server that can be had without one: a listener that reads a client's CONNECT packet
// and answers as a script says. It goes no further than ACCEPT, so nobody ever logs in.
//
// The packets are those that go-ora's package network reads and writes (v2.9.0): a header of eight bytes, with the length
// in the first two and the type in the fifth, then what the type asks for. All numbers are big-endian.
package tns

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Types of packets.
const (
	typeConnect  = 1
	typeAccept   = 2
	typeRefuse   = 4
	typeRedirect = 5
	typeData     = 6
)

const headerBytes = 8

// Answer is what a listener does with a client whose CONNECT packet it has read. The connection is closed when it returns.
type Answer func(conn net.Conn) error

// Listener is a running listener.
type Listener struct {
	listener net.Listener
	answer   Answer
	done     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]bool
	connects []string
}

// Start listens on a loopback port until Close.
func Start(answer Answer) (*Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("tns: %w", err)
	}
	return serve(listener, answer), nil
}

// StartTLS is Start for clients that speak TLS from the first byte, as they do to a listener of protocol TCPS.
func StartTLS(certificate tls.Certificate, answer Answer) (*Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("tns: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return serve(tls.NewListener(listener, config), answer), nil
}

func serve(listener net.Listener, answer Answer) *Listener {
	l := &Listener{listener: listener, answer: answer, conns: map[net.Conn]bool{}}
	l.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if !l.keep(conn) {
				_ = conn.Close()
				return
			}
			l.done.Go(func() {
				defer l.drop(conn)
				l.attend(conn)
			})
		}
	})
	return l
}

// Address is host:port.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Connects are the connect descriptors that came, the oldest first.
func (l *Listener) Connects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.connects...)
}

// Close hangs up on everybody.
func (l *Listener) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.done.Wait()
}

func (l *Listener) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[conn] = true
	return !l.closed
}

func (l *Listener) drop(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// attend reads the CONNECT packet and answers it. Clients that break off, or that speak something else, are not answered.
func (l *Listener) attend(conn net.Conn) {
	connect, err := readConnect(conn)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.connects = append(l.connects, connect)
	l.mu.Unlock()
	_ = l.answer(conn)
}

// readConnect reads a CONNECT packet and returns its descriptor. One that is longer than 230 bytes comes in a DATA packet
// of its own, behind two bytes of flags.
func readConnect(conn io.Reader) (string, error) {
	packet, err := readPacket(conn, typeConnect)
	if err != nil {
		return "", err
	}
	const fixed = 28 // up to the descriptor's length and place
	if len(packet) < fixed {
		return "", errors.New("tns: a CONNECT packet that is too short")
	}
	length, at := int(binary.BigEndian.Uint16(packet[24:])), int(binary.BigEndian.Uint16(packet[26:]))
	if len(packet) >= at+length {
		return string(packet[at : at+length]), nil
	}
	var descriptor []byte
	for len(descriptor) < length {
		data, err := readPacket(conn, typeData)
		if err != nil {
			return "", err
		}
		if len(data) <= headerBytes+2 {
			return "", errors.New("tns: a DATA packet without data")
		}
		descriptor = append(descriptor, data[headerBytes+2:]...)
	}
	return string(descriptor[:length]), nil
}

func readPacket(conn io.Reader, want byte) ([]byte, error) {
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(conn, header); err != nil {
		return nil, err
	}
	if header[4] != want {
		return nil, fmt.Errorf("tns: a packet of type %d where one of type %d belongs", header[4], want)
	}
	length := int(binary.BigEndian.Uint16(header))
	if length < headerBytes {
		return nil, errors.New("tns: a packet that is shorter than its header")
	}
	packet := append(header, make([]byte, length-headerBytes)...)
	_, err := io.ReadFull(conn, packet[headerBytes:])
	return packet, err
}
