package databend

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	testLabel = "terapush:r-1:db.t:2" // of testBatch
	labelName = "X-DATABEND-DEDUPLICATE-LABEL"
	idName    = "X-DATABEND-QUERY-ID"
)

func TestStreamingLoadOnTheWire(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, methodStreamingLoad, func(t *loader.Target) {
		t.Settings = []loader.Setting{{Name: "max_threads", Value: "2"}}
		t.Params = map[string][]string{"warehouse": {"w1"}, "tenant": {"t1"}}
	})
	var request *http.Request
	var form [2]string
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		var err error
		request = r
		if form[0], form[1], err = readForm(r); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, streamed(3))
	}
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 3}, ack)
	require.Equal(t, http.MethodPut, request.Method)
	require.Positive(t, request.ContentLength)
	require.Equal(t, [2]string{"r-1-000000000002.csv", threeRows}, form)
	for name, want := range map[string]string{
		"Expect": "100-continue", labelName: testLabel, idName: queryID(batchKind, batch.ID{Run: "r-1", Number: 2}, 1),
		"Authorization":        "Basic " + base64.StdEncoding.EncodeToString([]byte("root:hidden-password")),
		"X-DATABEND-WAREHOUSE": "w1",
		"X-DATABEND-TENANT":    "t1",
		"X-Databend-SQL":       newStatements(tableName{"db", "t"}, testSchema()).insertStreamed(batch.CSV),
	} {
		require.Equal(t, want, request.Header.Get(name), name)
	}
	var session sessionState
	require.NoError(t, json.Unmarshal([]byte(request.Header.Get("X-Databend-Query-Context")), &session))
	require.Equal(t, sessionState{Database: "db", Settings: map[string]string{
		"timezone": "UTC", "max_threads": "2", "enable_query_result_cache": "0", "max_result_rows": "0",
	}}, session)
}

// A proxy may swallow "Expect: 100-continue" or the answer to it. The first batch waits, the log says so, and no later
// batch asks.
func TestProxyThatNeverAsks(t *testing.T) {
	f := newFake(t)
	deps, log := backendtest.Deps(), lines{}
	deps.Log = slog.New(slog.NewTextHandler(&log, nil))
	dial := deps.Dial
	deps.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return &swallowing{c}, err
	}
	l := backendtest.Open(t, New(), f.target(methodStreamingLoad), deps)
	_, err := l.Prepare(t.Context(), preparation(methodStreamingLoad))
	require.NoError(t, err)
	f.streams(http.StatusOK, streamed(3))
	before := len(f.asked("/v1/streaming_load"))
	for range 2 {
		s := backendtest.Session(t, l, contractOf(methodStreamingLoad))
		for range 2 {
			ack, err := s.Load(t.Context(), testBatch(1))
			require.NoError(t, err)
			require.Equal(t, loader.Ack{Rows: 3}, ack)
		}
	}
	loads := f.asked("/v1/streaming_load")[before:]
	require.Len(t, loads, 4)
	for i, load := range loads {
		require.Equal(t, i == 0, load.header.Get("Expect") != "", "batch %d", i)
	}
	// It is logged beside the request.
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "as from behind a proxy") }, time.Minute, time.Millisecond)
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
}

// lines is a log that one goroutine reads while others write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// swallowing is a connection on which "100 Continue" does not arrive.
type swallowing struct{ net.Conn }

func (c *swallowing) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	rest := bytes.TrimPrefix(p[:n], []byte("HTTP/1.1 100 Continue\r\n\r\n"))
	if len(rest) == 0 && err == nil {
		return c.Read(p)
	}
	return copy(p, rest), err
}

// At least once promises nothing that a label or an id would be for, and counts nothing.
func TestAtLeastOnce(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodStreamingLoad)
	c := contractOf(methodStreamingLoad)
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	s, err := db.Session(t.Context(), c)
	require.NoError(t, err)
	f.streams(http.StatusOK, streamed(3))
	_, err = s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	loads := f.asked("/v1/streaming_load")
	sent := loads[len(loads)-1].header
	require.Empty(t, sent.Get(labelName)+sent.Get(idName))

	f.streams(http.StatusOK, streamed(0))
	_, err = s.Load(t.Context(), testBatch(1))
	require.ErrorContains(t, err, "wrote no row")
	require.Equal(t, loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: true}, New().Classify(err))
	require.Empty(t, f.asked("SELECT COUNT(*)"))
}

func TestAnswersToAStreamingLoad(t *testing.T) {
	lost := loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}
	for _, c := range []struct {
		status int
		body   string
		want   loader.Verdict
		says   string
	}{
		{200, `{"id":"x","stats":{"ro`, lost, "cannot be read"},
		{200, `{"id":"x"}`, lost, "how many rows"},
		{200, `{"error":{"code":1046,"message":"bad row"}}`, loader.Verdict{Class: loader.ClassData, Applied: loader.No}, "bad row"},
		{400, `{"error":{"code":400,"message":"Query execution failed: x"}}`, loader.Verdict{Class: loader.ClassData}, "x"},
		{502, `<html>bad gateway</html>`, loader.Verdict{Class: loader.ClassOther, Retry: true}, "bad gateway"},
	} {
		f := newFake(t)
		_, s := f.open(t, methodStreamingLoad)
		f.streams(c.status, c.body)
		_, err := s.Load(t.Context(), testBatch(1))
		require.ErrorContains(t, err, c.says)
		require.NotContains(t, err.Error(), "hidden-password")
		require.Equal(t, c.want, New().Classify(err), c.says)
	}
}

// Streaming load is younger than many servers.
func TestAServerWithoutStreamingLoad(t *testing.T) {
	f := newFake(t)
	f.on("SELECT version()", result([]any{"Databend Query v1.2.700"}))
	delete(f.routes, "/v1/streaming_load")
	_, err := New().Open(t.Context(), f.target(methodStreamingLoad), backendtest.Deps())
	for _, says := range []string{"1.2.700", "streaming load", "--method insert-no-presign"} {
		require.Contains(t, loader.Explain(err), says)
	}
}

// Nothing was written: the rows say whether an earlier attempt had put them in.
func TestSkippedByTheServer(t *testing.T) {
	refused := loader.Verdict{Class: loader.ClassRows, Applied: loader.No}
	again := loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: true}
	for _, c := range []struct {
		attempt int
		found   string
		verdict loader.Verdict
		says    string // "" for rows that are in
	}{
		{2, "3", loader.Verdict{}, ""},
		{1, "3", refused, "is taken; 3 rows"},
		{1, "0", refused, "start a new run"},
		{2, "0", again, "the next label"},
		{2, "2", loader.Verdict{Class: loader.ClassRows, Retry: true}, "2 rows with keys 6 to 8"},
	} {
		t.Run(fmt.Sprintf("attempt %d, %s rows are in", c.attempt, c.found), func(t *testing.T) {
			f := newFake(t)
			_, s := f.open(t, methodStreamingLoad)
			probes := len(f.asked("/v1/streaming_load"))
			f.on("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8", result([]any{c.found}))
			f.streams(http.StatusOK, streamed(0))
			ack, err := s.Load(t.Context(), testBatch(c.attempt))
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, loader.Ack{Rows: 3, AlreadyApplied: true}, ack)
				return
			}
			require.Contains(t, loader.Explain(err), c.says)
			require.Equal(t, c.verdict, New().Classify(err))
			if c.verdict != again {
				return
			}
			// The labels that an earlier process has spent are found one by one.
			for n := range 2 {
				_, err = s.Load(t.Context(), testBatch(c.attempt+1+n))
				require.True(t, New().Classify(err).Retry)
			}
			var labels []string
			for _, load := range f.asked("/v1/streaming_load")[probes:] {
				labels = append(labels, load.header.Get(labelName))
			}
			require.Equal(t, []string{testLabel, testLabel + ":again-1", testLabel + ":again-2"}, labels)
		})
	}
}

// Where a load is cancelled the query ends first: a connection that breaks makes the server keep what it has.
func TestTheQueryEndsBeforeTheConnection(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, methodStreamingLoad)
	arrived, killed := make(chan struct{}), make(chan struct{})
	gone := false
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		select {
		case <-killed:
		case <-r.Context().Done():
			gone = true
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"code":400,"message":"Query execution failed: AbortedQuery"}}`)
	}
	f.on(selectProcesses(queryIDs(batchKind, batch.ID{Run: "r-1", Number: 2}, 1)), result([]any{"session-9"}))
	f.call("KILL QUERY 'session-9'", func(seen) string { close(killed); return result() })

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := s.Load(ctx, testBatch(1))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "AbortedQuery")
	require.Equal(t, loader.Unknown, New().Classify(err).Applied)
	require.False(t, gone, "the connection was closed first")
}

// The words of a server come without the stack that errors of the storage end with, and those of a proxy are cut.
func TestWordsOfErrors(t *testing.T) {
	f := newFake(t)
	f.on("SELECT version()", failure(4000, "Unexpected at stat\n\nSource:\n   connection refused\n\nBacktrace:\n   0: <unknown>"))
	_, err := New().Open(t.Context(), f.target(methodStageLoad), backendtest.Deps())
	require.ErrorContains(t, err, "connection refused")
	require.Contains(t, loader.Explain(err), "server_endpoint")
	require.NotContains(t, err.Error(), "<unknown>")

	f = newFake(t)
	f.streams(http.StatusUnauthorized, strings.Repeat("x", 100<<10))
	_, err = New().Open(t.Context(), f.target(methodStreamingLoad), backendtest.Deps())
	require.ErrorContains(t, err, "HTTP status 401")
	require.Less(t, len(err.Error()), 2*maxErrorText)
}
