package backendtest

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// The keys that Credentials sets.
const (
	S3Key    = "AKIDTERAPUSH"
	S3Secret = "sEcReT/tErApUsH"
	S3Token  = "tOkEn//tErApUsH"
)

// Credentials sets AWS keys for the test, which are found nowhere else.
func Credentials(t testing.TB) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": S3Key, "AWS_SECRET_ACCESS_KEY": S3Secret, "AWS_SESSION_TOKEN": S3Token,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
	} {
		t.Setenv(name, value)
	}
}

// Before sees every request to a store first, and may answer it.
type Before func(w http.ResponseWriter, r *http.Request) (answered bool)

// Store is an object store in this process with a bucket named "bucket".
type Store struct {
	*httptest.Server
	Backend *s3mem.Backend
	t       testing.TB
}

// StoreAndKeys is StartStore, and sets Credentials.
func StoreAndKeys(t testing.TB, before Before) Store {
	Credentials(t)
	return StartStore(t, before)
}

// StartStore starts a store that ends with the test.
func StartStore(t testing.TB, before Before) Store {
	handler, backend := storeHandler(t, before)
	s := Store{httptest.NewServer(handler), backend, t}
	t.Cleanup(s.Close)
	return s
}

// StoreHandler returns what serves a Store.
func StoreHandler(t testing.TB, before Before) http.Handler {
	handler, _ := storeHandler(t, before)
	return handler
}

func storeHandler(t testing.TB, before Before) (http.Handler, *s3mem.Backend) {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bucket"))
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			store.ServeHTTP(w, r)
		}
	}), backend
}

// Read returns an object of the bucket.
func (s Store) Read(key string) ([]byte, error) {
	o, err := s.Backend.GetObject("bucket", key, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Contents.Close() }()
	return io.ReadAll(o.Contents)
}

// Keys lists what is in the bucket, sorted.
func (s Store) Keys() (keys []string) {
	found, err := s.Backend.ListBucket("bucket", nil, gofakes3.ListBucketPage{})
	if err != nil {
		s.t.Error(err)
		return nil
	}
	for _, o := range found.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// Via names the folder "in" of the bucket.
func (s Store) Via() *loader.Target {
	via := StoreTarget(s.t, "s3://bucket/in?path_style=true&region=eu-central-1", s.URL)
	return &via
}

// StoreTarget reads an s3:// URL and adds the endpoint.
func StoreTarget(t testing.TB, url, endpoint string) loader.Target {
	t.Helper()
	target, err := loader.ParseTarget(url)
	require.NoError(t, err)
	if endpoint != "" {
		target.Params.Set("endpoint", endpoint)
	}
	return target
}

// EachStore runs the test on a store in this process and on a real one, under a prefix of its own.
func EachStore(t *testing.T, test func(t *testing.T, target loader.Target)) {
	t.Run("fake", func(t *testing.T) { test(t, StoreTarget(t, "s3://bucket/some/prefix", StoreAndKeys(t, nil).URL)) })
	t.Run("real", func(t *testing.T) {
		target := StoreTarget(t, Server(t, "TERAPUSH_TEST_S3"), "")
		target.Database = strings.Trim(target.Database, "/") + "/test-" + strings.ToLower(rand.Text())
		test(t, target)
	})
}
