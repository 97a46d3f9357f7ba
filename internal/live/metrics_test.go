package live_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
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

// metrics are terapush's own lines of a scrape; all counts the series of Go and the process as well.
func metrics(t *testing.T, c *stats.Collector) (text string, series []string, all int) {
	t.Helper()
	for line := range strings.Lines(string(get(t, "http://"+serve(t, c).Addr()+"/metrics"))) {
		isSeries := !strings.HasPrefix(line, "#")
		if isSeries {
			all++
		}
		if strings.Contains(line, "terapush_") {
			text += line
			if isSeries {
				name, _, _ := strings.Cut(line, " ")
				series = append(series, name)
			}
		}
	}
	return text, series, all
}

// Every series is there from the first scrape on.
func TestMetrics(t *testing.T) {
	text, last, all := metrics(t, finished())
	golden.Equal(t, "metrics.txt", text)
	_, first, _ := metrics(t, stats.New(stats.Options{Workers: 1024}))
	require.ElementsMatch(t, last, first)
	require.LessOrEqual(t, all, 300, "series at 1,024 workers, Go's and the process's included")
	require.Greater(t, all, len(last)+20, "Go's and the process's are there")
}

// TestListOfMetrics holds the generated part of docs/METRICS.md.
func TestListOfMetrics(t *testing.T) {
	const page, generated = "../../../docs/METRICS.md", "-update -->\n"
	written, err := os.ReadFile(filepath.Join("testdata", page))
	require.NoError(t, err)
	text, _, _ := metrics(t, finished())
	kind := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		kind[m[1]] = m[2]
	}
	labels := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(terapush_\w+)\{(\w+)="`).FindAllStringSubmatch(text, -1) {
		if !strings.HasSuffix(m[1], "_info") && m[2] != "le" {
			labels[m[1]] = "{" + m[2] + "}"
		}
	}
	list := "\n| metric | type | meaning |\n|---|---|---|\n"
	for _, m := range regexp.MustCompile(`(?m)^# HELP (terapush_\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		list += fmt.Sprintf("| `%s%s` | %s | %s |\n", m[1], labels[m[1]], kind[m[1]], m[2])
	}
	head, _, _ := strings.Cut(string(written), generated)
	golden.Equal(t, page, head+generated+list)
}

func TestMetricsLint(t *testing.T) {
	problems, err := testutil.CollectAndLint(live.NewMetrics(testInfo(), finished().Snapshot))
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = live.Listen(t.Context(), l.Addr().String())
	require.ErrorContains(t, err, "--metrics-addr "+l.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}

// Connections wait for Serve, and Linger keeps the address until its context ends.
func TestServer(t *testing.T) {
	s, err := live.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	early, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer early.Close()
	_, err = io.WriteString(early, "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, s.Serve(live.NewMetrics(testInfo(), finished().Snapshot)))
	answer, err := io.ReadAll(early)
	require.NoError(t, err)
	require.Contains(t, string(answer), "200 OK")

	s.Linger(t.Context(), 0) // returns at once
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.Linger(ctx, time.Hour)
		close(ended)
	}()
	require.Equal(t, "ok\n", string(get(t, "http://"+s.Addr()+"/healthz")))
	require.Contains(t, string(get(t, "http://"+s.Addr()+"/")), `href="/metrics"`)
	unknown, err := http.Get("http://" + s.Addr() + "/metric")
	require.NoError(t, err)
	require.NoError(t, unknown.Body.Close())
	require.Equal(t, http.StatusNotFound, unknown.StatusCode)
	posted, err := http.Post("http://"+s.Addr()+"/metrics", "", nil)
	require.NoError(t, err)
	require.NoError(t, posted.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, posted.StatusCode)
	cancel()
	<-ended
	require.NoError(t, s.Close())

	again, err := live.Listen(t.Context(), s.Addr())
	require.NoError(t, err, "the address is free again")
	require.NoError(t, again.Close(), "without Serve")
}
