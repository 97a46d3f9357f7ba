package databend

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestStreamingLoadOnTheWire(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, streamingLoad, func(t *loader.Target) {
		t.Settings = []loader.Setting{{Name: "max_threads", Value: "2"}}
		t.Params = map[string][]string{"warehouse": {"w1"}, "tenant": {"t1"}}
	})
	var request *http.Request
	var name, file, content string
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		var err error
		request = r
		name, file, content, err = readForm(r)
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"id":"x","stats":{"rows":3,"bytes":15}}`)
	}
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 3}, ack)

	h := request.Header
	require.Equal(t, http.MethodPut, request.Method)
	require.Positive(t, request.ContentLength)
	require.Equal(t, "100-continue", h.Get("Expect"))
	require.Equal(t, "upload", name)
	require.Equal(t, "r-1-000000000002.csv", file)
	require.Equal(t, threeRows, content)
	require.Equal(t, "INSERT INTO `db`.`t` (`id`, `s`) FROM @_databend_load FILE_FORMAT = (type = CSV, field_delimiter = ',', "+
		`record_delimiter = '\n', quote = '"', escape = '', skip_header = 0, empty_field_as = STRING, `+
		"error_on_column_count_mismatch = true, compression = NONE)", h.Get("X-Databend-SQL"))
	require.Equal(t, "terapush:r-1:db.t:2", h.Get("X-DATABEND-DEDUPLICATE-LABEL"))
	require.Equal(t, queryID(batchKind, batch.ID{Run: "r-1", Number: 2}, 1), h.Get("X-DATABEND-QUERY-ID"))
	require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("root:hidden-password")), h.Get("Authorization"))
	require.Equal(t, "w1", h.Get("X-DATABEND-WAREHOUSE"))
	require.Equal(t, "t1", h.Get("X-DATABEND-TENANT"))
	var session map[string]any
	require.NoError(t, json.Unmarshal([]byte(h.Get("X-Databend-Query-Context")), &session))
	require.Equal(t, "db", session["database"])
	require.Equal(t, map[string]any{
		"timezone": "UTC", "max_threads": "2", "enable_query_result_cache": "0", "max_result_rows": "0",
	}, session["settings"])
}

func TestWithoutDeduplicationNothingIsMarked(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, streamingLoad)
	c := contractOf(streamingLoad)
	c.Dedup = loader.DedupNone
	s, err := db.Session(t.Context(), c)
	require.NoError(t, err)
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL")+r.Header.Get("X-DATABEND-QUERY-ID") != "" {
			t.Error("a load that promises nothing has a label or an id")
		}
		_, _ = io.WriteString(w, `{"id":"x","stats":{"rows":3,"bytes":15}}`)
	}
	_, err = s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
}

func TestAnswersToAStreamingLoad(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   loader.Verdict
		says   string
	}{
		"cut off":         {200, `{"id":"x","stats":{"ro`, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "cannot be read"},
		"no statistics":   {200, `{"id":"x"}`, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "how many rows"},
		"error inside":    {200, `{"error":{"code":1046,"message":"bad row"}}`, loader.Verdict{Class: loader.ClassData, Applied: loader.No}, "bad row"},
		"statement":       {400, `{"error":{"code":400,"message":"error: unexpected"}}`, loader.Verdict{Class: loader.ClassOther, Applied: loader.No}, "unexpected"},
		"bad data":        {400, `{"error":{"code":400,"message":"Query execution failed: bad row"}}`, loader.Verdict{Class: loader.ClassData}, "bad row"},
		"sessions":        {400, `{"error":{"code":400,"message":"Failed to upgrade session: x"}}`, loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, "fewer workers"},
		"too many":        {429, `{"error":{"code":429,"message":"x"}}`, loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, "429"},
		"password":        {401, `{"error":{"code":401,"message":"wrong password"}}`, loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}, "check user and password"},
		"a proxy's words": {502, `<html>bad gateway</html>`, loader.Verdict{Class: loader.ClassOther, Retry: true}, "bad gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			_, s := f.open(t, streamingLoad)
			f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
			_, err := s.Load(t.Context(), testBatch(1))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hidden-password")
			require.Equal(t, c.want, New().Classify(err))
		})
	}
}

// A server that refuses reads no further; its answer counts, and not that the body could not be sent.
func TestRefusalWhileSending(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, streamingLoad)
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"code":400,"message":"unknown table"}}`)
	}
	b := testBatch(1)
	b.Encoded = make([]byte, 32<<20)
	_, err := s.Load(t.Context(), b)
	require.ErrorContains(t, err, "unknown table")
	require.Equal(t, loader.No, New().Classify(err).Applied)
}

// Nothing was written: the rows say whether an earlier attempt had put them in.
func TestSkippedByTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		attempt int
		found   string
		ack     loader.Ack
		verdict loader.Verdict
		says    string
	}{
		"they are in":              {2, "3", loader.Ack{Rows: 3, AlreadyApplied: true}, loader.Verdict{}, ""},
		"a first attempt":          {1, "3", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Applied: loader.No}, "is taken; 3 rows"},
		"nothing, a first attempt": {1, "0", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Applied: loader.No}, "start a new run"},
		"nothing, a retry":         {2, "0", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: true}, "the next label"},
		"a part of them":           {2, "2", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Retry: true}, "2 rows with keys 6 to 8"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			_, s := f.open(t, streamingLoad)
			f.on("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8", say(result([]any{c.found})))
			var labels []string
			f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				labels = append(labels, r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL"))
				_, _ = io.WriteString(w, `{"id":"x","stats":{"rows":0,"bytes":0}}`)
			}
			ack, err := s.Load(t.Context(), testBatch(c.attempt))
			require.Equal(t, c.ack, ack)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.verdict, New().Classify(err))
			if c.found != "0" || c.attempt == 1 {
				return
			}
			// Which labels an earlier process has used up is found out by walking up.
			for n := range 2 {
				_, err = s.Load(t.Context(), testBatch(c.attempt+1+n))
				require.True(t, New().Classify(err).Retry)
			}
			const first = "terapush:r-1:db.t:2"
			require.Equal(t, []string{first, first + ":again-1", first + ":again-2"}, labels)
		})
	}
}

// Who gives up ends the query first: a connection that breaks makes the server keep what it has.
func TestTheQueryEndsBeforeTheConnection(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, streamingLoad)
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
	id := queryID(batchKind, batch.ID{Run: "r-1", Number: 2}, 1)
	f.on("SELECT id FROM system.processes WHERE current_query_id IN ('"+id+"')", say(result([]any{"session-9"})))
	f.on("KILL QUERY 'session-9'", func(seen) string { close(killed); return result() })

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := s.Load(ctx, testBatch(1))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "AbortedQuery")
	require.Equal(t, loader.Unknown, New().Classify(err).Applied)
	require.False(t, gone, "the connection was closed first")
}

func TestALeftSessionStaysLeft(t *testing.T) {
	f := newFake(t)
	_, s := f.open(t, streamingLoad)
	f.routes["/v1/streaming_load"] = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	_, err := s.Load(t.Context(), testBatch(1))
	require.Equal(t, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, New().Classify(err))
	_, err = s.Load(t.Context(), testBatch(2))
	require.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}, New().Classify(err))
}

func TestHeadersAreVisibleASCII(t *testing.T) {
	for _, b := range []batch.Format{batch.CSV, batch.NDJSON, batch.Parquet} {
		sql := newStatements(tableName{"d", "t"}, testSchema()).insertStreamed(b)
		require.True(t, isASCII(sql), sql)
		require.True(t, strings.Contains(sql, "ompression = NONE") || b == batch.Parquet, sql)
	}
}
