package objstore

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/loader"
)

// No reader of the SDK's ever stands between a batch and the wire: what would need one is refused, and nothing is sent.
func TestBodiesAreNeverTheSDKs(t *testing.T) {
	plain := fakeStore(t, nil)
	secure := httptest.NewTLSServer(plain.Config.Handler)
	defer secure.Close()
	checksums := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported }
	for name, c := range map[string]struct {
		server *httptest.Server
		option func(*s3.Options)
		says   string
	}{
		"a checksum before the body": {plain, checksums, "the SDK tries to read the body"},
		"a checksum behind the body": {secure, checksums, `signed the body as "STREAMING-UNSIGNED-PAYLOAD-TRAILER"`},
	} {
		t.Run(name, func(t *testing.T) {
			credentials(t)
			target := targetOf(t, "s3://bucket/p", c.server.URL)
			target.TLS = loader.TLSRequire
			if c.server == plain {
				target.TLS = loader.TLSAuto
			}
			s, err := Open(t.Context(), target, deps())
			require.NoError(t, err)
			defer func() { _ = s.Close() }()
			s.client = s3.New(s.client.Options(), c.option)
			err = put(t.Context(), t, s.Run("run"), newBatch("run", 0, "row\n"))
			require.ErrorContains(t, err, c.says)
			v, ok := classify(err)
			assert.True(t, ok)
			assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassOther}, v)
			assert.Empty(t, names(t, s.Run("run")))
		})
	}
}

func TestSenderRefusesSignedBodies(t *testing.T) {
	for _, signature := range []string{"", strings.Repeat("0", 64), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"} {
		b := newBatch("run", 0, "row\n")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "http://127.0.0.1:1/", payload(4))
		r.Header.Set("X-Amz-Content-Sha256", signature)
		answer, err := (&sender{http: httpload.NewClient(httpload.Options{}), batch: b.Batch}).Do(r)
		if answer != nil {
			answer.Body.Close()
		}
		var refused *refusal
		require.ErrorAs(t, err, &refused, signature)
		b.Release()
		<-b.freed
	}
}

// The SDK asks for a place and a length, and gets no byte.
func TestPayload(t *testing.T) {
	p := payload(10)
	assert.Equal(t, 10, p.Len())
	for _, whence := range []int{io.SeekStart, io.SeekCurrent} {
		at, err := p.Seek(0, whence)
		require.NoError(t, err)
		assert.Zero(t, at)
	}
	_, err := p.Seek(0, io.SeekEnd)
	require.Error(t, err)
	_, err = p.Seek(1, io.SeekStart)
	require.Error(t, err)
	n, err := p.Read(make([]byte, 10))
	require.Error(t, err)
	assert.Zero(t, n)
}
