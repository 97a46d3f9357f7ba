package backendtest

import (
	"crypto/rand"
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

// StoreHandler returns an object store in this process with a bucket named "bucket".
func StoreHandler(t testing.TB, before Before) http.Handler {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bucket"))
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			store.ServeHTTP(w, r)
		}
	})
}

// Store serves StoreHandler, and sets Credentials.
func Store(t testing.TB, before Before) *httptest.Server {
	Credentials(t)
	server := httptest.NewServer(StoreHandler(t, before))
	t.Cleanup(server.Close)
	return server
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
	t.Run("fake", func(t *testing.T) { test(t, StoreTarget(t, "s3://bucket/some/prefix", Store(t, nil).URL)) })
	t.Run("real", func(t *testing.T) {
		target := StoreTarget(t, Server(t, "TERAPUSH_TEST_S3"), "")
		target.Database = strings.Trim(target.Database, "/") + "/test-" + strings.ToLower(rand.Text())
		test(t, target)
	})
}
