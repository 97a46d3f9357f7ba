package oracle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Listener is as much of Oracle's own protocol as real drivers can be shown without a server: it reads a CONNECT packet
// and answers it. Nobody logs in.
//
// The packets are those that go-ora's package network reads and writes (v2.9.0): a header of eight bytes, with the
// length in the first two and the type in the fifth. All numbers are big-endian.
type Listener struct {
	listener net.Listener
	answer   Answer
	done     sync.WaitGroup

	mu       sync.Mutex
	connects []string
}

// Answer is what a listener does with a client whose CONNECT packet it has read: it calls Called, sends Packet, and
// closes the connection, or waits until the client does.
type Answer struct {
	Called func()
	Packet string
	Hang   bool
}

const (
	typeConnect, typeAccept, typeRefuse, typeRedirect = 1, 2, 4, 5

	headerBytes = 8
)

// Listen answers on a loopback port until Close. wrap may put TLS over the listener.
func Listen(answer Answer, wrap func(net.Listener) net.Listener) (*Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if wrap != nil {
		listener = wrap(listener)
	}
	l := &Listener{listener: listener, answer: answer}
	l.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.done.Go(func() { l.attend(conn) })
		}
	})
	return l, nil
}

// Address returns host:port.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Connects returns the connect descriptors that came, the oldest first.
func (l *Listener) Connects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.connects)
}

// Close waits until all clients have closed their connections.
func (l *Listener) Close() {
	_ = l.listener.Close()
	l.done.Wait()
}

// attend answers a CONNECT packet, and nothing else.
func (l *Listener) attend(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	connect, err := readConnect(conn)
	if err != nil {
		return
	}
	l.mu.Lock()
	l.connects = append(l.connects, connect)
	l.mu.Unlock()
	if l.answer.Called != nil {
		l.answer.Called()
	}
	if _, err := io.WriteString(conn, l.answer.Packet); err == nil && l.answer.Hang {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// readConnect reads a CONNECT packet and returns it, up to the end of its descriptor: a long one follows in a packet of
// its own.
func readConnect(conn io.Reader) (string, error) {
	packet := make([]byte, headerBytes)
	if _, err := io.ReadFull(conn, packet); err != nil || packet[4] != typeConnect {
		return "", errors.New("not a CONNECT packet")
	}
	for open := 0; open == 0 || open > bytes.Count(packet, []byte(")")); open = bytes.Count(packet, []byte("(")) {
		more := make([]byte, 4096)
		n, err := conn.Read(more)
		if err != nil {
			return "", err
		}
		packet = append(packet, more[:n]...)
	}
	return string(packet), nil
}

// Refuse returns a REFUSE packet with the number of an ORA error, as a listener sends that does not know a service.
func Refuse(code int) Answer {
	text := fmt.Sprintf("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR=%d)(ERROR_STACK=(ERROR=(CODE=%d)(EMFI=4))))", code, code)
	return Answer{Packet: packet(typeRefuse, string([]byte{34, 0})+short(len(text))+text)}
}

// Accept returns an ACCEPT packet, as an old server without encryption sends: version 312, the last whose packets have
// lengths of two bytes, units of 8192 bytes, data at 32, and no negotiation of encryption before the login.
func Accept() Answer {
	return Answer{Packet: packet(typeAccept, short(312)+short(0)+short(8192)+short(8192)+short(1)+short(0)+short(32)+
		string([]byte{4})+string(make([]byte, 9)))}
}

// Redirect returns a packet that sends the client to another address.
func Redirect(host, port string) Answer {
	address := fmt.Sprintf("(ADDRESS=(PROTOCOL=tcp)(HOST=%s)(PORT=%s))", host, port)
	return Answer{Packet: packet(typeRedirect, short(len(address))+address), Hang: true}
}

func packet(kind byte, body string) string {
	return short(headerBytes+len(body)) + string([]byte{0, 0, kind, 0, 0, 0}) + body
}

func short(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
