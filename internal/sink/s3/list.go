package s3

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// list answers what is asked of a bucket by GET: its objects, where it is, whether it keeps versions.
func (r *request) list() error {
	switch {
	case r.query.Has("location"):
		return r.xml(http.StatusOK, struct {
			XMLName xml.Name `xml:"LocationConstraint"` // that of us-east-1 is empty
			NS      string   `xml:"xmlns,attr"`
		}{NS: namespace})
	case r.query.Has("versioning"):
		return r.xml(http.StatusOK, struct {
			XMLName xml.Name `xml:"VersioningConfiguration"`
			NS      string   `xml:"xmlns,attr"`
		}{NS: namespace})
	}
	err := r.only("ListObjects", "list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after", "marker",
		"encoding-type", "fetch-owner")
	if err != nil {
		return err
	}
	after, err := r.after()
	if err != nil {
		return err
	}
	most := maxKeys
	if text := r.query.Get("max-keys"); text != "" {
		if most, err = strconv.Atoi(text); err != nil || most < 0 {
			return &refusal{http.StatusBadRequest, "InvalidArgument", "max-keys is a number"}
		}
	}
	return r.xml(http.StatusOK, r.page(after, min(most, maxKeys)))
}

// maxKeys is the most that a listing has.
const maxKeys = 1000

// after returns the name behind which a page begins.
func (r *request) after() (string, error) {
	if token := r.query.Get("continuation-token"); token != "" {
		name, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return "", &refusal{http.StatusBadRequest, "InvalidArgument", "The continuation token provided is incorrect"}
		}
		return string(name), nil
	}
	if r.query.Get("list-type") == "2" {
		return r.query.Get("start-after"), nil
	}
	return r.query.Get("marker"), nil
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	NS                    string   `xml:"xmlns,attr"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	StartAfter            string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Marker                *string
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

// page lists the remembered objects behind a name. What has a delimiter behind the prefix is one entry with all that
// begins like it.
func (r *request) page(after string, most int) listing {
	prefix, delimiter := r.query.Get("prefix"), r.query.Get("delimiter")
	escape := func(s string) string { return s }
	if r.query.Get("encoding-type") == "url" {
		escape = func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }
	}
	l := listing{
		NS: namespace, Name: r.bucket, Prefix: escape(prefix), Delimiter: escape(delimiter), MaxKeys: most,
		EncodingType: r.query.Get("encoding-type"), StartAfter: escape(r.query.Get("start-after")),
		ContinuationToken: r.query.Get("continuation-token"),
	}
	last, group := after, ""
	for _, o := range r.store.objects.below(r.bucket, prefix, after) {
		if group != "" && strings.HasPrefix(o.key, group) || delimiter != "" && strings.HasSuffix(after, delimiter) && strings.HasPrefix(o.key, after) {
			continue
		}
		if l.KeyCount == most {
			l.IsTruncated = most > 0
			break
		}
		l.KeyCount++
		if i := strings.Index(o.key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			group = o.key[:len(prefix)+i+len(delimiter)]
			last = group
			l.CommonPrefixes = append(l.CommonPrefixes, prefixed{escape(group)})
			continue
		}
		last = o.key
		l.Contents = append(l.Contents, listed{
			Key: escape(o.key), LastModified: o.at.UTC().Format(time.RFC3339), ETag: o.etag, Size: o.size, StorageClass: "STANDARD",
		})
	}
	if r.query.Get("list-type") != "2" {
		marker := escape(r.query.Get("marker"))
		l.Marker = &marker
	}
	switch {
	case l.IsTruncated && l.Marker == nil:
		l.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
	case l.IsTruncated:
		l.NextMarker = escape(last)
	}
	return l
}

// listBuckets lists those that remembered objects are in.
func (r *request) listBuckets() error {
	type bucket struct{ Name, CreationDate string }
	var all []bucket
	for _, name := range r.store.objects.buckets() {
		all = append(all, bucket{name, time.Unix(0, 0).UTC().Format(time.RFC3339)})
	}
	return r.xml(http.StatusOK, struct {
		XMLName xml.Name `xml:"ListAllMyBucketsResult"`
		NS      string   `xml:"xmlns,attr"`
		Owner   struct{ ID, DisplayName string }
		Buckets []bucket `xml:"Buckets>Bucket"`
	}{NS: namespace, Owner: struct{ ID, DisplayName string }{"sink", "sink"}, Buckets: all})
}

// removeMany forgets a list of objects.
func (r *request) removeMany() error {
	if !r.query.Has("delete") {
		return notHere("POST to a bucket deletes objects, and nothing else")
	}
	type deleted struct{ Key string }
	var all []deleted
	err := r.elements("Object", maxKeys, func(read func(any) error) error {
		var one deleted
		err := read(&one)
		all = append(all, one)
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		r.store.objects.remove(r.bucket, one.Key)
	}
	return r.xml(http.StatusOK, struct {
		XMLName xml.Name  `xml:"DeleteResult"`
		NS      string    `xml:"xmlns,attr"`
		Deleted []deleted `xml:"Deleted"`
	}{NS: namespace, Deleted: all})
}
