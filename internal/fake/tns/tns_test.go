package tns_test

import (
	"context"
	"net"
	"net/url"
	"testing"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/tns"
)

func start(t *testing.T, answer tns.Answer) *tns.Listener {
	t.Helper()
	l, err := tns.Start(answer)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

// connect is what go-ora makes of a listener.
func connect(ctx context.Context, l *tns.Listener, service string) error {
	to := url.URL{Scheme: "oracle", User: url.UserPassword("scott", "tiger"), Host: l.Address(), Path: service}
	conn, err := go_ora.NewConnector(to.String()).Connect(ctx)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// The driver, and not only this package, takes the answers for what they are meant to be.
func TestGoOraUnderstands(t *testing.T) {
	for _, service := range []string{"FREEPDB1", "a-service-so-long-that-its-descriptor-comes-in-a-packet-of-its-own." +
		"sub01010101010101.vcn01010101010101.oraclevcn.com.and.some.more.of.it.since.cloud.names.are.like.that.example.com"} {
		l := start(t, tns.Refuse(12514))
		err := connect(t.Context(), l, service)
		var oracle *network.OracleError
		require.ErrorAs(t, err, &oracle)
		require.Equal(t, 12514, oracle.ErrCode)
		require.Len(t, l.Connects(), 1)
		require.Contains(t, l.Connects()[0], "(SERVICE_NAME="+service+")")
		require.NotContains(t, l.Connects()[0], "tiger")
	}

	require.Error(t, connect(t.Context(), start(t, tns.HangUp), "s"))
	require.ErrorContains(t, connect(t.Context(), start(t, tns.Raw("\x00\x08\x00\x00\x63\x00\x00\x00", tns.Hang)), "s"), "unsupported packet type: 99")

	other := start(t, tns.Refuse(12516))
	host, port, err := net.SplitHostPort(other.Address())
	require.NoError(t, err)
	require.ErrorContains(t, connect(t.Context(), start(t, tns.Redirect(host, port)), "s"), "ORA-12516")
	require.Len(t, other.Connects(), 1)
}

func TestAcceptIsAnAccept(t *testing.T) {
	asked := make(chan string, 1)
	l := start(t, tns.Accept(func(conn net.Conn) error {
		packet := make([]byte, 64)
		n, err := conn.Read(packet)
		asked <- string(packet[:n])
		return err
	}))
	require.Error(t, connect(t.Context(), l, "s"))
	// Type DATA, two bytes of flags, and the first message of every client: protocol negotiation.
	require.Regexp(t, `^(?s)..\x00\x00\x06\x00\x00\x00\x00\x00\x01`, <-asked)
}

func TestHangEndsWithTheClient(t *testing.T) {
	// go-ora's own way to end a call is a data race, so the connection is closed under it.
	conns := make(chan net.Conn, 1)
	l := start(t, tns.Calling(func() { _ = (<-conns).Close() }, tns.Hang))
	c := go_ora.NewConnector("oracle://scott:tiger@" + l.Address() + "/s").(*go_ora.OracleConnector)
	c.Dialer(dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			conns <- conn
		}
		return conn, err
	}))
	_, err := c.Connect(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// What is not TNS is not answered.
func TestOthers(t *testing.T) {
	l := start(t, tns.Refuse(12514))
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x04\x00\x00\x01\x00\x00\x00", "\x00\x08\x00\x00\x01\x00\x00\x00", "\x00"} {
		conn, err := net.Dial("tcp", l.Address())
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		_ = conn.(*net.TCPConn).CloseWrite() // it may have hung up already
		n, err := conn.Read(make([]byte, 1))
		require.Zero(t, n)
		require.Error(t, err)
		require.NoError(t, conn.Close())
	}
	require.Empty(t, l.Connects())

	// Whoever is still there when the listener ends is hung up on.
	conn, err := net.Dial("tcp", l.Address())
	require.NoError(t, err)
	defer conn.Close()
	l.Close()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}
