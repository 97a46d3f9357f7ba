package live_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

func testInfo() live.Info {
	return live.Info{
		Version: "v1.2.3", Commit: "abc", Run: "r1", Backend: "postgres", Method: "copy",
		Format: "pgbinary", Delivery: "exactly-once",
	}
}

// finished is a collector after a run in which everything happened.
func finished() *stats.Collector {
	now := time.Unix(1_700_000_000, 0)
	c := stats.New(stats.Options{
		Workers: 1024, PlannedRows: 900, PlannedBytes: 9000, Now: func() time.Time { return now },
		WireBytes: func() int64 { return 1234 }, Refills: func() int64 { return 5 },
		Buffers: func() (int, int) { return 6, 7 },
		Lost: func() stats.Lost {
			return stats.Lost{
				Seconds: map[event.Limit]float64{event.LimitTarget: 1500, event.LimitTail: 548}, BoundBy: event.LimitTail,
				Sockets: event.Sockets{
					Open: 3, Dialled: 4, Blocked: 1, Awaited: 2, Turns: 5, RoundTrips: .5, Kernel: true, Busy: 6, RwndLimited: 4, SndbufLimited: .25,
					Retransmits: 7, Segments: 8000, RTT: .002, MinRTT: .001, DeliveryRate: 9,
				},
			}
		},
	})
	c.Resume(stats.Earlier{Rows: 100, Batches: 1, PayloadBytes: 1000, EncodedBytes: 1100})
	c.Phase(event.Load)
	c.Worker(0).Enter(event.Sending)
	now = now.Add(2 * time.Second)
	for _, e := range []event.Event{
		{Attempt: 1, Outcome: event.Applied, Rows: 400, Payload: 4000, Encoded: 4400, Seconds: 0.02},
		{Attempt: 1, Outcome: event.Unknown, Class: loader.ClassConnection, Seconds: 1},
		{Attempt: 2, Outcome: event.Already, Rows: 300, Payload: 3000, Encoded: 3300, Seconds: 4000},
		{Attempt: 1, Outcome: event.NotApplied, Class: loader.ClassRows, Missing: 100},
	} {
		c.Add(e)
	}
	c.GiveUp(event.NotApplied)
	c.GiveUp(event.Unknown)
	c.Phase(event.Verify)
	c.Verified(event.Verification{ExpectedRows: 900, FoundRows: 800})
	c.Phase(event.Done)
	return c
}

// scrape returns every terapush series with its value; histograms give _count, _sum and their buckets.
func scrape(t *testing.T, text []byte) (ours map[string]float64, all int) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	ours = make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		all++
		if strings.HasPrefix(line, "terapush_") {
			var value float64
			name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, err := fmt.Sscan(number, &value)
			require.NoError(t, err)
			ours[name] = value
		}
	}
	require.NotEmpty(t, families)
	return ours, all
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return text
}

func serve(t *testing.T, c *stats.Collector) *live.Server {
	t.Helper()
	s, err := live.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.Serve(live.NewMetrics(testInfo(), c.Snapshot)))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestMetricsGolden(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(string(get(t, "http://"+serve(t, finished()).Addr()+"/metrics"))) {
		if strings.Contains(line, "terapush_") {
			text.WriteString(line)
		}
	}
	golden(t, "metrics.txt", text.String())
}

func TestMetricsLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(live.NewMetrics(testInfo(), finished().Snapshot))
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on PATH; the lint it uses ran in TestMetricsLint")
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = bytes.NewReader(get(t, "http://"+serve(t, finished()).Addr()+"/metrics"))
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestEverySeriesFromTheFirstScrape(t *testing.T) {
	first, _ := scrape(t, get(t, "http://"+serve(t, stats.New(stats.Options{Workers: 1024})).Addr()+"/metrics"))
	last, all := scrape(t, get(t, "http://"+serve(t, finished()).Addr()+"/metrics"))
	require.ElementsMatch(t, names(last), names(first))
	require.LessOrEqual(t, all, 300, "series at 1,024 workers, Go's and the process's included")
	require.Greater(t, all, len(last)+20, "Go's and the process's are there")
}

func names(series map[string]float64) []string {
	var all []string
	for name := range series {
		all = append(all, name)
	}
	return all
}

func TestLastScrapeEqualsTheSnapshot(t *testing.T) {
	c := finished()
	s := c.Snapshot()
	got, _ := scrape(t, get(t, "http://"+serve(t, c).Addr()+"/metrics"))
	want := map[string]float64{
		"terapush_rows_total":                                float64(s.Rows),
		"terapush_payload_bytes_total":                       float64(s.PayloadBytes),
		"terapush_encoded_bytes_total":                       float64(s.EncodedBytes),
		"terapush_wire_bytes_total":                          float64(s.WireBytes),
		"terapush_retries_total":                             float64(s.Retries),
		"terapush_refills_total":                             float64(s.Refills),
		"terapush_missing_rows_total":                        float64(s.MissingRows),
		`terapush_errors_total{class="connection"}`:          float64(s.Errors[loader.ClassConnection]),
		`terapush_errors_total{class="timeout"}`:             0,
		`terapush_batches_total{result="failed"}`:            float64(s.FailedBatches),
		`terapush_batches_total{result="unknown"}`:           float64(s.UnknownBatches),
		`terapush_attempts_total{outcome="unknown"}`:         float64(s.Outcomes[event.Unknown]),
		`terapush_worker_seconds_total{state="send"}`:        s.WorkerSeconds[event.Sending],
		`terapush_worker_seconds_total{state="idle"}`:        s.WorkerSeconds[event.Idle],
		"terapush_batch_duration_seconds_count":              float64(s.BatchSeconds.Count()),
		"terapush_batch_duration_seconds_sum":                s.BatchSeconds.Sum,
		`terapush_batch_duration_seconds_bucket{le="0.025"}`: 1,
		`terapush_batch_duration_seconds_bucket{le="3600"}`:  1,
		`terapush_batch_duration_seconds_bucket{le="+Inf"}`:  2,
		`terapush_limit_seconds_total{limit="target"}`:       1500,
		`terapush_limit_seconds_total{limit="source"}`:       0,
		`terapush_bound_by{limit="tail"}`:                    1,
		`terapush_bound_by{limit="target"}`:                  0,
		"terapush_tcp_connections_open":                      3,
		"terapush_tcp_connections_dialled_total":             4,
		"terapush_tcp_retransmits_total":                     7,
		"terapush_tcp_rtt_seconds":                           .002,
		`terapush_phase{phase="done"}`:                       1,
		`terapush_phase{phase="load"}`:                       0,
		`terapush_verify_rows{kind="found"}`:                 800,
		"terapush_verify_ok":                                 0,
		"terapush_buffers_free":                              6,
		"terapush_workers":                                   1024,
		"terapush_last_progress_timestamp_seconds":           1_700_000_002,
	}
	for name, value := range want {
		require.Contains(t, got, name)
		require.Equal(t, value, got[name], name)
	}
	require.Equal(t, float64(s.Batches), got[`terapush_batches_total{result="applied"}`]+
		got[`terapush_batches_total{result="already"}`]+got[`terapush_batches_total{result="resumed"}`])
}

func TestHealth(t *testing.T) {
	s := serve(t, finished())
	require.Equal(t, "ok\n", string(get(t, "http://"+s.Addr()+"/healthz")))
	answer, err := http.Post("http://"+s.Addr()+"/metrics", "", nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = live.Listen(t.Context(), l.Addr().String())
	require.ErrorContains(t, err, "--metrics-addr "+l.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}

func TestScrapesBeforeServeWait(t *testing.T) {
	s, err := live.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	answered := make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + s.Addr() + "/metrics")
		if err == nil {
			err = answer.Body.Close()
		}
		answered <- err
	}()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, s.Serve(live.NewMetrics(testInfo(), finished().Snapshot)))
	require.NoError(t, <-answered)
}

func TestLinger(t *testing.T) {
	s := serve(t, finished())
	start := time.Now()
	s.Linger(t.Context(), 0)
	require.Less(t, time.Since(start), time.Second)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Linger(ctx, time.Hour)
		close(ended)
	}()
	require.NotEmpty(t, get(t, "http://"+s.Addr()+"/metrics"))
	cancel()
	<-ended
	require.NoError(t, s.Close())
	_, err := http.Get("http://" + s.Addr() + "/metrics")
	require.Error(t, err, "the address is free again")
}

func TestCloseWithoutServe(t *testing.T) {
	s, err := live.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	again, err := live.Listen(t.Context(), s.Addr())
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
