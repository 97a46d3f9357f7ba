package objstore

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket": "", "s3://bucket/a/b/?region=eu-west-1": "", "s3://My_Bucket.x/p": "",
		"s3://bucket/p?endpoint=http://127.0.0.1:9000&path_style=true&server_endpoint=https://minio:9000": "",

		"postgres://bucket/p":                          "named s3://bucket/prefix",
		"s3:///p":                                      "with one bucket",
		"s3://a-bucket,b-bucket/p":                     "with one bucket",
		"s3://localhost:9000/bucket":                   `"localhost:9000" is not the name of a bucket`,
		"s3://bü/p":                                    "is not the name of a bucket",
		"s3://AKID:secret@bucket/p":                    "takes no credentials",
		"s3://bucket/a//b":                             "empty",
		"s3://bucket/../b":                             "..",
		"s3://bucket/p?endpoint=127.0.0.1:9000":        "http://host:port",
		"s3://bucket/p?endpoint=http://a:sEcReT@host":  "parameter endpoint of the s3:// URL has a user or a password in it",
		"s3://bucket/p?server_endpoint=sEcReT@host":    "parameter server_endpoint of the s3:// URL has a user or a password in it",
		"s3://bucket/p?endpoint=http://a:1/sEcReT@h":   "parameter endpoint of the s3:// URL has a user or a password in it",
		"s3://bucket/p?endpoint=http://h?sEcReT":       "http://host:port",
		"s3://bucket/p?endpoint=":                      "takes one value",
		"s3://bucket/p?region=a&region=b":              "takes one value",
		"s3://bucket/p?path_style=perhaps":             "neither true nor false",
		"s3://bucket/p?pathstyle=true":                 `no parameter "pathstyle"`,
		"s3://bucket/p?secret_access_key=sEcReT":       `no parameter "secret_access_key"`,
		"s3://bucket/p?server_endpoint=ftp://minio:21": "parameter server_endpoint",
	} {
		target := targetOf(t, text, "")
		err := Check(target)
		if want == "" {
			assert.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "sEcReT")
		_, opened := Open(t.Context(), target, backendtest.Deps())
		assert.Equal(t, err, opened)
	}
	target := targetOf(t, "s3://bucket/p", "")
	target.Settings = []loader.Setting{{Name: "a", Value: "b"}}
	assert.ErrorContains(t, Check(target), "--set")
	target = targetOf(t, "s3://bucket/p?endpoint=http://h", "")
	target.TLS = loader.TLSVerify
	assert.ErrorContains(t, Check(target), "https://")
	target = targetOf(t, "s3://bucket/p", "")
	target.TLS = loader.TLSOff
	assert.ErrorContains(t, Check(target), "http://")
}

func TestPathStyle(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "?endpoint=http://127.0.0.1:9000": true, "?endpoint=http://minio:9000": true, "?endpoint=http://[::1]:9000": true,
		"?endpoint=https://s3.example.com": false, "?endpoint=https://s3.example.com&path_style=true": true,
		"?endpoint=http://minio:9000&path_style=false": false, "?path_style=true": true,
	} {
		p, err := placeOf(targetOf(t, "s3://bucket/p"+query, ""))
		require.NoError(t, err)
		assert.Equal(t, want, p.pathStyle, query)
	}
}

// The URL comes before the environment; the database gets what it needs to read the objects itself.
func TestAccess(t *testing.T) {
	server := fakeStore(t, nil)
	want := Access{
		Endpoint: server.URL, Bucket: "bucket", Prefix: "a/b", PathStyle: true,
		KeyID: backendtest.S3Key, Secret: backendtest.S3Secret, Token: backendtest.S3Token,
	}
	for _, c := range []struct{ query, env, region, endpoint string }{
		{"", "", "us-east-1", server.URL},
		{"", "ap-south-1", "ap-south-1", server.URL},
		{"?region=eu-west-1", "ap-south-1", "eu-west-1", server.URL},
		{"?server_endpoint=http://minio:9000", "", "us-east-1", "http://minio:9000"},
	} {
		t.Setenv("AWS_REGION", c.env)
		a, err := open(t, targetOf(t, "s3://bucket/a/b"+c.query, server.URL)).Access(t.Context())
		require.NoError(t, err)
		want.Region, want.Endpoint = c.region, c.endpoint
		assert.Equal(t, want, a)
	}
}

func TestAccessRedacts(t *testing.T) {
	a := Access{KeyID: backendtest.S3Key, Secret: backendtest.S3Secret, Token: backendtest.S3Token, Region: "eu-west-1"}
	assert.Equal(t, "near '*** in eu-west-1, key ***, token ***",
		a.Redact("near '"+backendtest.S3Secret[3:]+" in eu-west-1, key "+backendtest.S3Key+", token "+backendtest.S3Token[:9]))
}

// Where the URL names no endpoint, the SDK's own settings do.
func TestEndpointOfTheChain(t *testing.T) {
	server := fakeStore(t, nil)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	s := open(t, targetOf(t, "s3://bucket/p", ""))
	assert.Equal(t, server.URL, s.Endpoint())
	assert.Equal(t, "s3://bucket/p", s.String())
	putAll(t, s.Run("run"), "run", 0)
}

// They are held to the same rules, and what is wrong with them is not repeated: they are shown in warnings and reports.
func TestUnfitEndpointOfTheChain(t *testing.T) {
	backendtest.Credentials(t)
	for endpoint, want := range map[string]string{
		"http://AKIA:sEcReT@127.0.0.1:1": "AWS_ENDPOINT_URL has a user or a password in it",
		"http://127.0.0.1:1/?k=sEcReT":   "AWS_ENDPOINT_URL must be http://host:port",
		"http://127.0.0.1:%zzsEcReT":     "AWS_ENDPOINT_URL must be http://host:port",
	} {
		for _, variable := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
			t.Setenv(variable, endpoint)
			_, err := Open(t.Context(), targetOf(t, "s3://bucket/p", ""), backendtest.Deps())
			require.ErrorContains(t, err, "open s3://bucket/p: "+want)
			assert.NotContains(t, err.Error(), "sEcReT")
			assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassOther}, verdictOf(t, err))
			t.Setenv(variable, "")
		}
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	target := targetOf(t, "s3://bucket/p", "")
	target.TLS = loader.TLSVerify
	_, err := Open(t.Context(), target, backendtest.Deps())
	require.ErrorContains(t, err, "--tls verify and an http:// endpoint contradict each other")
}

func TestTLS(t *testing.T) {
	backendtest.Credentials(t)
	var asked requests
	server := httptest.NewTLSServer(backendtest.StoreHandler(t, asked.note))
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, block, 0o600))

	target := targetOf(t, "s3://bucket/p", server.URL)
	target.TLS = loader.TLSVerify
	_, err := Open(t.Context(), target, backendtest.Deps())
	require.Contains(t, loader.Explain(err), "name the certificate's authority with --tls-ca")

	d := backendtest.Deps()
	d.TLS = netio.Trust{CAFile: authority}.TLS
	s, err := Open(t.Context(), target, d)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	putAll(t, s.Run("run"), "run", 0, 1)
	for _, r := range asked.of(http.MethodPut) {
		assert.Equal(t, 1, r.ProtoMajor, "one HTTP/2 connection would be one flow")
		assert.Equal(t, "UNSIGNED-PAYLOAD", r.Header.Get("X-Amz-Content-Sha256"))
	}

	d.TLS = netio.Trust{CAFile: filepath.Join(t.TempDir(), "none.pem")}.TLS
	_, err = Open(t.Context(), target, d)
	require.ErrorContains(t, err, "none.pem")
	verdictOf(t, err)
}
