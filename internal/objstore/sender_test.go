package objstore

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// No reader of the SDK's ever stands between a batch and the wire: what would need one is refused, and nothing is sent.
func TestBodiesAreNeverTheSDKs(t *testing.T) {
	plain := fakeStore(t, nil)
	secure := httptest.NewTLSServer(plain.Config.Handler)
	defer secure.Close()
	checksums := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported }
	for says, c := range map[string]struct {
		url string
		tls loader.TLSMode
	}{
		"the SDK tries to read the body":                          {url: plain.URL},
		`signed the body as "STREAMING-UNSIGNED-PAYLOAD-TRAILER"`: {url: secure.URL, tls: loader.TLSRequire},
	} {
		t.Run(says, func(t *testing.T) {
			target := targetOf(t, "s3://bucket/p", c.url)
			target.TLS = c.tls
			s := open(t, target)
			s.client = s3.New(s.client.Options(), checksums)
			err := put(t.Context(), t, s.Run("run"), newBatch("run", 0, "row\n"))
			require.ErrorContains(t, err, says)
			assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassOther}, verdictOf(t, err))
			assert.Empty(t, names(t, s.Run("run")))
		})
	}
}
