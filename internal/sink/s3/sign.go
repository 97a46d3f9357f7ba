package s3

import (
	"crypto/subtle"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// authorization is the head of version 4 of the signature: key id, day, region, service, names of the signed fields.
var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 +Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, *` +
	`SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})$`)

// checkSignature compares the signature with one made by the sink's password as the secret key. Signed URLs are refused
// there, and older signatures.
func (r *request) checkSignature() error {
	password := r.conn.Options.Password
	if password == "" {
		return nil
	}
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if m == nil || err != nil {
		return &apiError{http.StatusForbidden, "AccessDenied",
			"terapush sink: it has a password, and wants requests with a signature of version 4 in their head"}
	}
	again := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
	for name := range strings.SplitSeq(m[5], ";") {
		switch name {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	keys := aws.Credentials{AccessKeyID: m[1], SecretAccessKey: password}
	err = signer.SignHTTP(r.Context(), keys, again, r.Header.Get("X-Amz-Content-Sha256"), m[4], m[3], at)
	made := authorization.FindStringSubmatch(again.Header.Get("Authorization"))
	if err != nil || made == nil || subtle.ConstantTimeCompare([]byte(made[6]), []byte(m[6])) != 1 {
		return &apiError{http.StatusForbidden, "SignatureDoesNotMatch",
			"terapush sink: the secret key is not the sink's password, or something in between changed the request"}
	}
	return nil
}
