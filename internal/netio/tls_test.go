package netio_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// What a mode encrypts and verifies, and whether it allows a server without TLS.
func TestTLSModes(t *testing.T) {
	for _, c := range []struct {
		mode            loader.TLSMode
		host            string
		verifies, plain bool
	}{
		{loader.TLSVerify, "localhost", true, false}, {loader.TLSRequire, "db.example", false, false},
		{loader.TLSPrefer, "db.example", false, true}, {loader.TLSAuto, "db.example", true, false},
		{loader.TLSAuto, "localhost", false, true}, {loader.TLSAuto, "::1", false, true}, {loader.TLSAuto, "10.0.0.1", true, false},
	} {
		config, plain, err := netio.Trust{}.TLS(c.mode, c.host)
		require.NoError(t, err)
		require.Equal(t, c.verifies, !config.InsecureSkipVerify, "%+v", c)
		require.Equal(t, c.plain, plain, "%+v", c)
		require.Equal(t, c.host, config.ServerName)
	}

	// Names and authorities are given to be checked.
	config, plain, err := netio.Trust{ServerName: "db.example"}.TLS(loader.TLSAuto, "127.0.0.1")
	require.NoError(t, err)
	require.False(t, config.InsecureSkipVerify || plain)
	config, _, err = netio.Trust{}.TLS(loader.TLSVerifyCA, "127.0.0.1")
	require.NoError(t, err)
	require.False(t, config.InsecureSkipVerify, "the system's authorities sign for anybody")

	config, plain, err = netio.Trust{}.TLS(loader.TLSOff, "db.example")
	require.NoError(t, err)
	require.Nil(t, config)
	require.True(t, plain)
}
