package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColors(t *testing.T) {
	for env, want := range map[string]string{
		"":           "\x1b[32mok\x1b[0m: 7 rows\nokay\n\x1b[31mverify FAILED\x1b[0m: ok\n",
		"NO_COLOR=1": "ok: 7 rows\nokay\nverify FAILED: ok\n",
		"TERM=dumb":  "ok: 7 rows\nokay\nverify FAILED: ok\n",
	} {
		name, value, _ := strings.Cut(env, "=")
		a := app{columns: 80}
		a.LookupEnv = func(n string) (string, bool) { return value, n == name && name != "" }
		require.Equal(t, want, string(a.colored([]byte("ok: 7 rows\nokay\nverify FAILED: ok\n"))), env)
		a.columns = 0
		require.NotContains(t, string(a.colored([]byte("ok"))), "\x1b", "a file")
	}
}
