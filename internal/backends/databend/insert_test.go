package databend

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// presigns sets the URL of uploads, and what is behind it.
func (f *fake) presigns(t *testing.T, put http.HandlerFunc) *httptest.Server {
	store := httptest.NewServer(put)
	t.Cleanup(store.Close)
	f.on("PRESIGN UPLOAD @~/terapush/", result([]any{"PUT", `{"host":"signed.example","x-amz-meta":"signed","content-length":"1"}`,
		store.URL + "/bucket/key?X-Amz-Signature=sig-na-ture"}))
	return store
}

func TestInsertOfAPresignedUpload(t *testing.T) {
	f := newFake(t)
	f.presigns(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || string(content) != threeRows || r.ContentLength != int64(len(threeRows)) ||
			r.Host != "signed.example" || r.Header.Get("X-Amz-Meta") != "signed" ||
			r.URL.RawQuery != "X-Amz-Signature=sig-na-ture" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s %s %v: %q", r.Method, r.Host, r.URL, r.Header, content)
		}
	})
	_, s := f.open(t, methodInsert)
	f.on("INSERT INTO", wrote(3))
	ack, err := s.Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 3}, ack)

	const path = "@~/terapush/r-1/2-000000000002.csv"
	require.Len(t, f.asked("PRESIGN UPLOAD "+path), 1)
	inserts := f.asked("INSERT INTO")
	require.Len(t, inserts, 1)
	require.Equal(t, "INSERT INTO `db`.`t` (`id`, `s`) VALUES", inserts[0].query.SQL)
	require.Equal(t, &attachment{
		Location: path,
		Format: map[string]string{
			"type": "CSV", "field_delimiter": ",", "record_delimiter": "\n", "quote": `"`, "escape": "", "skip_header": "0",
			"empty_field_as": "STRING", "error_on_column_count_mismatch": "true", "compression": "NONE",
		},
		Copy: map[string]string{"purge": "true"},
	}, inserts[0].query.Attachment)
	require.Equal(t, testLabel, inserts[0].header.Get(labelName))
	require.Equal(t, queryID(batchKind, batch.ID{Run: "r-1", Number: 2}, 2), inserts[0].header.Get(idName))
	require.Empty(t, f.asked("REMOVE"), "the server removes what it has loaded")
}

func TestPresignIsTriedBeforehand(t *testing.T) {
	f := newFake(t)
	f.presigns(t, func(http.ResponseWriter, *http.Request) { t.Error("nothing is put there yet") }).Close()
	_, err := New().Open(t.Context(), f.target(methodInsert), backendtest.Deps())
	require.Contains(t, loader.Explain(err), methodInsertNoPresign)
	require.NotContains(t, err.Error(), "sig-na-ture")
}

func TestTheStoreRefusesAnUpload(t *testing.T) {
	f := newFake(t)
	f.presigns(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message>"+
			"<StringToSign>secret-to-sign</StringToSign></Error>")
	})
	_, s := f.open(t, methodInsert)
	_, err := s.Load(t.Context(), testBatch(1))
	require.ErrorContains(t, err, "Request has expired")
	require.NotContains(t, err.Error(), "secret-to-sign")
	require.NotContains(t, err.Error(), "sig-na-ture")
	require.Equal(t, loader.No, New().Classify(err).Applied)
	require.Empty(t, f.asked("INSERT INTO"))
}

// uploads answers uploads through the node with the files that are listed, or with the one that came.
func (f *fake) uploads(t *testing.T, listed string) {
	f.routes["/v1/upload_to_stage"] = func(w http.ResponseWriter, r *http.Request) {
		file, content, err := readForm(r)
		if err != nil || content != threeRows {
			t.Errorf("file %q: %q, %v", file, content, err)
		}
		_, _ = io.WriteString(w, `{"id":"x","stage_name":"~","state":"SUCCESS","files":`+cmp.Or(listed, `["`+file+`"]`)+`}`)
	}
}

// The server takes a form that ends too early for a shorter one.
func TestAnUploadThatIsNotListed(t *testing.T) {
	f := newFake(t)
	f.uploads(t, "[]")
	_, s := f.open(t, methodInsertNoPresign)
	_, err := s.Load(t.Context(), testBatch(1))
	require.ErrorContains(t, err, "the server stored the files []")
	require.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}, New().Classify(err))
	require.Empty(t, f.asked("INSERT INTO"))
}

// A file is removed unless the statement may still read it.
func TestAnswersToAnInsert(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		want    loader.Verdict
		removes int
	}{
		"data":          {failure(1046, "bad row"), loader.Verdict{Class: loader.ClassData, Applied: loader.No}, 1},
		"meta service":  {failure(2001, "timeout"), loader.Verdict{Class: loader.ClassConnection, Retry: true}, 0},
		"cut off":       {`{"id":"q","state":"Suc`, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, 0},
		"without words": {`{"id":"q","state":"Failed","data":[]}`, loader.Verdict{Class: loader.ClassOther}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.uploads(t, "")
			_, s := f.open(t, methodInsertNoPresign)
			f.on("INSERT INTO", c.answer)
			_, err := s.Load(t.Context(), testBatch(1))
			require.Equal(t, c.want, New().Classify(err), "%v", err)
			require.Len(t, f.asked("REMOVE @~/terapush/r-1/1-000000000002.csv"), c.removes)
		})
	}
}

// The answer comes in pages; what was written is in the last, and so may be the error.
func TestPages(t *testing.T) {
	f := newFake(t)
	f.uploads(t, "")
	_, s := f.open(t, methodInsertNoPresign)
	f.on("INSERT INTO", `{"id":"q","node_id":"n7","state":"Starting","data":[],"next_uri":"/v1/query/q/page/1"}`)
	f.routes["/v1/query/q/page/1"] = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-DATABEND-STICKY-NODE") != "n7" || r.Header.Get("Authorization") == "" {
			t.Errorf("asked for a page with %v", r.Header)
		}
		_, _ = io.WriteString(w, strings.Replace(wrote(1), `"next_uri":null`, `"next_uri":"/v1/query/q/page/2"`, 1))
	}
	last := ""
	f.routes["/v1/query/q/page/2"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, last) }
	load := func(attempt int, answer string) (loader.Ack, error) {
		last = answer
		return s.Load(t.Context(), testBatch(attempt))
	}
	final := func(uri string) string {
		return strings.Replace(wrote(3), `"next_uri":null`, `"next_uri":"/v1/query/load/final","final_uri":"`+uri+`"`, 1)
	}
	ack, err := load(1, final("/v1/query/load/final"))
	require.NoError(t, err)
	require.Equal(t, int64(3), ack.Rows)
	require.Len(t, f.asked("/v1/query/load/final"), 1)

	other := newFake(t)
	_, err = load(1, final("@"+strings.TrimPrefix(other.URL, "http://")+"/x"))
	require.NoError(t, err)
	require.Empty(t, other.asked("/"), "the password goes nowhere else")
	_, err = load(2, failure(1046, "bad row"))
	require.ErrorContains(t, err, "bad row")
	_, err = load(3, `{"id":"q","state":"Running","data":[],"next_uri":"https://elsewhere.example/v1/query/q/page/3"}`)
	require.ErrorContains(t, err, "elsewhere")
	require.Equal(t, loader.Unknown, New().Classify(err).Applied)
}
