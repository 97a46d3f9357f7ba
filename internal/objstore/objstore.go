// Package objstore keeps batches as objects in Amazon S3, or in any server that speaks its protocol: for s3:// targets,
// and for methods that store first and let the database load from there.
//
// A batch is one object and one PUT of bytes that lie in memory already: no multipart upload, no second copy, no hash
// over the body. Every run has a folder of its own, <prefix>/<run>/, and nothing outside of it is ever written or
// deleted. A PUT of the same batch gives the same object, so one whose answer was lost is simply sent again.
//
// Retries are the engine's. The SDK's own are off, so that an attempt is one request, counted and timed as one.
package objstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/loader"
)

// Store is a prefix of a bucket. It is safe for concurrent use.
type Store struct {
	place
	client *s3.Client
	http   *httpload.Client
	log    *slog.Logger
	// software is what the server calls itself.
	software string
	// oneByOne remembers that the server cannot delete several objects with one request.
	oneByOne atomic.Bool
}

// Open opens an object store: Hosts[0] is the bucket, Database the prefix; parameters are endpoint, server_endpoint,
// region and path_style. Requests may be as many at a time as there are callers. One object is listed, so that a wrong
// name, key, region or clock is found here and not in the first batch.
func Open(ctx context.Context, t loader.Target, d loader.Deps) (*Store, error) {
	p, err := placeOf(t)
	if err != nil {
		return nil, err
	}
	s := &Store{place: p, log: d.Log}
	op := "open " + t.String()
	if err := s.connect(ctx, t, d); err != nil {
		return nil, failed(op, err)
	}
	// A listing and not HeadBucket: answers to HEAD have no body, and without one every refusal is "403 Forbidden".
	found, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: aws.String(s.under()), MaxKeys: aws.Int32(1),
	})
	if err == nil && found.Name == nil && found.KeyCount == nil && found.MaxKeys == nil {
		// The SDK reads any text that comes with a 200 as an empty listing.
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

// Software is the server's name and version in its own words, "" where it says nothing.
func (s *Store) Software() string { return s.software }

// under is the prefix of all keys, with a slash behind it if there is any.
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

// Access is what a database needs to read the objects. It is to be used at once: Expires bounds it.
type Access struct {
	Endpoint       string // how the database reaches the store; "" for Amazon's own
	Region         string
	Bucket, Prefix string // Prefix without slashes at its ends
	PathStyle      bool
	KeyID          string
	Secret, Token  loader.Secret
	Expires        time.Time // zero: never
}

// Redact takes whatever could be a piece of the credentials out of a server's text. A server that does not understand
// a statement repeats some of it.
func (a Access) Redact(text string) string {
	return loader.Redact(text, a.Secret, a.Token, loader.Secret(a.KeyID))
}

// Access takes the credentials from the same chain as the requests, renewed if need be. Where a statement is to carry
// them it has to be made anew for every attempt.
func (s *Store) Access(ctx context.Context) (Access, error) {
	keys, err := s.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return Access{}, failed("credentials for "+s.String(), err)
	}
	if keys.AccessKeyID == "" {
		return Access{}, failed("credentials for "+s.String(), &credentialsError{errors.New("there are none")})
	}
	a := Access{
		Endpoint: s.endpoint, Region: s.region, Bucket: s.bucket, Prefix: s.prefix, PathStyle: s.pathStyle,
		KeyID: keys.AccessKeyID, Secret: loader.Secret(keys.SecretAccessKey), Token: loader.Secret(keys.SessionToken),
	}
	if s.serverEndpoint != "" {
		a.Endpoint = s.serverEndpoint
	}
	if keys.CanExpire {
		a.Expires = keys.Expires
	}
	return a, nil
}

// credentialsError says that the chain has no credentials, or could not renew them.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return fmt.Sprintf("no credentials: %v", e.err) }
func (e *credentialsError) Unwrap() error { return e.err }

// chain is the SDK's default chain, with errors that can be told from others.
type chain struct{ aws.CredentialsProvider }

func (c chain) Retrieve(ctx context.Context) (aws.Credentials, error) {
	keys, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return keys, &credentialsError{err}
	}
	return keys, nil
}
