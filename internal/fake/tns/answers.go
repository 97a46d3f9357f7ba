package tns

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// HangUp closes the connection without a word.
func HangUp(net.Conn) error { return nil }

// Hang says nothing and waits until the client has closed the connection.
func Hang(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

// Calling calls f, and answers when it has returned.
func Calling(f func(), then Answer) Answer {
	return func(conn net.Conn) error {
		f()
		return then(conn)
	}
}

// Raw sends bytes that need not be a packet, and goes on with what comes then.
func Raw(text string, then Answer) Answer {
	return func(conn net.Conn) error {
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		return then(conn)
	}
}

// Refuse sends a REFUSE packet with the number of an ORA error, in the words of a listener.
func Refuse(code int) Answer {
	text := fmt.Sprintf("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR=%d)(ERROR_STACK=(ERROR=(CODE=%d)(EMFI=4))))", code, code)
	body := make([]byte, 4, 4+len(text))
	body[0], body[1] = 34, 0 // the reasons that a listener gives which does not know a service
	binary.BigEndian.PutUint16(body[2:], uint16(len(text)))
	return send(typeRefuse, append(body, text...), HangUp)
}

// Accept sends an ACCEPT packet, as an old server without encryption would, and goes on with what comes then.
func Accept(then Answer) Answer {
	const (
		version = 312 // the last whose packets have lengths of two bytes
		unit    = 8192
		at      = 32 // where the data would be
	)
	body := make([]byte, at-headerBytes)
	put := func(offset int, n uint16) { binary.BigEndian.PutUint16(body[offset-headerBytes:], n) }
	put(8, version)
	put(12, unit)
	put(14, unit)
	put(16, 1) // its byte order
	put(20, at)
	body[22-headerBytes] = 4 // no negotiation of encryption before the login
	return send(typeAccept, body, then)
}

// Redirect sends the client to another address.
func Redirect(host, port string) Answer {
	address := fmt.Sprintf("(ADDRESS=(PROTOCOL=tcp)(HOST=%s)(PORT=%s))", host, port)
	body := binary.BigEndian.AppendUint16(nil, uint16(len(address)))
	return send(typeRedirect, append(body, address...), Hang)
}

func send(kind byte, body []byte, then Answer) Answer {
	packet := make([]byte, headerBytes, headerBytes+len(body))
	binary.BigEndian.PutUint16(packet, uint16(headerBytes+len(body)))
	packet[4] = kind
	packet = append(packet, body...)
	return func(conn net.Conn) error {
		if _, err := conn.Write(packet); err != nil {
			return err
		}
		return then(conn)
	}
}
