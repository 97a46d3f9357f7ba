package e2e_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Metrics are there from the first scrape, are what Prometheus wants, and end as the report says.
func TestMetrics(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		address := "127.0.0.1:" + freePort(t)
		l := small(12_000)
		p := d.push(l.flags("--workers", "4", "--max-rate", "1MiB/s", "--verify", "full",
			"--metrics-addr", address, "--metrics-linger", "1m")...).start(t)
		d.untilClaims(t, p, 5)
		during := scrape(t, "http://"+address+"/metrics")
		assert.Equal(t, "ok\n", scrape(t, "http://"+address+"/healthz"))
		promtool(t, during)
		now := series(t, during)
		rows := now["terapush_rows_total"]
		assert.True(t, rows > 0 && rows < float64(l.rows), "%v rows in the middle of the run", rows)
		assert.Equal(t, float64(l.rows), now["terapush_planned_rows"])
		assert.Equal(t, 1.0, now[`terapush_phase{phase="load"}`])
		assert.Zero(t, now["terapush_verify_ok"])

		last := lastScrape(t, p, address)
		promtool(t, last)
		require.True(t, p.running(), "--metrics-linger")
		p.signal(t, syscall.SIGINT)
		r := p.wait(t).ends(t, 0)
		is := reportOf(t, r)
		end := series(t, last)
		for name, want := range map[string]float64{
			"terapush_rows_total":                            float64(is.Result.Rows),
			"terapush_payload_bytes_total":                   float64(is.Result.PayloadBytes),
			"terapush_encoded_bytes_total":                   float64(is.Result.EncodedBytes),
			"terapush_retries_total":                         float64(is.Result.Retries),
			"terapush_refills_total":                         float64(is.Result.Refills),
			"terapush_missing_rows_total":                    float64(is.Result.Missing),
			`terapush_batches_total{result="applied"}`:       float64(is.Result.Batches),
			`terapush_attempts_total{outcome="applied"}`:     float64(is.Result.Attempts),
			"terapush_batch_duration_seconds_count":          float64(is.Result.Batches),
			"terapush_verify_ok":                             1,
			`terapush_verify_rows{kind="found"}`:             float64(is.Verify.FoundRows),
			`terapush_phase{phase="done"}`:                   1,
			"terapush_buffers":                               float64(is.Plan.Buffers),
			"terapush_workers":                               4,
			"terapush_bytes_in_flight":                       0,
			`terapush_errors_total{class="connection"}`:      0,
			`terapush_attempts_total{outcome="not_applied"}`: 0,
		} {
			got, there := end[name]
			assert.True(t, there, "no series %s", name)
			assert.Equal(t, want, got, name)
		}
		assert.LessOrEqual(t, len(end), 300, "series")
		for name := range now {
			assert.Contains(t, end, name, "a series that went away")
		}
		for name := range end {
			assert.Contains(t, now, name, "a series that came late")
			assert.NotContains(t, name, d.name(), "a label without bound")
		}
	})
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

// promtool lets Prometheus' own tool judge.
func promtool(t *testing.T, metrics string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI has to check with promtool: scripts/tools promtool")
		}
		t.Log("no promtool here: scripts/tools promtool")
		return
	}
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = strings.NewReader(metrics)
	out, err := check.CombinedOutput()
	require.NoError(t, err, "promtool: %s", out)
	assert.Empty(t, string(out))
}

// series reads the terapush_ series: name{labels} to value; of histograms the counts.
func series(t *testing.T, metrics string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	require.NoError(t, err)
	all := map[string]float64{}
	for name, family := range families {
		if !strings.HasPrefix(name, "terapush_") {
			continue
		}
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			id := name
			if len(labels) > 0 {
				id += "{" + strings.Join(labels, ",") + "}"
			}
			if h := m.GetHistogram(); h != nil {
				all[id+"_count"] = float64(h.GetSampleCount())
				continue
			}
			all[id] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}
