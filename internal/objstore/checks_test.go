package objstore

import (
	"io"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
)

// bucketSays answers what is asked about a bucket; "" leaves it to a healthy bucket.
type bucketSays struct {
	region, lifecycle string
	refuse            map[string]int // statuses by the name of the question
}

const noLifecycle = `<Error><Code>NoSuchLifecycleConfiguration</Code><Message>none</Message></Error>`

func (b bucketSays) before(w http.ResponseWriter, r *http.Request) bool {
	answer := func(status int, body string) bool {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
		return true
	}
	ask := ""
	if hasKey(r.URL.Query(), "lifecycle") {
		ask = "lifecycle"
	}
	if r.Method == http.MethodHead {
		ask = "head"
	}
	if status := b.refuse[ask]; status != 0 {
		refuse(w, r, status, map[int]string{403: "AccessDenied", 501: "NotImplemented", 404: "NoSuchBucket"}[status], "no")
		return true
	}
	switch {
	case ask == "head":
		if b.region != "" {
			w.Header().Set("X-Amz-Bucket-Region", b.region)
		}
		return answer(200, "")
	case ask == "lifecycle" && b.lifecycle == "":
		return answer(404, noLifecycle)
	case ask == "lifecycle":
		return answer(200, b.lifecycle)
	}
	return false
}

// Nothing is changed on any store: neither a write nor a removal is sent.
func TestChecks(t *testing.T) {
	rule := func(text string) string {
		return "<LifecycleConfiguration><Rule><ID>tidy</ID>" + text + "</Rule></LifecycleConfiguration>"
	}
	const expires = "<Expiration><Days>1</Days></Expiration>"
	warn, unknown := backendtest.Warn, backendtest.Unknown
	for name, c := range map[string]struct {
		says   bucketSays
		reader string
		want   loader.Finding // none: all is well
	}{
		"healthy": {},
		"another region": {
			says: bucketSays{region: "eu-central-1"},
			want: warn("region", "the bucket is in eu-central-1, and requests are signed for us-east-1", "write ?region=eu-central-1 into the s3:// URL"),
		},
		"no right to the head": {
			says: bucketSays{refuse: map[string]int{"head": 403}},
			want: unknown("region", "", "allow s3:ListBucket on arn:aws:s3:::bucket to the credentials"),
		},
		"a rule that removes": {
			says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Prefix>some/</Prefix></Filter>" + expires)},
			want: warn("lifecycle", `rule "tidy" removes objects below s3://bucket/some/prefix`, ""),
		},
		"a rule elsewhere":   {says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Prefix>other/</Prefix></Filter>" + expires)}},
		"a rule that is off": {says: bucketSays{lifecycle: rule("<Status>Disabled</Status><Filter><Prefix></Prefix></Filter>" + expires)}},
		"a rule about tags": {
			says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>" + expires)},
		},
		"a store without lifecycles": {
			says: bucketSays{refuse: map[string]int{"lifecycle": 501}}, want: unknown("lifecycle", "the store does not say: NotImplemented", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened := false
			server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
				assert.Contains(t, []string{http.MethodGet, http.MethodHead}, r.Method)
				return opened && c.says.before(w, r)
			})
			s := open(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
			opened = true
			findings, err := s.CheckServer(t.Context(), loader.Intent{Workers: 8}, c.reader)
			require.NoError(t, err)
			found := backendtest.Complaints(findings, "Doris reads the objects") // which is never known
			backendtest.Only(t, c.want, found)
			require.Equal(t, c.reader != "", len(found) < len(backendtest.Complaints(findings, "no such beginning")))
		})
	}
}

// A store that is gone is an error, and no finding.
func TestChecksWithoutAnAnswer(t *testing.T) {
	server := fakeStore(t, nil)
	s := open(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
	server.Close()
	_, err := s.CheckServer(t.Context(), loader.Intent{}, "")
	require.Contains(t, loader.Explain(err), "connection refused (is the server up, and is this its port?)")
	require.NotContains(t, err.Error(), "operation error", "the SDK's wrappers")
}

func TestChecksOfAStore(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		findings, err := open(t, target).CheckServer(t.Context(), loader.Intent{Workers: 8}, "")
		require.NoError(t, err)
		var checks []string
		for _, f := range findings {
			checks = append(checks, f.Check)
			require.NotEqual(t, loader.GradeFail, f.Grade, "%v", f)
		}
		require.Equal(t, []string{"bucket", "region", "TLS", "lifecycle"}, checks)
	})
}

func TestHTTP(t *testing.T) {
	public, private := netip.MustParseAddr("52.219.1.2"), netip.MustParseAddr("10.0.3.4")
	require.Equal(t, loader.GradeOK, httpFinding("minio.lan", []netip.Addr{private}).Grade)
	f := httpFinding("minio.example:9000", []netip.Addr{private, public})
	require.Equal(t, loader.GradeWarn, f.Grade)
	require.Equal(t, "write ?endpoint=https://minio.example:9000 into the s3:// URL", f.Fix)
}
