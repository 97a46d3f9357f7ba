package s3

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// object is what is remembered of an object.
type object struct {
	bucket, key string
	size        int64
	etag        string
	at          time.Time
	metadata    []string // x-amz-meta-…, names and values in turn
}

func (o *object) name() string { return o.bucket + "/" + o.key }

// put takes an object.
func (r *request) put() (sink.Answer, error) {
	for _, name := range []string{"X-Amz-Copy-Source", "If-Match", "If-None-Match"} {
		if r.Header.Get(name) != "" {
			return sink.Answer{}, notImplemented("objects are not kept, so there is no " + name)
		}
	}
	o := &object{bucket: r.bucket, key: r.key, at: time.Now(), etag: `"` + r.store.number() + `"`, metadata: r.metadata()}
	t, err := r.take(false)
	if err != nil {
		return sink.Answer{}, err
	}
	o.size = t.size
	r.store.objects.Put(o.name(), o)
	r.conn.Loaded(t.size, t.rows)
	return sink.Answer{Status: http.StatusOK, Header: []string{"ETag", o.etag}}, nil
}

func (r *request) metadata() (fields []string) {
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			fields = append(fields, name, values[0])
		}
	}
	return fields
}

// taken is what a body was.
type taken struct {
	size, rows int64
	piece      sink.Piece // where it was counted
}

// take takes the body in. Of a part that may be the last of a Parquet file the end is kept.
func (r *request) take(part bool) (t taken, err error) {
	count := &sink.Sniffed{Tail: part && strings.HasSuffix(r.key, ".parquet")}
	var body io.Reader = r.Body
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		// The encoding aws-chunked is that of HTTP, with signatures where HTTP has extensions, and other trailers.
		body = httputil.NewChunkedReader(r.Body)
	}
	t.size, t.rows, err = r.conn.Take(body, count)
	if errors.Is(err, sink.ErrTold) {
		err = &apiError{http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate. " + sink.ErrTold.Error()}
	}
	if length := r.Header.Get("X-Amz-Decoded-Content-Length"); err == nil && length != "" && length != strconv.FormatInt(t.size, 10) {
		err = invalid("IncompleteBody", "the chunks have "+strconv.FormatInt(t.size, 10)+" bytes, and x-amz-decoded-content-length is "+length)
	}
	t.piece = count.Piece()
	return t, err
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

// get refuses, in other words for an object that is not there.
func (r *request) get() (sink.Answer, error) {
	if _, found := r.store.objects.Find(r.bucket + "/" + r.key); !found {
		return sink.Answer{}, &apiError{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	}
	return sink.Answer{}, notImplemented("objects are counted and forgotten, so none can be read")
}

// delete forgets an object.
func (r *request) delete() (sink.Answer, error) {
	r.store.objects.Remove(r.bucket + "/" + r.key)
	return sink.Answer{Status: http.StatusNoContent}, nil
}

// deleteObjects forgets a list of objects.
func (r *request) deleteObjects() (sink.Answer, error) {
	var asked struct {
		Object []struct{ Key string }
	}
	if err := r.readXML(&asked); err != nil {
		return sink.Answer{}, err
	}
	for _, o := range asked.Object {
		r.store.objects.Remove(r.bucket + "/" + o.Key)
	}
	return answerXML(http.StatusOK, struct {
		XMLName xml.Name `xml:"DeleteResult"`
		NS      string   `xml:"xmlns,attr"`
		Deleted any
	}{NS: namespace, Deleted: asked.Object}), nil
}

// maxKeys is the most that a listing has.
const maxKeys = 1000

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	NS                    string   `xml:"xmlns,attr"`
	Name                  string
	Prefix                string
	EncodingType          string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	NextMarker            string `xml:",omitempty"`
	KeyCount              int
	MaxKeys               int
	IsTruncated           bool
	Contents              []listed
	CommonPrefixes        []prefixed
}

type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
}

type prefixed struct{ Prefix string }

// list lists the objects that are remembered, by key. Those with a delimiter behind the prefix are one entry for all that
// begin alike.
func (r *request) list() (sink.Answer, error) {
	after := r.query.Get("start-after") + r.query.Get("marker")
	if token := r.query.Get("continuation-token"); token != "" {
		name, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return sink.Answer{}, invalid("InvalidArgument", "The continuation token provided is incorrect")
		}
		after = string(name)
	}
	prefix, delimiter := r.query.Get("prefix"), r.query.Get("delimiter")
	l := listing{NS: namespace, Name: r.bucket, EncodingType: r.query.Get("encoding-type"), MaxKeys: maxKeys}
	if n, err := strconv.Atoi(r.query.Get("max-keys")); err == nil {
		l.MaxKeys = max(0, min(n, maxKeys))
	}
	escape := func(s string) string { return s }
	if l.EncodingType == "url" {
		escape = func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }
	}
	l.Prefix = escape(prefix)
	last := after
	for _, o := range r.below(prefix, after) {
		entry := o.key
		if i := strings.Index(o.key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			entry = o.key[:len(prefix)+i+len(delimiter)]
		}
		if entry == last { // of a group that is listed
			continue
		}
		if l.KeyCount == l.MaxKeys {
			l.IsTruncated = l.MaxKeys > 0
			break
		}
		l.KeyCount++
		last = entry
		if entry != o.key {
			l.CommonPrefixes = append(l.CommonPrefixes, prefixed{escape(entry)})
			continue
		}
		l.Contents = append(l.Contents, listed{escape(o.key), o.at.UTC().Format(time.RFC3339), o.etag, o.size, "STANDARD"})
	}
	if l.IsTruncated {
		l.NextContinuationToken, l.NextMarker = base64.URLEncoding.EncodeToString([]byte(last)), escape(last)
	}
	return answerXML(http.StatusOK, l), nil
}

// below returns the bucket's objects whose keys begin with prefix and come behind after.
func (r *request) below(prefix, after string) []*object {
	all := r.store.objects.Where(func(o *object) bool {
		return o.bucket == r.bucket && strings.HasPrefix(o.key, prefix) && o.key > after
	})
	slices.SortFunc(all, func(a, b *object) int { return strings.Compare(a.key, b.key) })
	return all
}
