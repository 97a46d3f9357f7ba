package s3

import (
	"bytes"
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// put takes an object, or a part of one.
func (r *request) put() error {
	for _, name := range []string{"X-Amz-Copy-Source", "If-Match", "If-None-Match"} {
		if r.Header.Get(name) != "" {
			return notHere("objects are not kept, so there is no " + name)
		}
	}
	if r.query.Has("uploadId") {
		return r.putPart()
	}
	if err := r.only("PutObject"); err != nil {
		return err
	}
	one := &object{bucket: r.bucket, key: r.key, at: time.Now(), etag: `"` + r.store.number() + `"`}
	var err error
	if one.fields, err = r.metadata(); err != nil {
		return err
	}
	took, err := r.take(false)
	if err != nil {
		return err
	}
	one.size = took.size
	r.store.objects.put(one)
	r.Count.Loaded(took.size, took.rows)
	return r.Answer(http.StatusOK, "", nil, append([]string{"ETag", one.etag}, took.proven...)...)
}

// maxMetadata bounds a user's metadata (Amazon S3 user guide), in bytes.
const maxMetadata = 2 << 10

func (r *request) metadata() (fields []string, err error) {
	size := 0
	for name, values := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-meta-") {
			fields = append(fields, lower, values[0])
			size += len(lower) + len(values[0])
		}
	}
	if size > maxMetadata {
		return nil, &refusal{http.StatusBadRequest, "MetadataTooLarge", "metadata has at most 2 KiB"}
	}
	return fields, nil
}

// taken is what a body was.
type taken struct {
	size, rows int64
	piece      web.Piece // where it was counted
	proven     []string  // checksums that are right, as header fields
}

// content counts and compares.
type content struct {
	web.Sniffed
	digests []*digest
}

func (c *content) Write(p []byte) {
	c.Sniffed.Write(p)
	for _, d := range c.digests {
		d.hash.Write(p)
	}
}

// Rows returns the number of rows, at the end of a load. One whose checksum is wrong is an error.
func (c *content) Rows() (int64, error) {
	for _, d := range c.digests {
		if err := d.compare(); err != nil {
			return 0, err
		}
	}
	return c.Sniffed.Rows()
}

// take takes the body in. Of a part that may be the last of a Parquet file the end is kept.
func (r *request) take(part bool) (t taken, err error) {
	c := &content{}
	c.Tail = part && strings.HasSuffix(r.key, ".parquet")
	if r.Stream.Options.CRC && r.Counting() {
		if c.digests, err = declared(r.Header); err != nil {
			return t, err
		}
	}
	load := r.Stream.Load(c)
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		err = r.takeChunks(load, c)
	} else {
		_, err = r.Content.TakeAll(load)
	}
	if err != nil {
		load.GiveUp()
		return t, err
	}
	t.size, t.rows, err = load.End()
	if errors.Is(err, sink.ErrTold) {
		err = &refusal{http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate. " + sink.ErrTold.Error()}
	}
	t.piece = c.Piece()
	for _, d := range c.digests {
		t.proven = append(t.proven, d.proven()...)
	}
	return t, err
}

// takeChunks takes a body in aws-chunked encoding (Amazon S3 API reference, "Signature calculations for the
// Authorization header: transferring payload in multiple chunks").
func (r *request) takeChunks(load *sink.Load, c *content) error {
	var size int64
	for {
		line, err := r.Content.Line()
		if err != nil {
			return err
		}
		n, err := web.ChunkSize(line)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		took, err := r.Content.Take(load, n)
		if err != nil {
			return err
		}
		if size += took; took < n {
			return incomplete("a chunk is shorter than its size")
		}
		if line, err = r.Content.Line(); err != nil {
			return err
		} else if len(line) > 0 {
			return incomplete("a chunk is longer than its size")
		}
	}
	if said := r.Header.Get("X-Amz-Decoded-Content-Length"); said != "" && said != strconv.FormatInt(size, 10) {
		return incomplete("the chunks have " + strconv.FormatInt(size, 10) + " bytes, and x-amz-decoded-content-length is " + said)
	}
	trailers, err := r.trailers()
	if err != nil {
		return err
	}
	for _, d := range c.digests {
		if err := d.trailer(trailers); err != nil {
			return err
		}
	}
	return nil
}

func incomplete(message string) error {
	return &refusal{http.StatusBadRequest, "IncompleteBody", message}
}

// maxTrailers is more than there are checksums and signatures.
const maxTrailers = 16

// trailers reads what is behind the last chunk, up to an empty line or the end of the body: clients differ.
func (r *request) trailers() (textproto.MIMEHeader, error) {
	all := textproto.MIMEHeader{}
	for range maxTrailers {
		if more, err := r.Content.More(); err != nil || !more {
			return all, err
		}
		line, err := r.Content.Line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if more, err := r.Content.More(); err != nil || !more {
				return all, err
			}
			return nil, incomplete("something follows the last chunk")
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		all.Set(string(bytes.TrimSpace(name)), string(bytes.TrimSpace(value)))
	}
	return nil, &refusal{http.StatusBadRequest, "MalformedTrailerError", "there are more trailers than checksums"}
}

// head answers for an object that is remembered.
func (r *request) head() error {
	if err := r.only("HeadObject", "versionId", "partNumber"); err != nil {
		return err
	}
	one, found := r.store.objects.find(r.bucket, r.key)
	if !found {
		return r.Answer(http.StatusNotFound, "", nil)
	}
	return r.Answer(http.StatusOK, "", nil, slices.Concat([]string{
		"Content-Length", strconv.FormatInt(one.size, 10), "ETag", one.etag,
		"Last-Modified", one.at.UTC().Format(http.TimeFormat), "Accept-Ranges", "none",
	}, one.fields)...)
}

// get refuses, in other words for an object that is not there.
func (r *request) get() error {
	_, found := r.store.objects.find(r.bucket, r.key)
	if !found && r.Method == http.MethodGet && r.only("GetObject", "versionId", "partNumber") == nil {
		return &refusal{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	}
	return notHere("objects are counted and forgotten, so nothing can be read or asked of them")
}

// remove forgets an object, or an upload.
func (r *request) remove() error {
	if r.query.Has("uploadId") {
		return r.abort()
	}
	if err := r.only("DeleteObject", "versionId"); err != nil {
		return err
	}
	r.store.objects.remove(r.bucket, r.key)
	return r.Answer(http.StatusNoContent, "", nil)
}
