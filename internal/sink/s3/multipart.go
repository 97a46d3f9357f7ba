package s3

import (
	"container/list"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/sink/web"
)

// Bounds of what is remembered of uploads that are neither completed nor aborted. The oldest is forgotten.
const (
	maxUploads = 1000
	maxParts   = 200_000 // of all together; one has 10,000 at most
	maxPart    = 10_000
)

// upload is an object that comes in parts.
type upload struct {
	id, bucket, key string
	fields          []string
	parts           map[int]part
}

type part struct {
	taken
	etag string
}

// uploads are those that are open.
type uploads struct {
	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of *upload, the oldest first
	parts int       // of all
}

func (u *uploads) open(one *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[string]*list.Element{}
	}
	u.known[one.id] = u.order.PushBack(one)
	u.bound()
}

func (u *uploads) bound() {
	for u.order.Len() > maxUploads || u.parts > maxParts {
		u.forget(u.order.Front().Value.(*upload).id)
	}
}

func (u *uploads) forget(id string) {
	if e, found := u.known[id]; found {
		u.parts -= len(e.Value.(*upload).parts)
		u.order.Remove(e)
		delete(u.known, id)
	}
}

// find returns the upload, which only the holder of the lock may look into.
func (u *uploads) find(id, bucket, key string) (*upload, error) {
	e, found := u.known[id]
	if !found || e.Value.(*upload).bucket != bucket || e.Value.(*upload).key != key {
		return nil, &refusal{http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. It may have been completed, aborted or, among too many, forgotten."}
	}
	return e.Value.(*upload), nil
}

// there reports whether an upload is open.
func (u *uploads) there(id, bucket, key string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := u.find(id, bucket, key)
	return err
}

func (u *uploads) add(id, bucket, key string, number int, p part) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	one, err := u.find(id, bucket, key)
	if err != nil {
		return err
	}
	if _, again := one.parts[number]; !again {
		u.parts++
	}
	one.parts[number] = p
	u.bound()
	return nil
}

// complete ends an upload with the parts named, in order.
func (u *uploads) complete(id, bucket, key string, named []namedPart) (one *upload, parts []part, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one, err = u.find(id, bucket, key); err != nil {
		return nil, nil, err
	}
	before := 0
	for _, n := range named {
		p, found := one.parts[n.Number]
		switch {
		case n.Number <= before:
			return nil, nil, &refusal{http.StatusBadRequest, "InvalidPartOrder", "The list of parts was not in ascending order."}
		case !found || strings.Trim(p.etag, `"`) != strings.Trim(n.ETag, `"`):
			return nil, nil, &refusal{http.StatusBadRequest, "InvalidPart", "part " + strconv.Itoa(n.Number) + " was not uploaded, or has another ETag"}
		}
		before = n.Number
		parts = append(parts, p)
	}
	u.forget(id)
	return one, parts, nil
}

func (u *uploads) abort(id, bucket, key string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err := u.find(id, bucket, key)
	if err == nil {
		u.forget(id)
	}
	return err
}

// putPart takes a part.
func (r *request) putPart() error {
	if err := r.only("UploadPart", "uploadId", "partNumber"); err != nil {
		return err
	}
	id := r.query.Get("uploadId")
	number, err := strconv.Atoi(r.query.Get("partNumber"))
	if err != nil || number < 1 || number > maxPart {
		return &refusal{http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive."}
	}
	if err := r.store.uploads.there(id, r.bucket, r.key); err != nil {
		return err
	}
	took, err := r.take(true)
	if err != nil {
		return err
	}
	etag := `"` + r.store.number() + `"`
	proven := took.proven
	took.proven = nil
	if err := r.store.uploads.add(id, r.bucket, r.key, number, part{took, etag}); err != nil {
		return err
	}
	r.Count.Loaded(took.size, 0)
	return r.Answer(http.StatusOK, "", nil, append([]string{"ETag", etag}, proven...)...)
}

// post begins or ends an upload.
func (r *request) post() error {
	switch {
	case r.query.Has("uploads"):
		return r.begin()
	case r.query.Has("uploadId"):
		return r.complete()
	}
	return notHere("POST begins and ends uploads in parts, and nothing else")
}

func (r *request) begin() error {
	if err := r.only("CreateMultipartUpload", "uploads"); err != nil {
		return err
	}
	fields, err := r.metadata()
	if err != nil {
		return err
	}
	one := &upload{id: "upload-" + r.store.number(), bucket: r.bucket, key: r.key, fields: fields, parts: map[int]part{}}
	r.store.uploads.open(one)
	return r.xml(http.StatusOK, struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		NS       string   `xml:"xmlns,attr"`
		Bucket   string
		Key      string
		UploadId string //nolint:revive // the element's name
	}{NS: namespace, Bucket: r.bucket, Key: r.key, UploadId: one.id})
}

type namedPart struct {
	Number int    `xml:"PartNumber"`
	ETag   string `xml:"ETag"`
}

// longestList bounds the list of an upload's parts, or of keys to delete, in bytes: ten thousand with all checksums.
const longestList = 4 << 20

func (r *request) complete() error {
	if err := r.only("CompleteMultipartUpload", "uploadId"); err != nil {
		return err
	}
	var named []namedPart
	err := r.elements("Part", maxPart, func(read func(any) error) error {
		var p namedPart
		err := read(&p)
		named = append(named, p)
		return err
	})
	if err != nil {
		return err
	}
	if len(named) == 0 {
		return malformedXML("an upload has at least one part")
	}
	one, parts, err := r.store.uploads.complete(r.query.Get("uploadId"), r.bucket, r.key, named)
	if err != nil {
		return err
	}
	o := &object{bucket: r.bucket, key: r.key, at: time.Now(), fields: one.fields, etag: `"` + r.store.number() + "-" + strconv.Itoa(len(parts)) + `"`}
	pieces := make([]web.Piece, len(parts))
	var rows int64
	for i, p := range parts {
		o.size += p.size
		rows += p.rows
		pieces[i] = p.piece
	}
	if r.Counting() { // a line may begin in one part and end in another
		rows = web.RowsOf(pieces...)
	}
	r.store.objects.put(o)
	r.Count.Loaded(0, rows)
	return r.xml(http.StatusOK, struct {
		XMLName  xml.Name `xml:"CompleteMultipartUploadResult"`
		NS       string   `xml:"xmlns,attr"`
		Location string
		Bucket   string
		Key      string
		ETag     string
	}{NS: namespace, Location: r.URL.Path, Bucket: r.bucket, Key: r.key, ETag: o.etag})
}

func (r *request) abort() error {
	if err := r.only("AbortMultipartUpload", "uploadId"); err != nil {
		return err
	}
	if err := r.store.uploads.abort(r.query.Get("uploadId"), r.bucket, r.key); err != nil {
		return err
	}
	return r.Answer(http.StatusNoContent, "", nil)
}

func malformedXML(why string) error {
	return &refusal{http.StatusBadRequest, "MalformedXML", "terapush sink: " + why}
}

// elements reads the body's elements of a name one by one, so that a list is never there as a tree.
func (r *request) elements(name string, most int, f func(read func(any) error) error) error {
	body := &io.LimitedReader{R: r.Content, N: longestList}
	d := xml.NewDecoder(body)
	for n := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && body.N > 0 {
			return nil
		}
		var broken *web.Malformed
		if err != nil && !errors.As(err, &broken) {
			return malformedXML("the list cannot be read, or is longer than 4 MiB")
		}
		if err != nil {
			return err
		}
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != name {
			continue
		}
		if n++; n > most {
			return malformedXML("the list is too long")
		}
		if err := f(func(to any) error { return d.DecodeElement(to, &start) }); err != nil {
			return malformedXML("the list cannot be read")
		}
	}
}
