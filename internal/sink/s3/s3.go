// Package s3 is a sink that speaks the uploading side of Amazon S3: objects are put whole or in parts, counted and
// forgotten. Every bucket exists.
//
//   - Rows of an object are its lines, or what the footer of a Parquet file says. Those of an object in parts are counted
//     when it is completed, its bytes as the parts come; a part that is sent twice is counted twice, as an object is.
//   - Names and sizes of the last 10,000 objects are remembered, for HEAD and listings. Their content is not: GET is
//     refused.
//   - An ETag is a number and no MD5, which would cost more time than everything else. Clients that take it for one look
//     for 32 hexadecimal digits, of which it has fewer.
//   - Signatures are looked at where the sink has a password, which is then the secret key. Those inside of aws-chunked
//     bodies are not.
//   - Checksums that a client declares are compared where the sink was started to do so: CRC32, CRC32C, CRC64NVME, SHA1,
//     SHA256 and Content-MD5 of an object or a part, in the head or behind the body. That of a completed object is not.
package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) {
	return sink.Listen(addr, o, web.Talk((&store{}).serve))
}

// store is what all connections share.
type store struct {
	objects objects
	uploads uploads
	last    atomic.Int64 // number that an ETag, an upload or a request was given
}

// request is one request.
type request struct {
	*web.Exchange
	store       *store
	bucket, key string
	query       url.Values
}

// refusal is an error of S3's protocol.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func notHere(what string) error {
	return &refusal{http.StatusNotImplemented, "NotImplemented", "terapush sink: " + what}
}

func (s *store) serve(x *web.Exchange) error {
	r := &request{Exchange: x, store: s, query: x.URL.Query()}
	r.bucket, r.key = place(x.Request)
	err := r.check()
	if err == nil {
		err = r.route()
	}
	var said *refusal
	if errors.As(err, &said) {
		return r.refuse(said)
	}
	return err
}

// place returns the bucket and the key that a request names: in its path or, below .localhost, the bucket in its host.
func place(r *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	host, _, _ := strings.Cut(strings.ToLower(r.Host), ":")
	if bucket, found := strings.CutSuffix(host, ".localhost"); found {
		return bucket, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

func (r *request) check() error {
	switch {
	case len(r.key) > maxKey:
		return &refusal{http.StatusBadRequest, "KeyTooLongError", "a key has at most 1024 bytes"}
	case len(r.bucket) > maxBucket:
		return &refusal{http.StatusBadRequest, "InvalidBucketName", "a bucket's name has at most 63 bytes"}
	}
	return r.signed()
}

// Bounds of names (Amazon S3 user guide), in bytes.
const (
	maxKey    = 1024
	maxBucket = 63
)

func (r *request) route() error {
	switch {
	case r.bucket == "":
		if r.Method != http.MethodGet {
			return notHere("that needs a bucket")
		}
		return r.listBuckets()
	case r.key == "":
		return r.ofBucket()
	}
	switch r.Method {
	case http.MethodPut:
		return r.put()
	case http.MethodPost:
		return r.post()
	case http.MethodHead:
		return r.head()
	case http.MethodDelete:
		return r.remove()
	}
	return r.get()
}

func (r *request) ofBucket() error {
	switch r.Method {
	case http.MethodGet:
		return r.list()
	case http.MethodHead:
		return r.Answer(http.StatusOK, "", nil, "x-amz-bucket-region", region)
	case http.MethodPut:
		return r.createBucket()
	case http.MethodDelete:
		if err := r.only("DeleteBucket"); err != nil {
			return err
		}
		return r.Answer(http.StatusNoContent, "", nil)
	case http.MethodPost:
		return r.removeMany()
	}
	return notHere(r.Method + " of a bucket")
}

// region is the one that the sink claims to be in.
const region = "us-east-1"

// longestConfiguration bounds the body of a CreateBucket, in bytes.
const longestConfiguration = 8 << 10

// createBucket agrees. A body that is no configuration is an object of a client that names buckets by the host, and
// whose rows would not be counted.
func (r *request) createBucket() error {
	if err := r.only("CreateBucket"); err != nil {
		return err
	}
	text, err := r.Content.Text(longestConfiguration)
	var too *web.Malformed
	if errors.As(err, &too) || err == nil && len(text) > 0 && !strings.Contains(string(text), "CreateBucketConfiguration") {
		return &refusal{http.StatusBadRequest, "InvalidRequest", "terapush sink: name the bucket in the path (path style), or below .localhost"}
	}
	if err != nil {
		return err
	}
	return r.Answer(http.StatusOK, "", nil, "Location", "/"+url.PathEscape(r.bucket))
}

// only refuses parameters that would make a request another one than the operation: ?acl, ?tagging and their like.
func (r *request) only(operation string, known ...string) error {
	for name := range r.query {
		lower := strings.ToLower(name)
		if lower == "x-id" || strings.HasPrefix(lower, "x-amz-") {
			continue // of a presigned URL, or the operation's own name
		}
		found := false
		for _, k := range known {
			found = found || name == k
		}
		if !found {
			return notHere(operation + " is all that can be done here, and not ?" + name)
		}
	}
	return nil
}

// refuse answers with an error.
func (r *request) refuse(said *refusal) error {
	id := r.store.number()
	return r.xml(said.status, struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		Resource  string
		RequestId string //nolint:revive // the element's name
	}{Code: said.code, Message: said.message, Resource: r.URL.Path, RequestId: id}, "x-amz-request-id", id)
}

func (r *request) xml(status int, value any, fields ...string) error {
	text, err := xml.Marshal(value)
	if err != nil {
		return err
	}
	return r.Answer(status, "application/xml", append([]byte(xml.Header), text...), fields...)
}

// namespace of the answers.
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
