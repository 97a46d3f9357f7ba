package objstore

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// perRequest is how many objects DeleteObjects takes.
const perRequest = 1000

// Delete removes the objects of these batches and nothing else. An object that is gone already is no error.
func (r *Run) Delete(ctx context.Context, batches []loader.Ref, f batch.Format) error {
	if r.err != nil {
		return r.err
	}
	for some := range slices.Chunk(batches, perRequest) {
		names := make([]string, len(some))
		for i, b := range some {
			names[i] = r.Name(b.ID.Number, f)
		}
		if err := r.delete(ctx, names); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) delete(ctx context.Context, names []string) error {
	if len(names) > 1 && !r.store.oneByOne.Load() {
		err := r.deleteObjects(ctx, names)
		if !lacksDeleteObjects(err) {
			return err
		}
		r.store.oneByOne.Store(true)
	}
	for _, name := range names {
		_, err := r.store.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &r.store.bucket, Key: &name})
		if err != nil && read(err).code != "NoSuchKey" {
			return failed("delete "+name, err)
		}
	}
	return nil
}

func (r *Run) deleteObjects(ctx context.Context, names []string) error {
	objects := make([]types.ObjectIdentifier, len(names))
	for i := range names {
		objects[i].Key = &names[i]
	}
	done, err := r.store.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &r.store.bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return failed(fmt.Sprintf("delete %d objects of %s", len(names), r.folder), err)
	}
	for _, e := range done.Errors { // inside an answer with status 200
		f := &failure{status: http.StatusOK, code: aws.ToString(e.Code), message: aws.ToString(e.Message)}
		if f.code != "NoSuchKey" {
			return failed("delete "+aws.ToString(e.Key), f)
		}
	}
	return nil
}

// lacksDeleteObjects reports whether a server cannot delete several objects at once: Google's answers 400 or 501, proxies
// that pass single methods 405, and older servers want an MD5 instead of today's checksums.
func lacksDeleteObjects(err error) bool {
	f := failureOf(err)
	return f != nil && (f.status == http.StatusNotImplemented || f.status == http.StatusMethodNotAllowed ||
		slices.Contains([]string{
			"NotImplemented", "MethodNotAllowed", "MissingContentMD5", "InvalidArgument", "InvalidRequest", "MalformedXML",
		}, f.code))
}
