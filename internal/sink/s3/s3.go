// Package s3 is a sink that speaks the uploading side of Amazon S3: objects are put whole, counted and forgotten. Every
// bucket exists, and is named in the path.
//
//   - Rows of an object are its lines, or what the footer of a Parquet file says.
//   - Names and sizes of objects are remembered, for HEAD and listings. Their content is not: GET is refused, and so
//     are copies and uploads in parts, whose lines may begin in one part and end in another.
//   - An ETag is a number and no MD5, which would cost more time than everything else. Clients that take it for one
//     look for 32 hexadecimal digits, of which it has fewer.
//   - Signatures, and the checksums that clients declare, are not looked at.
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
	objects  sink.Shelf[*object] // by bucket/key
	requests atomic.Int64        // so far
}

// request is one request.
type request struct {
	*http.Request
	conn        *sink.Conn
	store       *store
	id          string // a number, also of the object
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
	r := &request{Request: hr, conn: c, store: s, id: strconv.FormatInt(s.requests.Add(1), 10), query: hr.URL.Query()}
	r.bucket, r.key, _ = strings.Cut(strings.TrimPrefix(hr.URL.Path, "/"), "/")

	a, err := r.route()
	if err == nil {
		return a
	}

	e := &apiError{http.StatusBadRequest, "IncompleteBody", "terapush sink: " + err.Error()}
	errors.As(err, &e)
	a = answerXML(e.status, struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: e.code, Message: e.message})
	a.Header = []string{"X-Amz-Request-Id", r.id}
	return a
}

// operation is what a method does with a bucket or an object, where the query has the parameter that names it, and none
// but those and the ones allowed: a ?uploadId or ?tagging would make it another.
type operation struct {
	method, parameter, allowed string
	do                         func(*request) (sink.Answer, error)
}

var ofBuckets = []operation{
	{"HEAD", "", "", func(*request) (sink.Answer, error) { return sink.Answer{Status: http.StatusOK}, nil }},
	{"GET", "list-type", "prefix max-keys continuation-token start-after", (*request).list},
	{"GET", "versioning", "", noVersioning},
}

var ofObjects = []operation{
	{"PUT", "", "", (*request).put},
	{"HEAD", "", "", (*request).head},
	{"DELETE", "", "", (*request).delete},
}

func (r *request) route() (sink.Answer, error) {
	operations, of := ofObjects, "an object"
	if r.key == "" {
		operations, of = ofBuckets, "a bucket (name it in the path)"
	}
	for _, o := range operations {
		if o.method == r.Method && (o.parameter == "" || r.query.Has(o.parameter)) && r.hasOnly(o.parameter+" "+o.allowed) {
			return o.do(r)
		}
	}
	what := r.Method
	if r.URL.RawQuery != "" {
		what += " ?" + r.URL.RawQuery
	}
	return sink.Answer{}, notImplemented("objects are put whole, counted and forgotten: there is no " + what + " of " + of)
}

// hasOnly reports whether the query has no parameters but those allowed, and those of every request.
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

func noVersioning(*request) (sink.Answer, error) {
	return answerXML(http.StatusOK, struct {
		XMLName xml.Name `xml:"VersioningConfiguration"`
	}{}), nil
}

func answerXML(status int, value any) sink.Answer {
	text, err := xml.Marshal(value)
	if err != nil {
		panic(err) // values of our own
	}
	return sink.Answer{Status: status, Type: "application/xml", Body: append([]byte(xml.Header), text...)}
}
