package objstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// expectContinue is how long to wait until Amazon asks for the body. One round trip a batch keeps 64 MiB from being
// sent into a "slow down". Other servers are not asked: some never answer, and each batch would wait this long.
const expectContinue = time.Second

// connections is how many stay open while idle. The number of workers is not known yet, and with a lower limit nearly
// every batch would open a new connection.
const connections = 1024

// connect creates the clients: the SDK for the protocol, our own transport below it.
func (s *Store) connect(ctx context.Context, t loader.Target, d loader.Deps) error {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return &credentialsError{err} // of files and the environment, such as a missing profile
	}
	var invalid error
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		invalid = s.adopt(o, t.TLS)
		sendOnce(o)
		if o.Credentials != nil {
			o.Credentials = chain{o.Credentials}
		}
		if s.endpoint != "" {
			o.ContinueHeaderThresholdBytes = -1
		}
	})
	if invalid != nil {
		return &refusal{invalid}
	}
	config, err := s.tlsConfig(t, d)
	if err != nil {
		return err
	}
	dial := d.Spread
	if dial == nil {
		spread := netio.Spread{Dial: d.Dial}
		dial = spread.DialContext
	}
	s.http = httpload.NewClient(httpload.Options{
		Dial: dial, TLS: config, Connections: connections, ExpectContinue: expectContinue,
	})
	// The client copies its options, so the transport, whose TLS needs the adopted endpoint, comes last.
	s.client = s3.New(client.Options(), func(o *s3.Options) { o.HTTPClient = &sender{http: s.http} })
	return nil
}

// sendOnce makes every call one request, whose body the SDK does not read.
func sendOnce(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.RetryMaxAttempts = 0 // AWS_MAX_ATTEMPTS would put retries around it
	// Hashing the body would cost more than sending it, and half of the compatible servers refuse trailing checksums.
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	o.DisableLogOutputChecksumValidationSkipped = true
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// adopt merges the SDK's settings and the URL's, which win. An endpoint of the environment has to pass the same checks,
// since it is shown, too.
func (s *Store) adopt(o *s3.Options, mode loader.TLSMode) (err error) {
	if s.region == "" {
		s.region = o.Region
	}
	if s.region == "" {
		s.region = "us-east-1" // what compatible servers expect; Amazon's answer names another one if that is wrong
	}
	o.Region = s.region
	if s.endpoint == "" && o.BaseEndpoint != nil { // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile
		if s.endpoint, err = endpointOf("AWS_ENDPOINT_URL", *o.BaseEndpoint); err != nil {
			return err
		}
		if err := tlsFits(mode, s.endpoint); err != nil {
			return err
		}
		s.pathStyle = s.pathStyle || plainHost(s.endpoint)
	}
	if s.endpoint != "" {
		o.BaseEndpoint = aws.String(s.endpoint)
	}
	o.UsePathStyle = s.pathStyle
	return nil
}

// tlsConfig is nil for an http endpoint.
func (s *Store) tlsConfig(t loader.Target, d loader.Deps) (*tls.Config, error) {
	host := "s3." + s.region + ".amazonaws.com"
	if s.endpoint != "" {
		u, err := url.Parse(s.endpoint)
		if err != nil || u.Scheme == "http" {
			return nil, err
		}
		host = u.Hostname()
	}
	config, _, err := d.TLS(t.TLS, host)
	if err == nil && config != nil && config.ServerName == host {
		config.ServerName = "" // the bucket's name may come before it; the transport fills in what it dials
	}
	return config, err
}

// payload stands for a batch in the SDK: a seekable body of its length that is never read. So no reader of the SDK
// holds on to the batch.
type payload int64

var errRead = &refusal{errors.New("the SDK tries to read the body, for a checksum or a signature that was not requested")}

func (p payload) Read([]byte) (int, error) { return 0, errRead }

// Len is the length in bytes. The SDK prefers it to Seek.
func (p payload) Len() int { return int(p) }

// Seek lets the SDK's middleware find out that it could seek.
func (p payload) Seek(offset int64, whence int) (int64, error) {
	if offset == 0 && (whence == io.SeekCurrent || whence == io.SeekStart) {
		return 0, nil
	}
	return 0, errRead
}

// sender is the SDK's HTTP client.
type sender struct {
	http  *httpload.Client
	batch *batch.Batch // that this request puts; nil for others
}

// Do sends a signed request with the batch as its body. The SDK's wrappers around a body would copy it once more, and
// the transport may read for longer than this call, when a server answers early; httpload holds on to the batch as
// long. Where signature or framing depend on the bytes, the body cannot be exchanged, and nothing is sent.
func (s *sender) Do(r *http.Request) (*http.Response, error) {
	if s.batch != nil {
		if signed := r.Header.Get("X-Amz-Content-Sha256"); signed != "UNSIGNED-PAYLOAD" {
			return nil, &refusal{fmt.Errorf("the SDK has signed the body as %q, and only an unsigned one can be sent", signed)}
		}
		r = r.WithContext(r.Context()) // a copy: the SDK closes the body of its own request
		httpload.Attach(r, nil, s.batch, nil)
	}
	return s.http.RoundTrip(r)
}

// refusal is an error of this package, made before anything was sent. A retry would fail the same way.
type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }
