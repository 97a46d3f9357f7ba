package files_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// buckets opens stores that the test closes.
func buckets(t *testing.T) *files.Buckets {
	b := &files.Buckets{Open: func(ctx context.Context, to loader.Target) (objstore.Files, error) {
		return objstore.OpenFiles(ctx, to, backendtest.Deps())
	}}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// put makes objects below a target.
func put(t *testing.T, target loader.Target, objects map[string]string) {
	store, err := objstore.OpenFiles(t.Context(), target, backendtest.Deps())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var names []string
	for name, text := range objects {
		require.NoError(t, store.Write(t.Context(), name, []byte(text)))
		names = append(names, name)
	}
	t.Cleanup(func() { require.NoError(t, store.Remove(context.WithoutCancel(t.Context()), names...)) })
}

// below is the URL of an object below a target.
func below(target loader.Target, name string) string {
	target.Database = strings.TrimSuffix(target.Database, "/") + "/" + name
	return strings.ReplaceAll(target.String(), "%2A", "*")
}

func TestFilesInBuckets(t *testing.T) {
	backendtest.EachStore(t, func(t *testing.T, target loader.Target) {
		big := lines(300_000, "z") // of several parts
		put(t, target, map[string]string{
			"in/a.csv": lines(10, "a"), "in/b.csv.gz": stored(t, files.Gzip, lines(20, "b")), "in/more/c d.csv": lines(30, "c"),
			"in2/d.csv": lines(5, "d"), "big.csv": big, "empty.csv": "", "header.csv": "a,b\n" + lines(3, "h"),
			"marked/": "", "marked/e[1].csv": lines(1, "e"),
		})
		for pattern, want := range map[string][]string{
			"in/":             {"in/a.csv", "in/b.csv.gz", "in/more/c%20d.csv"},
			"in":              {"in/a.csv", "in/b.csv.gz", "in/more/c%20d.csv"},
			"in/*.csv":        {"in/a.csv"},
			"in*/*.csv":       {"in/a.csv", "in2/d.csv"},
			"in/a.csv":        {"in/a.csv"},
			"in/more/c*csv":   {"in/more/c%20d.csv"},
			"marked/":         {"marked/e%5B1%5D.csv"},
			"marked/e[1]*":    nil,
			"marked/e[1].csv": {"marked/e%5B1%5D.csv"},
			"missing":         nil,
			"in/a":            nil,
			"*.tsv":           nil,
		} {
			found, err := buckets(t).Find(t.Context(), []string{below(target, pattern)})
			if want == nil {
				require.ErrorContains(t, err, "there is no such object")
				continue
			}
			require.NoError(t, err)
			var paths []string
			for _, f := range found {
				paths = append(paths, strings.TrimPrefix(f.Path, strings.Split(below(target, ""), "?")[0]))
			}
			require.Equal(t, want, paths, pattern)
		}
		_, err := files.Find([]string{below(target, "big.csv")})
		require.ErrorContains(t, err, "cannot be read here")

		b := buckets(t)
		c := config(t, files.CSV, write(t, "local", lines(3, "l")))
		more, err := b.Find(t.Context(), []string{below(target, "in"), below(target, "big.csv"), below(target, "empty.csv"),
			below(target, "in/a.csv")})
		require.NoError(t, err)
		c.Spec.Files = append(c.Spec.Files, more...)
		c.BatchBytes, c.BufferBytes = 1<<20, 4<<20
		var kept []files.Range
		c.Ahead = func(r []files.Range) error { kept = append(kept, r...); return nil }
		all := lines(3, "l") + lines(10, "a") + lines(20, "b") + lines(30, "c") + big
		require.Equal(t, all, sent(t, open(t, c)))

		// Another process, which knows the files by what was kept.
		record, err := json.Marshal(c.Spec)
		require.NoError(t, err)
		again := c
		again.Spec = files.Spec{}
		require.NoError(t, json.Unmarshal(record, &again.Spec))
		again.Known, again.Ahead = kept[:len(kept)-1], nil
		require.ErrorContains(t, drain(open(t, again), 0, func(*batch.Batch) {}), "no object store is connected")
		require.NoError(t, buckets(t).Connect(t.Context(), again.Spec.Files))
		again.Done = func(n int64) bool { return n%2 == 0 }
		s := open(t, again)
		require.Equal(t, all, sent(t, s))

		spec := files.NewSpec(files.CSV)
		spec.Header = true
		spec.Files, err = b.Find(t.Context(), []string{below(target, "header.csv")})
		require.NoError(t, err)
		require.NoError(t, spec.ReadHeaders(t.Context()))
		require.Equal(t, []string{"a", "b"}, spec.Files[0].Header)

		put(t, target, map[string]string{"in/a.csv": lines(11, "a")})
		changed := (*files.ChangedError)(nil)
		require.ErrorAs(t, drain(open(t, c), 0, func(*batch.Batch) {}), &changed)
		require.Contains(t, changed.Path, "in/a.csv")
		changed = nil
		require.ErrorAs(t, buckets(t).Connect(t.Context(), again.Spec.Files), &changed)
		require.Contains(t, changed.Path, "in/a.csv")
	})
}

// A store that throttles is asked again, and one that breaks an answer off.
func TestBucketThatThrottles(t *testing.T) {
	var reads atomic.Int64
	var etag atomic.Value
	store := backendtest.StoreAndKeys(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/f.csv") || reads.Add(1)%2 == 0 {
			return false
		}
		if known := etag.Load(); known != nil && reads.Load()%3 == 0 {
			w.Header().Set("ETag", known.(string))
			w.Header().Set("Content-Range", "bytes 0-99/100")
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("half"))
			return true
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"))
		return true
	})
	target := backendtest.StoreTarget(t, "s3://bucket/some/prefix", store.URL)
	all := lines(1000, "f")
	put(t, target, map[string]string{"f.csv": all})
	c := config(t, files.CSV, write(t, "none", ""))
	var err error
	c.Spec.Files, err = buckets(t).Find(t.Context(), []string{below(target, "f.csv")})
	require.NoError(t, err)
	etag.Store(c.Spec.Files[0].ETag)
	require.Equal(t, all, sent(t, open(t, c)))
	require.Greater(t, reads.Load(), int64(3))
}
