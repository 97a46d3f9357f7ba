// Package bucket is one S3 bucket in memory, as far as a staged load speaks to it: list, put, get, delete, and what is
// asked about the bucket, which has neither versions nor rules. It checks no signature; package objstore is tested against a real server.
package bucket

import (
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/terapush/terapush/pkg/loader"
)

// Name is the bucket's name.
const Name = "bucket"

// Bucket is a running server.
type Bucket struct {
	server *httptest.Server

	mu       sync.Mutex
	objects  map[string]string
	versions bool
}

// region is where the bucket says it is.
const region = "eu-central-1"

// Start serves on a loopback port until Close.
func Start() *Bucket {
	b := &Bucket{objects: make(map[string]string)}
	b.server = httptest.NewServer(b)
	return b
}

// Close stops the server.
func (b *Bucket) Close() { b.server.Close() }

// Target names the folder "in" of the bucket.
func (b *Bucket) Target() *loader.Target {
	return &loader.Target{
		Scheme: "s3", Hosts: []string{Name}, Database: "in",
		Params: url.Values{"endpoint": {b.server.URL}, "region": {region}, "path_style": {"true"}},
	}
}

// Keys lists what is in the bucket.
func (b *Bucket) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.objects))
}

// Get reads an object; "" if there is none.
func (b *Bucket) Get(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key]
}

// KeepVersions switches versioning on, as far as the bucket is asked for it.
func (b *Bucket) KeepVersions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.versions = true
}

type listing struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	Name     string
	Contents []struct {
		Key  string
		Size int
	}
}

type deletion struct {
	Object []struct{ Key string }
}

// ServeHTTP answers with path-style addresses.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+Name), "/")
	switch {
	case r.Method == http.MethodHead && key == "":
		w.Header().Set("X-Amz-Bucket-Region", region)
	case r.Method == http.MethodGet && key == "" && b.aboutItself(w, r.URL.Query()):
	case r.Method == http.MethodPut:
		b.objects[key] = string(body)
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		var d deletion
		if err := xml.Unmarshal(body, &d); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, o := range d.Object {
			delete(b.objects, o.Key)
		}
		_, _ = io.WriteString(w, "<DeleteResult/>")
	case r.Method == http.MethodGet && key == "":
		l := listing{Name: Name}
		for _, k := range slices.Sorted(maps.Keys(b.objects)) {
			if strings.HasPrefix(k, r.URL.Query().Get("prefix")) {
				l.Contents = append(l.Contents, struct {
					Key  string
					Size int
				}{k, len(b.objects[k])})
			}
		}
		_ = xml.NewEncoder(w).Encode(l)
	case r.Method == http.MethodGet:
		text, found := b.objects[key]
		if !found {
			http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, text)
	default:
		http.Error(w, "", http.StatusNotImplemented)
	}
}

// aboutItself answers what is asked about the bucket and not about what is in it.
func (b *Bucket) aboutItself(w http.ResponseWriter, q url.Values) (asked bool) {
	switch {
	case q.Has("versioning") && b.versions:
		_, _ = io.WriteString(w, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
	case q.Has("versioning"):
		_, _ = io.WriteString(w, "<VersioningConfiguration/>")
	case q.Has("lifecycle"):
		http.Error(w, "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>", http.StatusNotFound)
	case q.Has("object-lock"):
		http.Error(w, "<Error><Code>ObjectLockConfigurationNotFoundError</Code></Error>", http.StatusNotFound)
	default:
		return false
	}
	return true
}
