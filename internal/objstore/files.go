package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/terapush/terapush/pkg/loader"
)

// Files is a store seen as small files that are made once, read and removed: what the processes of a run tell each
// other. Names are below the store's prefix.
type Files struct{ *Store }

// OpenFiles opens a store as Open does. Its error has the verdict of Classify.
func OpenFiles(ctx context.Context, t loader.Target, d loader.Deps) (Files, error) {
	store, err := Open(ctx, t, d)
	if err != nil {
		return Files{}, loader.Judged(err, Files{}.Classify(err))
	}
	return Files{store}, nil
}

// fileTime bounds a request for a file. A store that takes a connection and never answers would block the run.
const (
	fileTime      = 30 * time.Second
	manyFilesTime = 10 * time.Minute // for hundreds of thousands
)

// Create makes a file. If there is one of that name, it returns fs.ErrExist and changes nothing, also while another
// process does the same: a PUT with If-None-Match, which Amazon, MinIO and others judge themselves.
func (f Files) Create(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	key := f.under() + name
	_, err := f.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &f.bucket, Key: &key, Body: bytes.NewReader(content), IfNoneMatch: aws.String("*"),
	})
	if err != nil && read(err).status == http.StatusPreconditionFailed {
		return fmt.Errorf("create %s: %w", key, fs.ErrExist)
	}
	return failed("create "+key, err)
}

// Write makes a file, or replaces it.
func (f Files) Write(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	key := f.under() + name
	_, err := f.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &f.bucket, Key: &key, Body: bytes.NewReader(content)})
	return failed("write "+key, err)
}

// Read returns a file's content, fs.ErrNotExist if there is none.
func (f Files) Read(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	key := f.under() + name
	o, err := f.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &f.bucket, Key: &key})
	switch {
	case err != nil && read(err).status == http.StatusNotFound:
		return nil, fmt.Errorf("read %s: %w", key, fs.ErrNotExist)
	case err != nil:
		return nil, failed("read "+key, err)
	}
	defer o.Body.Close()
	content, err := io.ReadAll(o.Body)
	return content, failed("read "+key, err)
}

// ErrChanged says that a file is another one than was listed.
var ErrChanged = errors.New("the object was written again since it was listed")

// ReadAt fills p with a file's bytes from an offset on. The file must still have the ETag; see ErrChanged, and fs.ErrNotExist
// if it is gone.
func (f Files) ReadAt(ctx context.Context, name, etag string, p []byte, from int64) error {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	key := f.under() + name
	op := "read " + key
	o, err := f.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &f.bucket, Key: &key, IfMatch: &etag, Range: aws.String(fmt.Sprintf("bytes=%d-%d", from, from+int64(len(p))-1)),
	})
	switch {
	case err != nil && read(err).status == http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", op, ErrChanged)
	case err != nil && read(err).code == "NoSuchKey":
		return fmt.Errorf("%s: %w", op, fs.ErrNotExist)
	case err != nil:
		return failed(op, err)
	}
	defer o.Body.Close()
	if now := aws.ToString(o.ETag); now != "" && now != etag { // of a server that does not know If-Match
		return fmt.Errorf("%s: %w", op, ErrChanged)
	}
	if aws.ToString(o.ETag) == "" {
		return failed(op, &refusal{errors.New("the answer has no ETag")})
	}
	if first := fmt.Sprintf("bytes %d-", from); !strings.HasPrefix(aws.ToString(o.ContentRange), first) {
		return failed(op, &refusal{fmt.Errorf("%s was asked for, and the answer has %q", first, aws.ToString(o.ContentRange))})
	}
	_, err = io.ReadFull(o.Body, p)
	return failed(op, err)
}

// Objects calls each with the files whose names begin with a prefix, in their order, until it returns an error.
func (f Files) Objects(ctx context.Context, prefix string, each func(Object) error) error {
	ctx, cancel := context.WithTimeout(ctx, manyFilesTime)
	defer cancel()
	r := &Run{store: f.Store, folder: f.under() + prefix}
	return r.List(ctx, func(o Object) error {
		o.Name = strings.TrimPrefix(o.Name, f.under())
		return each(o)
	})
}

// Names calls each with the names of the files whose names begin with a folder's, in their order, until it returns an error.
func (f Files) Names(ctx context.Context, folder string, each func(name string) error) error {
	return f.Objects(ctx, folder, func(o Object) error { return each(o.Name) })
}

// Remove removes files. One that is missing is no error.
func (f Files) Remove(ctx context.Context, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, manyFilesTime)
	defer cancel()
	r := &Run{store: f.Store}
	for some := range slices.Chunk(names, perRequest) {
		keys := make([]string, len(some))
		for i, name := range some {
			keys[i] = f.under() + name
		}
		if err := r.delete(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

// Classify judges an error of Files. A request that takes too long is a store that is away.
func (Files) Classify(err error) loader.Verdict {
	v := loader.Judge(err, FaultOf)
	if v.Class == loader.ClassTimeout {
		v.Class, v.Retry = loader.ClassConnection, true
	}
	return v
}
