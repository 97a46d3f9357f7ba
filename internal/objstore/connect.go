package objstore

import (
	"context"
	"crypto/tls"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/pkg/loader"
)

// expectContinue is how long Amazon is waited for to say that it wants the body. One round trip a batch keeps 64 MiB
// from being sent into a "slow down". Other servers get no such question: some never answer it, and each batch would
// wait for this long.
const expectContinue = time.Second

// connections is how many connections are kept while idle. How many workers there will be is not known yet, and with a
// bound below that nearly every batch would open a new connection.
const connections = 1024

// connect makes the clients: the SDK for the protocol, our own transport below it.
func (s *Store) connect(ctx context.Context, t loader.Target, d loader.Deps) error {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}))
	if err != nil {
		return &credentialsError{err} // it reads files and the environment: a profile that is not there, for example
	}
	var unfit error
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		unfit = s.adopt(o, t.TLS)
		o.Retryer = aws.NopRetryer{}
		o.RetryMaxAttempts = 0 // AWS_MAX_ATTEMPTS would put retries around it
		if o.Credentials != nil {
			o.Credentials = chain{o.Credentials}
		}
		// Hashing the body would cost more than sending it, and half of the compatible servers refuse trailing checksums.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
		if s.endpoint != "" {
			o.ContinueHeaderThresholdBytes = -1
		}
	})
	if unfit != nil {
		return &refusal{unfit}
	}
	security, err := s.security(t, d)
	if err != nil {
		return err
	}
	dial := d.Spread
	if dial == nil {
		addresses := network.Spread{Dial: d.Dial}
		dial = addresses.DialContext
	}
	s.http = httpload.NewClient(httpload.Options{
		Dial: dial, TLS: security, Connections: connections, ExpectContinue: expectContinue,
	})
	// Options are copied into the client, so the transport, whose TLS needs them, comes last.
	s.client = s3.New(client.Options(), func(o *s3.Options) { o.HTTPClient = &sender{http: s.http} })
	return nil
}

// adopt settles where the chain and the URL both have a say: the URL wins. An endpoint of the chain has to be as one of
// the URL's, since it is shown as one.
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

// security is the TLS configuration for https endpoints.
func (s *Store) security(t loader.Target, d loader.Deps) (*tls.Config, error) {
	host := "s3." + s.region + ".amazonaws.com"
	if s.endpoint != "" {
		u, err := url.Parse(s.endpoint)
		if err != nil {
			return nil, err
		}
		if u.Scheme == "http" {
			return nil, nil
		}
		host = u.Hostname()
	}
	security, _, err := d.TLS(t.TLS, host)
	if err == nil && security != nil && security.ServerName == host {
		security.ServerName = "" // the bucket may stand in front of it; the transport fills in what it dials
	}
	return security, err
}
