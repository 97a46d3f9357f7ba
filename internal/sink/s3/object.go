package s3

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// object is what is remembered of an object.
type object struct {
	size     int64
	etag     string
	at       time.Time
	metadata []string // x-amz-meta-…, names and values in turn
}

// put takes an object.
func (r *request) put() (sink.Answer, error) {
	for _, name := range []string{"X-Amz-Copy-Source", "If-Match", "If-None-Match"} {
		if r.Header.Get(name) != "" {
			return sink.Answer{}, notImplemented("objects are not kept, so there is no " + name)
		}
	}

	var body io.Reader = r.Body
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		// The encoding aws-chunked is that of HTTP, with signatures where HTTP has extensions, and other trailers.
		body = httputil.NewChunkedReader(r.Body)
	}
	size, rows, err := r.conn.Take(body, &sink.Sniffed{})
	if errors.Is(err, sink.ErrTold) {
		return sink.Answer{}, &apiError{
			http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate. " + sink.ErrTold.Error(),
		}
	}
	if err != nil {
		return sink.Answer{}, err
	}
	taken := strconv.FormatInt(size, 10)
	if announced := r.Header.Get("X-Amz-Decoded-Content-Length"); announced != "" && announced != taken {
		return sink.Answer{}, invalid("IncompleteBody",
			"the chunks have "+taken+" bytes, and x-amz-decoded-content-length is "+announced)
	}

	o := &object{size: size, etag: `"` + r.id + `"`, at: time.Now()}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			o.metadata = append(o.metadata, name, values[0])
		}
	}
	r.store.objects.Put(r.bucket+"/"+r.key, o)
	r.conn.Loaded(size, rows)
	return sink.Answer{Status: http.StatusOK, Header: []string{"ETag", o.etag}}, nil
}

func (r *request) head() (sink.Answer, error) {
	o, found := r.store.objects.Find(r.bucket + "/" + r.key)
	if !found {
		return sink.Answer{Status: http.StatusNotFound}, nil
	}
	return sink.Answer{Status: http.StatusOK, Header: slices.Concat([]string{
		"Content-Length", strconv.FormatInt(o.size, 10), "ETag", o.etag, "Last-Modified", o.at.UTC().Format(http.TimeFormat),
	}, o.metadata)}, nil
}

// delete forgets an object.
func (r *request) delete() (sink.Answer, error) {
	r.store.objects.Remove(r.bucket + "/" + r.key)
	return sink.Answer{Status: http.StatusNoContent}, nil
}

// maxKeys is the most that a page of a listing has.
const maxKeys = 1000

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	NextContinuationToken string   `xml:",omitempty"`
	KeyCount              int
	IsTruncated           bool
	Contents              []listed
}

type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
}

// list lists the objects that are remembered, by key, in pages. A page goes on behind the key of its token.
func (r *request) list() (sink.Answer, error) {
	after, err := base64.URLEncoding.DecodeString(r.query.Get("continuation-token"))
	if err != nil {
		return sink.Answer{}, invalid("InvalidArgument", "The continuation token provided is incorrect")
	}
	if len(after) == 0 {
		after = []byte(r.query.Get("start-after"))
	}
	most := maxKeys
	if n, err := strconv.Atoi(r.query.Get("max-keys")); err == nil {
		most = max(1, min(n, maxKeys))
	}

	var l listing
	for _, name := range r.store.objects.Below(r.bucket + "/" + r.query.Get("prefix")) {
		key := name[len(r.bucket)+1:]
		o, found := r.store.objects.Find(name)
		if !found || key <= string(after) {
			continue
		}
		if l.KeyCount == most {
			l.IsTruncated, l.NextContinuationToken = true, base64.URLEncoding.EncodeToString(after)
			break
		}
		l.KeyCount, after = l.KeyCount+1, []byte(key)
		l.Contents = append(l.Contents, listed{key, o.at.UTC().Format(time.RFC3339), o.etag, o.size})
	}
	return answerXML(http.StatusOK, l), nil
}
