package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// maxPart is the highest number of a part (Amazon S3 user guide).
const maxPart = 10_000

// upload is an object that comes in parts. Among too many that are neither completed nor aborted the oldest is forgotten.
type upload struct {
	object
	id string

	mu    sync.Mutex
	parts map[int]part
}

type part struct {
	taken
	etag string
}

func (r *request) createUpload() (sink.Answer, error) {
	u := &upload{id: "upload-" + r.store.number(), parts: map[int]part{}}
	u.object = object{bucket: r.bucket, key: r.key, metadata: r.metadata()}
	r.store.uploads.Put(u.id, u)
	return answerXML(http.StatusOK, struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		NS       string   `xml:"xmlns,attr"`
		Bucket   string
		Key      string
		UploadId string //nolint:revive // the element's name
	}{NS: namespace, Bucket: r.bucket, Key: r.key, UploadId: u.id}), nil
}

// upload returns the one that the request names.
func (r *request) upload() (*upload, error) {
	u, found := r.store.uploads.Find(r.query.Get("uploadId"))
	if !found || u.bucket != r.bucket || u.key != r.key {
		return nil, &apiError{http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. It may have been completed, aborted or, among too many, forgotten."}
	}
	return u, nil
}

func (r *request) putPart() (sink.Answer, error) {
	number, err := strconv.Atoi(r.query.Get("partNumber"))
	if err != nil || number < 1 || number > maxPart {
		return sink.Answer{}, invalid("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive.")
	}
	u, err := r.upload()
	if err != nil {
		return sink.Answer{}, err
	}
	p := part{etag: `"` + r.store.number() + `"`}
	if p.taken, err = r.take(true); err != nil {
		return sink.Answer{}, err
	}
	u.mu.Lock()
	u.parts[number] = p
	u.mu.Unlock()
	r.conn.Loaded(p.size, 0)
	return sink.Answer{Status: http.StatusOK, Header: []string{"ETag", p.etag}}, nil
}

// completeUpload makes an object of the parts that the request lists.
func (r *request) completeUpload() (sink.Answer, error) {
	u, err := r.upload()
	if err != nil {
		return sink.Answer{}, err
	}
	var asked struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := r.readXML(&asked); err != nil {
		return sink.Answer{}, err
	}
	if len(asked.Part) == 0 {
		return sink.Answer{}, invalid("MalformedXML", "terapush sink: an upload has at least one part")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	o := &object{
		bucket: r.bucket, key: r.key, at: time.Now(), metadata: u.metadata,
		etag: `"` + r.store.number() + "-" + strconv.Itoa(len(asked.Part)) + `"`,
	}
	var pieces []sink.Piece
	var rows int64
	for i, want := range asked.Part {
		p, found := u.parts[want.PartNumber]
		switch {
		case i > 0 && want.PartNumber <= asked.Part[i-1].PartNumber:
			return sink.Answer{}, invalid("InvalidPartOrder", "The list of parts was not in ascending order.")
		case !found || strings.Trim(p.etag, `"`) != strings.Trim(want.ETag, `"`):
			return sink.Answer{}, invalid("InvalidPart", "part "+strconv.Itoa(want.PartNumber)+" was not uploaded, or has another ETag")
		}
		o.size += p.size
		rows += p.rows
		pieces = append(pieces, p.piece)
	}
	if !r.conn.Options.NoCount { // a line may begin in one part and end in another
		rows = sink.RowsOf(pieces...)
	}
	r.store.uploads.Remove(u.id)
	r.store.objects.Put(o.name(), o)
	r.conn.Loaded(0, rows)
	return answerXML(http.StatusOK, struct {
		XMLName  xml.Name `xml:"CompleteMultipartUploadResult"`
		NS       string   `xml:"xmlns,attr"`
		Location string
		Bucket   string
		Key      string
		ETag     string
	}{NS: namespace, Location: r.URL.Path, Bucket: r.bucket, Key: r.key, ETag: o.etag}), nil
}

func (r *request) abortUpload() (sink.Answer, error) {
	u, err := r.upload()
	if err != nil {
		return sink.Answer{}, err
	}
	r.store.uploads.Remove(u.id)
	return sink.Answer{Status: http.StatusNoContent}, nil
}
