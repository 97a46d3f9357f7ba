package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// Metrics are there while the run loads, and end as the report says; who scrapes late gets them by --metrics-linger. They
// tell no password.
func TestMetrics(t *testing.T) {
	t.Parallel()
	password := backendtest.Server(t, "TERAPUSH_TEST_PASSWORD")
	d := newDatabase(t, postgres)
	d.handOver(t)
	address := "127.0.0.1:" + freePort(t)
	l := small(12_000)
	i := d.pushTo(d.target(as("tera", "")), l.flags("--workers", "4", "--max-rate", "1MiB/s", "--verify", "full",
		"--metrics-addr", address, "--metrics-linger", "1m")...)
	i.env = []string{"TERAPUSH_PASSWORD=" + password}
	p := i.start(t)
	d.untilClaims(t, p, 5)
	during := scrape(t, "http://"+address+"/metrics")
	assert.Equal(t, "ok\n", scrape(t, "http://"+address+"/healthz"))
	assert.Contains(t, during, "terapush_planned_rows 12000\n")
	assert.Contains(t, during, `terapush_phase{phase="load"} 1`)
	assert.NotContains(t, during, "\nterapush_rows_total 0\n")
	assert.NotContains(t, during, "\nterapush_rows_total 12000\n")

	last := lastScrape(t, p, address)
	p.signal(t, syscall.SIGINT)
	is := reportOf(t, p.wait(t).ends(t, 0))
	for name, want := range map[string]int64{
		"terapush_rows_total":                      is.Result.Rows,
		`terapush_batches_total{result="applied"}`: is.Result.Batches,
		`terapush_verify_rows{kind="found"}`:       is.Verify.FoundRows,
		`terapush_phase{phase="done"}`:             1,
		"terapush_bytes_in_flight":                 0,
	} {
		assert.Contains(t, last, fmt.Sprintf("\n%s %d\n", name, want))
	}
	assert.NotContains(t, last, d.name(), "a label without bound")
	hides(t, password, during, last)
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// lastScrape waits until the run is over and its metrics linger, and reads them.
func lastScrape(t *testing.T, p *process, address string) string {
	t.Helper()
	// The report comes before the lingering.
	p.until(t, "the report", func() bool { return strings.HasSuffix(p.stdout.String(), "\n}\n") })
	return scrape(t, "http://"+address+"/metrics")
}
