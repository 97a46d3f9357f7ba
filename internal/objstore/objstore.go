// Package objstore keeps batches as objects in Amazon S3, or in a server that speaks its protocol: for s3:// targets, and
// for methods that store batches and let the database load them.
//
// A batch is one object and one PUT of bytes that are in memory: no multipart upload, no copy, no hash over the body.
// Every run has a folder of its own, <prefix>/<run>/, and nothing outside of it is ever written or deleted. Putting a
// batch again gives the same object, so a PUT whose answer was lost is repeated.
//
// Retries are the engine's. The SDK's are off, so that an attempt is one request.
package objstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// Store is a prefix of a bucket. It is safe for concurrent use.
type Store struct {
	place
	client   *s3.Client
	http     *httpload.Client
	software string      // as the server calls itself
	oneByOne atomic.Bool // the server cannot delete several objects with one request
}

// Open opens an object store: Hosts[0] is the bucket, Database the prefix; parameters are endpoint, server_endpoint,
// region and path_style. It lists one object, so that a wrong name, key, region or clock is found here and not in the
// first batch.
func Open(ctx context.Context, t loader.Target, d loader.Deps) (*Store, error) {
	p, err := placeOf(t)
	if err != nil {
		return nil, err
	}
	s := &Store{place: p}
	op := "open " + t.String()
	if err := s.connect(ctx, t, d); err != nil {
		return nil, failed(op, err)
	}
	// A listing and not HeadBucket: answers to HEAD have no body, and without one every refusal is "403 Forbidden".
	var found *s3.ListObjectsV2Output
	err = s.reach(ctx, d, func(ctx context.Context) (err error) {
		found, err = s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
			Bucket: &s.bucket, Prefix: aws.String(s.under()), MaxKeys: aws.Int32(1),
		})
		return err
	})
	if err == nil && found.Name == nil && found.KeyCount == nil && found.MaxKeys == nil {
		// To the SDK any text with status 200 is an empty listing.
		err = &failure{status: http.StatusOK, cause: errors.New("the answer to a listing is something else")}
	}
	if err != nil {
		_ = s.Close()
		return nil, failed(op, err)
	}
	if answer, ok := awsmiddleware.GetRawResponse(found.ResultMetadata).(*smithyhttp.Response); ok {
		s.software = answer.Header.Get("Server")
	}
	return s, nil
}

// reach calls list, and says if no HTTP server is at the endpoint.
func (s *Store) reach(ctx context.Context, d loader.Deps, list func(context.Context) error) error {
	u, err := url.Parse(s.endpoint)
	if err != nil || u.Scheme != "http" {
		return list(ctx)
	}
	answered := func(err error) bool {
		var answer interface{ HTTPStatusCode() int }
		return errors.As(err, &answer) && answer.HTTPStatusCode() > 0
	}
	return netio.Reach(ctx, d.Dial, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")), netio.HTTP, answered, list)
}

// Software is the server's name and version from its answers, or "".
func (s *Store) Software() string { return s.software }

// under is the prefix of all keys: "" or with a slash at its end.
func (s *Store) under() string {
	if s.prefix == "" {
		return ""
	}
	return s.prefix + "/"
}

// Close closes the idle connections.
func (s *Store) Close() error { return s.http.Close() }

// String is the store as messages show it.
func (s *Store) String() string { return "s3://" + s.bucket + "/" + s.prefix }

// Bucket is the bucket's name.
func (s *Store) Bucket() string { return s.bucket }

// Endpoint is the server's URL, or "" for Amazon's own.
func (s *Store) Endpoint() string { return s.endpoint }

// Region is the region that requests are signed for.
func (s *Store) Region() string { return s.region }

// Access is what a database needs to read the objects. Temporary credentials expire, so it must be used at once.
type Access struct {
	Endpoint       string // how the database reaches the store; "" for Amazon's own
	Region         string
	Bucket, Prefix string // Prefix without slashes at its ends
	PathStyle      bool
	KeyID          string
	Secret, Token  loader.Secret
}

// Redact removes whatever could be a piece of the credentials from a server's text: servers repeat a part of a statement
// that they cannot parse.
func (a Access) Redact(text string) string {
	return loader.Redact(text, a.Secret, a.Token, loader.Secret(a.KeyID))
}

// Access returns the credentials of the requests, renewed if need be. A statement that carries them is made again for
// every attempt.
func (s *Store) Access(ctx context.Context) (Access, error) {
	keys, err := s.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return Access{}, failed("credentials for "+s.String(), err)
	}
	if keys.AccessKeyID == "" {
		return Access{}, failed("credentials for "+s.String(), &credentialsError{errors.New("there are none")})
	}
	return Access{
		Endpoint: cmp.Or(s.serverEndpoint, s.endpoint), Region: s.region, Bucket: s.bucket, Prefix: s.prefix, PathStyle: s.pathStyle,
		KeyID: keys.AccessKeyID, Secret: loader.Secret(keys.SecretAccessKey), Token: loader.Secret(keys.SessionToken),
	}, nil
}

// credentialsError says that there are no credentials, or that they could not be renewed.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return fmt.Sprintf("no credentials: %v", e.err) }
func (e *credentialsError) Unwrap() error { return e.err }

// chain is the SDK's default chain; its errors are credentialsErrors.
type chain struct{ aws.CredentialsProvider }

func (c chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	keys, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return keys, &credentialsError{err}
	}
	return keys, nil
}
