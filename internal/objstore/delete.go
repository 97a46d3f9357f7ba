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

// Delete removes the objects of these batches, and nothing else: it takes batches, not names. What is gone already is no
// error.
func (r *Run) Delete(ctx context.Context, batches []loader.Ref, f batch.Format) error {
	if r.err != nil {
		return r.err
	}
	numbers := make([]int64, len(batches))
	for i, b := range batches {
		numbers[i] = b.ID.Number
	}
	for _, n := range numbers {
		if name := r.Name(n, f); n < 0 || r.number(name) != n {
			return fmt.Errorf("objstore: %s is not the object of a batch, nothing is deleted", name)
		}
	}
	for group := range slices.Chunk(numbers, perRequest) {
		if err := r.deleteGroup(ctx, group, f); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) deleteGroup(ctx context.Context, numbers []int64, f batch.Format) error {
	if len(numbers) > 1 && !r.store.oneByOne.Load() {
		err := r.deleteAtOnce(ctx, numbers, f)
		if !lacksDeleteObjects(err) {
			return err
		}
		r.store.oneByOne.Store(true)
	}
	for _, n := range numbers {
		name := r.Name(n, f)
		_, err := r.store.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &r.store.bucket, Key: &name})
		if err != nil && codeOf(err) != "NoSuchKey" {
			return failed("delete "+name, err)
		}
	}
	return nil
}

func (r *Run) deleteAtOnce(ctx context.Context, numbers []int64, f batch.Format) error {
	names := make([]types.ObjectIdentifier, len(numbers))
	for i, n := range numbers {
		names[i].Key = aws.String(r.Name(n, f))
	}
	done, err := r.store.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &r.store.bucket, Delete: &types.Delete{Objects: names, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return failed(fmt.Sprintf("delete %d objects of %s", len(numbers), r.folder), err)
	}
	for _, e := range done.Errors { // inside an answer that says 200
		if code := aws.ToString(e.Code); code != "NoSuchKey" {
			return failed("delete "+aws.ToString(e.Key), &failure{status: http.StatusOK, code: code, message: aws.ToString(e.Message)})
		}
	}
	return nil
}

// lacksDeleteObjects reports whether a server knows no request that deletes several objects: Google's answers 400 or 501,
// proxies that let single methods through 405, and older servers want an MD5 in place of today's checksums.
func lacksDeleteObjects(err error) bool {
	switch f := failureOf(err); {
	case f == nil:
		return false
	case f.status == http.StatusNotImplemented, f.status == http.StatusMethodNotAllowed:
		return true
	default:
		return slices.Contains([]string{"NotImplemented", "MethodNotAllowed", "MissingContentMD5", "InvalidArgument", "InvalidRequest", "MalformedXML"}, f.code)
	}
}
