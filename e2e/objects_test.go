package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

const s3Kind kind = "s3"

// folder is a prefix in the bucket of the S3 server that is up for all tests. It belongs to one test, and is seen
// through the SDK as it comes, not through terapush's client.
type folder struct {
	*database // the s3:// URL as a target
	sdk       *s3.Client
	bucket    string
	prefix    string
	endpoint  string
}

func newFolder(t testing.TB) *folder {
	t.Helper()
	u, err := url.Parse(backendtest.Server(t, "TERAPUSH_TEST_S3"))
	require.NoError(t, err)
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(u.Query().Get("region")))
	require.NoError(t, err)
	f := &folder{bucket: u.Host, prefix: "e2e-" + strings.ToLower(rand.Text()), endpoint: u.Query().Get("endpoint")}
	f.sdk = s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(f.endpoint), true })
	u.Path = "/" + f.prefix
	f.database = &database{kind: s3Kind, url: u, state: filepath.Join(t.TempDir(), "state")}
	t.Cleanup(func() {
		for _, o := range f.list(t) {
			_, _ = f.sdk.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &f.bucket, Key: &o.key})
		}
	})
	return f
}

// object is one in the folder.
type object struct {
	key   string
	bytes int64
}

// list lists the folder in the order of the keys.
func (f *folder) list(t testing.TB) (all []object) {
	t.Helper()
	pages := s3.NewListObjectsV2Paginator(f.sdk, &s3.ListObjectsV2Input{Bucket: &f.bucket, Prefix: aws.String(f.prefix + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background()) // also when the test is over
		require.NoError(t, err)
		for _, o := range page.Contents {
			all = append(all, object{aws.ToString(o.Key), aws.ToInt64(o.Size)})
		}
	}
	return all
}

func (f *folder) get(t testing.TB, key string) []byte {
	t.Helper()
	got, err := f.sdk.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &f.bucket, Key: &key})
	require.NoError(t, err, key)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err, key)
	return body
}

func (f *folder) put(t testing.TB, key, body string) {
	t.Helper()
	_, err := f.sdk.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &f.bucket, Key: &key, Body: bytes.NewReader([]byte(body))})
	require.NoError(t, err, key)
}

// object is the key of a batch of a run.
func (f *folder) object(run string, number int64, format string) string {
	return fmt.Sprintf("%s/%s/%012d.%s", f.prefix, run, number, format)
}

// with sets a parameter of the URL.
func with(name, value string) func(*url.URL) {
	return func(u *url.URL) {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
	}
}

// keepsSecrets looks for the store's key in what was printed, and in the state folder.
func (d *database) keepsSecrets(t *testing.T, texts ...string) {
	t.Helper()
	secret := os.Getenv("AWS_SECRET_ACCESS_KEY")
	require.NotEmpty(t, secret, "the S3 server's key")
	hides(t, secret, append(texts, everythingIn(t, d.state))...)
}
