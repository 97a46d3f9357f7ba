package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

// A case is the push that the command line would make of the same flags.
func TestFromValuesIsTheCommandLine(t *testing.T) {
	e := env{"TERAPUSH_SEED": "9", "TERAPUSH_BYTES": "1GiB", "TERAPUSH_PASSWORD": "hunter2"}
	file := filepath.Join(t.TempDir(), "push.yaml")
	require.NoError(t, os.WriteFile(file, []byte("retries: 3\nworkers: 8\nbatch-bytes: 1MiB"), 0o600))
	want, f, err := parse(t, "--method copy --workers 4 --rows 7 --batch-rows 5 --unlogged --set c=3 --set a=1=x", e, "retries: 3\nworkers: 8\nbatch-bytes: 1MiB")
	require.NoError(t, err)

	got, given, err := config.FromValues(map[string][]string{
		"target": {"base://u:hunter2@h/db"}, "method": {"copy"}, "workers": {"4"}, "rows": {"7"}, "batch-rows": {"5"}, "unlogged": {"true"},
		"set.a": {"1=x"}, "set": {"a=0", "c=3"},
	}, drivers(t), e.lookup, file)
	require.NoError(t, err)
	require.NoError(t, got.Validate())
	require.Equal(t, config.Given(f), given)
	require.Equal(t, "base://u:hunter2@h/db", got.Target)
	password, _ := got.Connect.LookupEnv("TERAPUSH_PASSWORD")
	require.Equal(t, "hunter2", password)
	want.Target, want.Connect.LookupEnv, got.Connect.LookupEnv = got.Target, nil, nil
	require.Equal(t, want, &got)
}

// What belongs to one push is no case's, wherever it comes from.
func TestFromValuesLeavesOutWhatIsOfOnePush(t *testing.T) {
	c, given, err := config.FromValues(map[string][]string{"workers": {"2"}}, drivers(t), env{
		"TERAPUSH_RESUME": "r", "TERAPUSH_DRY_RUN": "true", "TERAPUSH_JSON": "true", "TERAPUSH_STATE_DIR": "/s",
	}.lookup, "")
	require.NoError(t, err)
	require.Empty(t, c.Resume)
	require.False(t, c.DryRun)
	require.False(t, c.JSON)
	require.Equal(t, "/s", c.State)
	require.Equal(t, map[string][]string{"workers": {"2"}}, given)
}

func TestFromValuesSaysAllThatIsWrong(t *testing.T) {
	_, _, err := config.FromValues(map[string][]string{
		"workers": {"many"}, "wokers": {"1"}, "rows": {"0"},
	}, drivers(t), env{"TERAPUSH_SEED": "x"}.lookup, "")
	for _, want := range []string{
		`invalid argument "many" for "--workers" flag`, "no such flag -wokers", "--rows 0: give more than 0", "TERAPUSH_SEED",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 4, strings.Count(err.Error(), "\n")+1)
}
