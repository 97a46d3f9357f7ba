package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
)

// A process that lost its shard to another one leaves the report to that one.
func TestReportOfALostShard(t *testing.T) {
	dir := t.TempDir()
	write, err := new(app).reportWriter(t.Context(), &config.Push{ReportTo: dir})
	require.NoError(t, err)
	var r report.Report
	r.Run.ID = "nightly"
	require.NoError(t, write(t.Context(), &r, nil))
	path := filepath.Join(dir, "nightly.json")
	require.FileExists(t, path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, write(t.Context(), &r, &push.Error{Outcome: report.Failed, Err: runlog.ErrBusy}))
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
	c := &config.Push{ReportTo: "s3://bucket/reports?region=us-east-1&path_style=true&endpoint=" + store.URL}
	refuses.Store(true)
	_, err := a.reportWriter(t.Context(), c)
	require.ErrorContains(t, err, "403")

	refuses.Store(false)
	write, err := a.reportWriter(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, store.Keys())
	fails.Store(true)
	var r report.Report
	r.Run.ID = "nightly"
	require.NoError(t, write(t.Context(), &r, nil))
	require.Equal(t, []string{"reports/nightly.json"}, store.Keys())
}
