// Package s3 is a sink that speaks the uploading side of Amazon S3: objects are put whole or in parts, counted and
// forgotten. Every bucket exists.
//
//   - Rows of an object are its lines, or what the footer of a Parquet file says. Those of an object in parts are counted
//     when it is completed, its bytes as the parts come; a part that is sent twice is counted twice, as an object is.
//   - Names and sizes of the last 10,000 objects are remembered, for HEAD and listings. Their content is not: GET is
//     refused.
//   - An ETag is a number and no MD5, which would cost more time than everything else. Clients that take it for one look
//     for 32 hexadecimal digits, of which it has fewer.
//   - Signatures are compared where the sink has a password, which is then the secret key. Those of chunks, and the
//     checksums that clients declare, are not.
package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) {
	return sink.ListenHTTP(addr, o, new(store).serve)
}

// store is what all connections share.
type store struct {
	objects sink.Recent[*object] // by bucket/key
	uploads sink.Recent[*upload] // by id
	last    atomic.Int64         // number that an ETag, an upload or a request was given
}

// number returns a new one, as text.
func (s *store) number() string { return strconv.FormatInt(s.last.Add(1), 10) }

// request is one request.
type request struct {
	*http.Request
	conn        *sink.Conn
	store       *store
	bucket, key string
	query       url.Values
}

// apiError is an error of S3's protocol.
type apiError struct {
	status        int
	code, message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func notImplemented(message string) error {
	return &apiError{http.StatusNotImplemented, "NotImplemented", "terapush sink: " + message}
}

func invalid(code, message string) error { return &apiError{http.StatusBadRequest, code, message} }

func (s *store) serve(c *sink.Conn, hr *http.Request) sink.Answer {
	r := &request{Request: hr, conn: c, store: s, query: hr.URL.Query()}
	r.bucket, r.key = location(hr)
	err := r.checkSignature()
	var a sink.Answer
	if err == nil {
		a, err = r.route()
	}
	if err == nil {
		return a
	}
	e := &apiError{http.StatusBadRequest, "IncompleteBody", "terapush sink: " + err.Error()}
	errors.As(err, &e)
	id := s.number()
	return answerXML(e.status, struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		Resource  string
		RequestId string //nolint:revive // the element's name
	}{Code: e.code, Message: e.message, Resource: r.URL.Path, RequestId: id}, "X-Amz-Request-Id", id)
}

// location returns the bucket and the key that a request names: in its path or, below .localhost, the bucket in its host.
func location(r *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	host, _, _ := strings.Cut(strings.ToLower(r.Host), ":")
	if bucket, found := strings.CutSuffix(host, ".localhost"); found {
		return bucket, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

// operation is what a method does with a bucket or an object, where the query has the parameter that names it, and none but
// those and the ones allowed: a ?acl or ?tagging would make it another.
type operation struct {
	method, parameter, allowed string
	do                         func(*request) (sink.Answer, error)
}

var ofBuckets = []operation{
	{"POST", "delete", "", (*request).deleteObjects},
	{"GET", "location", "", func(*request) (sink.Answer, error) { return answerXML(200, empty("LocationConstraint")), nil }},
	{"GET", "versioning", "", func(*request) (sink.Answer, error) { return answerXML(200, empty("VersioningConfiguration")), nil }},
	{"GET", "", "list-type prefix delimiter max-keys continuation-token start-after marker encoding-type fetch-owner", (*request).list},
	{"HEAD", "", "", func(*request) (sink.Answer, error) {
		return sink.Answer{Status: 200, Header: []string{"X-Amz-Bucket-Region", "us-east-1"}}, nil
	}},
	{"PUT", "", "", (*request).createBucket},
	{"DELETE", "", "", func(*request) (sink.Answer, error) { return sink.Answer{Status: 204}, nil }},
}

var ofObjects = []operation{
	{"PUT", "uploadId", "partNumber", (*request).putPart},
	{"PUT", "", "", (*request).put},
	{"POST", "uploads", "", (*request).createUpload},
	{"POST", "uploadId", "", (*request).completeUpload},
	{"HEAD", "", "versionId partNumber", (*request).head},
	{"DELETE", "uploadId", "", (*request).abortUpload},
	{"DELETE", "", "versionId", (*request).delete},
	{"GET", "", "versionId partNumber", (*request).get},
}

func (r *request) route() (sink.Answer, error) {
	operations := ofObjects
	switch {
	case r.bucket == "":
		return sink.Answer{}, notImplemented("a request needs a bucket")
	case r.key == "":
		operations = ofBuckets
	}
	for _, o := range operations {
		if o.method == r.Method && (o.parameter == "" || r.query.Has(o.parameter)) && r.hasOnly(o.parameter+" "+o.allowed) {
			return o.do(r)
		}
	}
	return sink.Answer{}, notImplemented(r.Method + " ?" + r.URL.RawQuery + " is not known here")
}

// hasOnly reports whether the query has no parameters but those allowed, and those of every request: of a presigned URL, and
// the operation's own name.
func (r *request) hasOnly(allowed string) bool {
	names := strings.Fields(allowed)
	for name := range r.query {
		lower := strings.ToLower(name)
		if lower != "x-id" && !strings.HasPrefix(lower, "x-amz-") && !slices.Contains(names, name) {
			return false
		}
	}
	return true
}

// createBucket agrees. A body that is no configuration is an object of a client that names buckets by the host, and
// whose rows would not be counted.
func (r *request) createBucket() (sink.Answer, error) {
	var configuration struct {
		XMLName xml.Name `xml:"CreateBucketConfiguration"`
	}
	if r.ContentLength != 0 && r.readXML(&configuration) != nil {
		return sink.Answer{}, invalid("InvalidRequest", "terapush sink: name the bucket in the path (path style), or below .localhost")
	}
	return sink.Answer{Status: http.StatusOK, Header: []string{"Location", "/" + url.PathEscape(r.bucket)}}, nil
}

// maxXML bounds a request in XML, in bytes: a list of ten thousand parts with all checksums.
const maxXML = 4 << 20

func (r *request) readXML(to any) error {
	err := xml.NewDecoder(http.MaxBytesReader(nil, r.Body, maxXML)).Decode(to)
	if err != nil {
		return invalid("MalformedXML", "terapush sink: "+err.Error())
	}
	return nil
}

// namespace of the answers.
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// empty is an answer without content: the location of us-east-1, or no versioning.
func empty(name string) any {
	return struct {
		XMLName xml.Name
		NS      string `xml:"xmlns,attr"`
	}{xml.Name{Local: name}, namespace}
}

func answerXML(status int, value any, header ...string) sink.Answer {
	text, err := xml.Marshal(value)
	if err != nil {
		panic(err) // values of our own
	}
	return sink.Answer{Status: status, Type: "application/xml", Body: append([]byte(xml.Header), text...), Header: header}
}
