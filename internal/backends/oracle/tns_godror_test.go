//go:build godror

package oracle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// The real godror without Oracle's client library says what is missing; with one it gets as far as the listener, which
// knows no such service.
func TestWithAndWithoutTheClientLibrary(t *testing.T) {
	l, err := fake.Listen(fake.Refuse(12514), nil)
	require.NoError(t, err)
	defer l.Close()
	const password = "word-that-must-not-show"
	to, err := loader.ParseTarget("oracle://scott:" + password + "@" + l.Address() + "/NOPE")
	require.NoError(t, err)
	to.Table = "journal"
	_, err = New().Open(t.Context(), to, loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS})
	require.Error(t, err)
	t.Log(err)

	var known *loader.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, loader.No, known.Applied)
	assert.Contains(t, err.Error(), l.Address())
	assert.Contains(t, err.Error(), `service "NOPE"`)
	assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), password)
	assert.NotContains(t, err.Error(), "ORA-00000")
	if strings.Contains(err.Error(), "DPI-1047") {
		for _, says := range []string{"Instant Client", "LD_LIBRARY_PATH", "lib_dir"} {
			assert.Contains(t, known.Hint, says)
		}
		assert.Empty(t, l.Connects())
		assert.False(t, New().Classify(err).Retry, "the library does not appear by itself")
		return
	}
	assert.Contains(t, err.Error(), "ORA-12514")
	assert.Contains(t, known.Hint, "lsnrctl services")
	require.Len(t, l.Connects(), 1)
	assert.Contains(t, l.Connects()[0], "NOPE")
}

// All methods are there, direct path among them.
func TestGodrorHasDirectPath(t *testing.T) {
	to, err := loader.ParseTarget("oracle://scott@h/s")
	require.NoError(t, err)
	to.Table, to.Method = "journal", methodDirect
	_, err = New().Check(to)
	require.NoError(t, err)
	assert.Contains(t, builtIn().name, "godror")
}
