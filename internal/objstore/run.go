package objstore

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Run is the objects of one run. It is safe for concurrent use.
type Run struct {
	store  *Store
	folder string // with a slash at its end
	err    error  // of an id that cannot be a folder; every method returns it
}

// Object is an entry of a listing.
type Object struct {
	Name   string // the key within the bucket
	Number int64  // of the batch; −1: the name is not that of a batch
	Bytes  int64
	ETag   string // another one if the object is written again
}

// Run returns the objects of a run. The id is a single path segment.
func (s *Store) Run(run string) *Run {
	r := &Run{store: s, folder: s.under() + run + "/"}
	special := func(c rune) bool { return c <= ' ' || c == '/' || c >= 0x7f }
	if run == "." || !fs.ValidPath(run) || strings.ContainsFunc(run, special) {
		r.err = fmt.Errorf("objstore: %q cannot be the name of a folder", run)
	}
	return r
}

// Folder is where the run's objects are within the bucket, with a slash at its end.
func (r *Run) Folder() string { return r.folder }

// digits of a batch number in an object's name, so that names sort like numbers.
const digits = 12

// Name is the key of a batch within the bucket.
func (r *Run) Name(number int64, f batch.Format) string {
	return fmt.Sprintf("%s%0*d.%s", r.folder, digits, number, f)
}

// number is the batch of a Name; −1 for every other name.
func (r *Run) number(name string) int64 {
	rest, inside := strings.CutPrefix(name, r.folder)
	text, format, found := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	f := batch.Format(format)
	if !inside || !found || err != nil || n < 0 || !slices.Contains(batch.Formats(), f) || r.Name(n, f) != name {
		return -1
	}
	return n
}

// Put stores the batch as one object, in place of one with its name, and returns once the server has it. The bytes are
// not copied. An object that is put again is measured afterwards: see measure.
func (r *Run) Put(ctx context.Context, b *batch.Batch) error {
	name := r.Name(b.ID.Number, b.Format)
	if r.err != nil {
		return r.err
	}

	size := int64(len(b.Encoded))
	_, err := r.store.client.PutObject(ctx,
		&s3.PutObjectInput{
			Bucket: &r.store.bucket, Key: &name, Body: payload(size), ContentLength: &size,
			Metadata: map[string]string{metadata: describe(b.First, b.Rows, size)},
		},
		func(o *s3.Options) { o.HTTPClient = &sender{http: r.store.http, batch: b} })
	if err != nil {
		return failed("put "+name, err)
	}
	if b.Attempt > 1 {
		return r.measure(ctx, name, size)
	}
	return nil
}

// measure compares the length of an object with what was put. Amazon shows an object whole or not at all. But some
// servers keep what has arrived of a PUT whose connection broke, and write it when they notice, under the same name and
// perhaps after the PUT that repeats it. If that came before measure, the batch is put once more. What comes later only
// a count of the rows finds, as databases make it for every commit.
//
// It is a listing and not a HEAD: Open has shown that the credentials may list; the right to read objects may be the
// database's alone.
func (r *Run) measure(ctx context.Context, name string, size int64) error {
	op := "measure " + name
	page, err := r.store.client.ListObjectsV2(ctx,
		&s3.ListObjectsV2Input{Bucket: &r.store.bucket, Prefix: &name, MaxKeys: aws.Int32(1)})
	if err != nil {
		f := read(err)
		return &loader.Error{Op: op, Applied: loader.Unknown, Err: f, Hint: f.fault().Hint}
	}
	found := int64(-1)
	if len(page.Contents) > 0 && aws.ToString(page.Contents[0].Key) == name { // of all names with this prefix it sorts first
		found = aws.ToInt64(page.Contents[0].Size)
	}
	if found != size {
		return failed(op, &lengthError{found, size})
	}
	return nil
}

// lengthError says that an object has another length than what was put; found is −1 where there is none.
type lengthError struct{ found, put int64 }

func (e *lengthError) Error() string {
	if e.found < 0 {
		return fmt.Sprintf("%d bytes were put, and no object is there", e.put)
	}
	return fmt.Sprintf("%d bytes were put, and the object has %d", e.put, e.found)
}

// Holds reports whether the object of a batch is there, with all its rows and bytes.
func (r *Run) Holds(ctx context.Context, ref loader.Ref, f batch.Format) (bool, error) {
	if r.err != nil {
		return false, r.err
	}
	name := r.Name(ref.ID.Number, f)
	head, err := r.store.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &r.store.bucket, Key: &name})
	if err != nil {
		if read(err).status == http.StatusNotFound {
			return false, nil
		}
		return false, failed("look for "+name, err)
	}
	return head.Metadata[metadata] == describe(ref.First, ref.Rows, aws.ToInt64(head.ContentLength)), nil
}

// metadata says what an object should hold: x-amz-meta-terapush.
const metadata = "terapush"

func describe(first, rows, bytes int64) string {
	return fmt.Sprintf("first=%d,rows=%d,bytes=%d", first, rows, bytes)
}

// List calls f with every object in the run's folder, in the order of their names, until f returns an error.
func (r *Run) List(ctx context.Context, f func(Object) error) error {
	if r.err != nil {
		return r.err
	}
	in := &s3.ListObjectsV2Input{Bucket: &r.store.bucket, Prefix: &r.folder}
	pages := s3.NewListObjectsV2Paginator(r.store.client, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return failed("list "+r.folder, err)
		}
		for _, o := range page.Contents {
			name := aws.ToString(o.Key)
			object := Object{Name: name, Number: r.number(name), Bytes: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag)}
			if err := f(object); err != nil {
				return err
			}
		}
	}
	return nil
}

// Objects is List as loader.Inventory requires it.
func (r *Run) Objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return r.List(ctx, func(o Object) error { return f(o.Name, o.Number, o.Bytes) })
}
