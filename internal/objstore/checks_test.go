package objstore

import (
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// troubles are the findings that are not all right, by check.
func troubles(findings []loader.Finding) map[string]loader.Grade {
	all := map[string]loader.Grade{}
	for _, f := range findings {
		if f.Grade != loader.GradeOK {
			all[f.Check] = f.Grade
		}
	}
	return all
}

func find(t *testing.T, findings []loader.Finding, check string) loader.Finding {
	t.Helper()
	for _, f := range findings {
		if f.Check == check {
			return f
		}
	}
	require.Fail(t, "no finding "+check, "%v", findings)
	return loader.Finding{}
}

// bucketSays answers what is asked about a bucket; "" leaves it to a healthy bucket.
type bucketSays struct {
	region, versioning, lifecycle, date string
	refuse                              map[string]int // statuses by the name of the question
}

const (
	noLifecycle = `<Error><Code>NoSuchLifecycleConfiguration</Code><Message>none</Message></Error>`
)

func (b bucketSays) before(w http.ResponseWriter, r *http.Request) bool {
	answer := func(status int, body string) bool {
		if b.date != "" {
			w.Header().Set("Date", b.date)
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, body)
		}
		return true
	}
	ask := ""
	for _, name := range []string{"versioning", "lifecycle"} {
		if hasKey(r.URL.Query(), name) {
			ask = name
		}
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
	case ask == "versioning":
		return answer(200, "<VersioningConfiguration>"+b.versioning+"</VersioningConfiguration>")
	case ask == "lifecycle" && b.lifecycle == "":
		return answer(404, noLifecycle)
	case ask == "lifecycle":
		return answer(200, b.lifecycle)
	}
	return false
}

func TestChecks(t *testing.T) {
	const on = "<Status>Enabled</Status>"
	rule := func(text string) string {
		return "<LifecycleConfiguration><Rule><ID>tidy</ID>" + text + "</Rule></LifecycleConfiguration>"
	}
	for name, c := range map[string]struct {
		says   bucketSays
		reader string
		want   map[string]loader.Grade
		found  string // of the only trouble
		fix    string
	}{
		"healthy": {},
		"another region": {
			says: bucketSays{region: "eu-central-1"}, want: map[string]loader.Grade{"region": loader.GradeWarn},
			found: "the bucket is in eu-central-1, and requests are signed for us-east-1", fix: "write ?region=eu-central-1 into the s3:// URL",
		},
		"no right to the head": {
			says: bucketSays{refuse: map[string]int{"head": 403}}, want: map[string]loader.Grade{"region": loader.GradeUnknown},
			fix: "allow s3:ListBucket on arn:aws:s3:::bucket to the credentials",
		},
		"a clock ten minutes ahead": {
			says: bucketSays{date: time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat)},
			want: map[string]loader.Grade{"clock": loader.GradeWarn}, fix: "sudo chronyc makestep",
		},
		"versions": {
			says: bucketSays{versioning: on}, want: map[string]loader.Grade{"versioning": loader.GradeWarn},
			found: "a batch that is sent again", fix: "aws s3api put-bucket-versioning --bucket bucket --versioning-configuration Status=Suspended",
		},
		"versions of a stage": {
			says: bucketSays{versioning: on}, reader: "Doris",
			want:  map[string]loader.Grade{"versioning": loader.GradeWarn, "store from the server": loader.GradeUnknown},
			found: "removed when Doris has loaded them",
		},
		"no right to versions": {
			says: bucketSays{refuse: map[string]int{"versioning": 403}}, want: map[string]loader.Grade{"versioning": loader.GradeUnknown},
			fix: "allow s3:GetBucketVersioning on arn:aws:s3:::bucket to the credentials",
		},
		"a rule that removes": {
			says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Prefix>some/</Prefix></Filter><Expiration><Days>1</Days></Expiration>")},
			want: map[string]loader.Grade{"lifecycle": loader.GradeWarn}, found: `rule "tidy" removes objects below s3://bucket/some/prefix`,
		},
		"a rule elsewhere": {
			says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Prefix>other/</Prefix></Filter><Expiration><Days>1</Days></Expiration>")},
		},
		"a rule that is off": {
			says: bucketSays{lifecycle: rule("<Status>Disabled</Status><Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration>")},
		},
		"a rule about tags": {
			says: bucketSays{lifecycle: rule("<Status>Enabled</Status><Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter><Expiration><Days>1</Days></Expiration>")},
		},
		"a store without lifecycles": {
			says: bucketSays{refuse: map[string]int{"lifecycle": 501}}, want: map[string]loader.Grade{"lifecycle": loader.GradeUnknown},
			found: "the store does not say: NotImplemented",
		},
	} {
		t.Run(name, func(t *testing.T) {
			credentials(t)
			opened := false
			server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
				return opened && c.says.before(w, r)
			})
			s := open(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
			opened = true
			findings, err := s.CheckServer(t.Context(), loader.Intent{Workers: 8}, c.reader)
			require.NoError(t, err)
			if c.want == nil {
				c.want = map[string]loader.Grade{}
			}
			require.Equal(t, c.want, troubles(findings), "%v", findings)
			for _, f := range findings {
				if f.Grade == loader.GradeOK || f.Check == "store from the server" {
					continue
				}
				require.Contains(t, f.Found+" ", c.found)
				if c.fix != "" {
					require.Equal(t, c.fix, f.Fix)
				}
				break
			}
		})
	}
}

// A store that is gone is an error, and no finding.
func TestChecksWithoutAnAnswer(t *testing.T) {
	credentials(t)
	server := fakeStore(t, nil)
	s := open(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
	server.Close()
	_, err := s.CheckServer(t.Context(), loader.Intent{}, "")
	require.ErrorContains(t, err, "connection refused")
}

// CheckServer changes nothing, on any store: neither a write nor a removal is sent.
func TestChecksWriteNothing(t *testing.T) {
	credentials(t)
	var asked requests
	server := fakeStore(t, func(_ http.ResponseWriter, r *http.Request) bool { asked.add(r); return false })
	s := open(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
	_, err := s.CheckServer(t.Context(), loader.Intent{}, "Doris")
	require.NoError(t, err)
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
		require.Empty(t, asked.of(method))
	}
}

func TestChecksOfAStore(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		s := open(t, target)
		findings, err := s.CheckServer(t.Context(), loader.Intent{Workers: 8}, "")
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(findings), 6)
		for _, check := range []string{"bucket", "region", "clock", "TLS", "versioning", "lifecycle"} {
			f := find(t, findings, check)
			require.NotEqual(t, loader.GradeFail, f.Grade, "%v", f)
			t.Logf("%-8s %-12s %s", f.Grade, f.Check, f.Found)
		}
	})
}

func TestHTTP(t *testing.T) {
	public, private := netip.MustParseAddr("52.219.1.2"), netip.MustParseAddr("10.0.3.4")
	require.Equal(t, loader.GradeOK, httpFinding("minio.lan", []netip.Addr{private}).Grade)
	f := httpFinding("minio.example:9000", []netip.Addr{private, public})
	require.Equal(t, loader.GradeWarn, f.Grade)
	require.Equal(t, "write ?endpoint=https://minio.example:9000 into the s3:// URL", f.Fix)
}
