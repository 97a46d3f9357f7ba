package objstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Run is the objects of one run. It is safe for concurrent use.
type Run struct {
	store  *Store
	folder string // with a slash at its end
	err    error  // of a name that is none; every method returns it
}

// Object is what a listing says.
type Object struct {
	Name   string // the key within the bucket
	Number int64  // of the batch; −1: the name is not that of a batch
	Bytes  int64
}

// Run gives the objects of a run. The id is a single path segment.
func (s *Store) Run(run string) *Run {
	r := &Run{store: s, folder: s.under() + run + "/"}
	if run == "" || run == "." || run == ".." || strings.ContainsFunc(run, func(c rune) bool { return c <= ' ' || c == '/' || c >= 0x7f }) {
		r.err = fmt.Errorf("objstore: %q cannot be the name of a folder", run)
	}
	return r
}

// Folder is where the run's objects lie within the bucket, with a slash at its end.
func (r *Run) Folder() string { return r.folder }

// digits of a batch number in an object's name, so that names sort like numbers.
const digits = 12

// Name is the key of a batch within the bucket.
func (r *Run) Name(number int64, f batch.Format) string {
	return fmt.Sprintf("%s%0*d.%s", r.folder, digits, number, f)
}

// number undoes Name; −1 for every other name.
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

// Put stores the batch as one object and returns once the server has it. An object of that name is replaced. The bytes
// are read from the batch as they lie there. An object that is put again is measured afterwards: see measure.
func (r *Run) Put(ctx context.Context, b *batch.Batch) error {
	name := r.Name(b.ID.Number, b.Format)
	switch {
	case r.err != nil:
		return r.err
	case b.Skip > 0:
		return &loader.Error{Op: "put " + name, Applied: loader.No, Err: errors.New("an object holds a whole batch, and rows are to be left out")}
	}
	size := int64(len(b.Encoded))
	_, err := r.store.client.PutObject(ctx,
		&s3.PutObjectInput{
			Bucket: &r.store.bucket, Key: &name, Body: payload(size), ContentLength: &size,
			Metadata: map[string]string{mark: marking(b.First, b.Rows, size)},
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

// measure compares the length of an object with what was put. Amazon shows an object whole or not at all. But servers
// are found that keep what has arrived of a PUT whose connection broke, and write it out when they notice, under the
// same name and perhaps behind the PUT that repeats it. What was written out before this look it finds, and the batch
// is put once more. What comes later it cannot find: only those who count the rows can, as databases do for every
// commit.
//
// It is a listing and not a HEAD because Open has shown that the credentials may list, and reading objects may be the
// database's right alone.
func (r *Run) measure(ctx context.Context, name string, size int64) error {
	op := "measure " + name
	page, err := r.store.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &r.store.bucket, Prefix: &name, MaxKeys: aws.Int32(1)})
	if err != nil {
		f := read(err)
		return &loader.Error{Op: op, Applied: loader.Unknown, Err: f, Hint: f.fault().Hint}
	}
	found := int64(-1)
	if len(page.Contents) > 0 && aws.ToString(page.Contents[0].Key) == name { // the name itself sorts before all it begins
		found = aws.ToInt64(page.Contents[0].Size)
	}
	if found != size {
		return failed(op, &lengthError{found, size})
	}
	return nil
}

// lengthError says that an object is not as long as what was put.
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
	if statusOf(err) == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, failed("look for "+name, err)
	}
	return head.Metadata[mark] == marking(ref.First, ref.Rows, aws.ToInt64(head.ContentLength)), nil
}

// mark is the name of the metadata that says what an object should hold: x-amz-meta-terapush.
const mark = "terapush"

func marking(first, rows, bytes int64) string {
	return fmt.Sprintf("first=%d,rows=%d,bytes=%d", first, rows, bytes)
}

// List calls f with every object in the run's folder, in the order of their names, until f returns an error.
func (r *Run) List(ctx context.Context, f func(Object) error) error {
	if r.err != nil {
		return r.err
	}
	pages := s3.NewListObjectsV2Paginator(r.store.client, &s3.ListObjectsV2Input{Bucket: &r.store.bucket, Prefix: &r.folder})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return failed("list "+r.folder, err)
		}
		for _, found := range page.Contents {
			o := Object{Name: aws.ToString(found.Key), Bytes: aws.ToInt64(found.Size)}
			o.Number = r.number(o.Name)
			if err := f(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// Objects is List as loader.Inventory wants it.
func (r *Run) Objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return r.List(ctx, func(o Object) error { return f(o.Name, o.Number, o.Bytes) })
}

// statusOf is the HTTP status of the answer that an error was made of, or 0.
func statusOf(err error) int {
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

// codeOf is the server's word for an error, such as NoSuchKey, or "".
func codeOf(err error) string {
	var said smithy.APIError
	if errors.As(err, &said) {
		return said.ErrorCode()
	}
	return ""
}
