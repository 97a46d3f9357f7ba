package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// The pushes of these tests are short, and nobody compares them.
func TestMain(m *testing.M) {
	speedTime = time.Millisecond
	os.Exit(m.Run())
}

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

// A process that lost its shard to another one leaves the report to that one.
func TestReportOfALostShard(t *testing.T) {
	dir := t.TempDir()
	write, err := new(app).reportWriter(t.Context(), dir, new(config.Connect))
	require.NoError(t, err)
	var r report.Report
	r.Run.ID = "nightly"
	require.NoError(t, write(t.Context(), &r, nil))
	path := filepath.Join(dir, "nightly.json")
	require.FileExists(t, path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, write(t.Context(), &r, &push.Error{Outcome: report.Failed, Err: runlog.ErrBusy}))
	require.NoError(t, write(t.Context(), &r, &loader.TakenOverError{Run: "nightly"}))
	require.NoFileExists(t, path)
}

// A store that may only be listed is found out before the run. One that fails once gets the report all the same.
func TestReportToAStore(t *testing.T) {
	var refuses, fails atomic.Bool
	store := backendtest.StoreAndKeys(t, func(w http.ResponseWriter, r *http.Request) bool {
		status := 0
		switch {
		case r.Method != http.MethodPut:
		case refuses.Load():
			status = http.StatusForbidden
		case fails.Swap(false):
			status = http.StatusServiceUnavailable
		}
		if status != 0 {
			w.WriteHeader(status)
		}
		return status != 0
	})
	a := &app{terminal: live.NewTerminal(new(bytes.Buffer))}
	to := "s3://bucket/reports?region=us-east-1&path_style=true&endpoint=" + store.URL
	refuses.Store(true)
	_, err := a.reportWriter(t.Context(), to, new(config.Connect))
	require.ErrorContains(t, err, "403")

	refuses.Store(false)
	write, err := a.reportWriter(t.Context(), to, new(config.Connect))
	require.NoError(t, err)
	require.Empty(t, store.Keys())
	fails.Store(true)
	var r report.Report
	r.Run.ID = "nightly"
	require.NoError(t, write(t.Context(), &r, nil))
	require.Equal(t, []string{"reports/nightly.json"}, store.Keys())
}

// The flags that find a run belong to a command, and not to the sentence about a run with a name.
func TestNext(t *testing.T) {
	for run, want := range map[string]string{
		"20260101-000000-aaaaaa": "to resume: terapush push discard:// --resume 20260101-000000-aaaaaa --state-dir s",
		"nightly":                "to resume: run the same command again, here or on another machine",
	} {
		var r report.Report
		r.Target.URL, r.Run.ID, r.Run.Resumable = "discard://", run, true
		require.Equal(t, want, next("push", &r, " --state-dir s"))
	}
}

// Which driver of a database a binary has is the linker's to say: no part of terapush knows both builds.
func TestDrivers(t *testing.T) {
	info := &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "-tags", Value: "godror"}, {Key: "CGO_ENABLED", Value: "1"}, {Key: "vcs.revision", Value: "abc"}},
		Deps: []*debug.Module{
			{Path: "github.com/jackc/pgx/v5", Version: "v5.12.0"},
			{Path: "github.com/jackc/puddle/v2", Version: "v2.2.2"},
			{Path: "github.com/godror/godror", Version: "v0.51.4"},
		},
	}
	v := versionOf(info)
	require.Equal(t, map[string]string{"pgx": "v5.12.0", "godror": "v0.51.4"}, v.Drivers)
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	require.Equal(t, "terapush development abc "+platform+"\ndrivers  godror v0.51.4 · pgx v5.12.0\ntags     godror\n", v.String())

	info.Main.Version = "(devel)" // built from a folder without a repository
	info.Settings, info.Deps = nil, []*debug.Module{{Path: "github.com/sijms/go-ora/v2", Version: "v2.9.0"}}
	require.Equal(t, "terapush development  "+platform+"\ndrivers  go-ora v2.9.0\n", versionOf(info).String())
	info.Main.Version = "v1.2.3" // go install …@v1.2.3
	require.Equal(t, "v1.2.3", versionOf(info).Version)
}

// No flag of any command answers in the words of a Go function.
func TestWrongValuesHaveWords(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	a := &app{drivers: drivers}
	for _, c := range a.root().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			for _, text := range []string{"1x", "", "-", "1e99", "99999999999999999999"} {
				if err := config.PlainError(c.Flags().Set(f.Name, text)); err != nil {
					require.NotContains(t, err.Error(), "strconv", "%s --%s=%s", c.Name(), f.Name, text)
					require.NotContains(t, err.Error(), "invalid syntax", "%s --%s=%s", c.Name(), f.Name, text)
				}
			}
		})
	}
}
