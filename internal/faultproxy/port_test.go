package faultproxy_test

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

func TestFreePort(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		port := faultproxy.FreePort(t)
		assert.False(t, seen[port], "%s was handed out twice", port)
		seen[port] = true
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		assert.Less(t, n, max(faultproxy.FirstEphemeral(t), 11_000), "an outgoing connection may hold it")
		_, err = net.Dial("tcp", "127.0.0.1:"+port)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		require.NoError(t, err, "a server can have it")
		require.NoError(t, l.Close())
	}
}
