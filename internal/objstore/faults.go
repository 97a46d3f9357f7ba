package objstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/pkg/loader"
)

// failure is the error of a request: the server's answer, or why there is none.
type failure struct {
	status        int // of the answer; 0: there was none
	code, message string
	request       string // its id
	region        string // of the bucket, where the answer names it
	after         time.Duration
	cause         error
}

// Error is short: the SDK's own text repeats itself.
func (f *failure) Error() string {
	if f.status == 0 || f.code == "" {
		return f.cause.Error()
	}
	text := f.code
	if f.message != "" && f.message != f.code {
		text += ": " + f.message
	}
	text += fmt.Sprintf(" (status %d", f.status)
	if f.request != "" {
		text += ", request " + f.request
	}
	return text + ")"
}

func (f *failure) Unwrap() error { return f.cause }

func failureOf(err error) *failure {
	var f *failure
	errors.As(err, &f)
	return f
}

// failed returns the *loader.Error of a request; nil stays nil.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	f := failureOf(err)
	if f == nil {
		f = read(err)
	}
	fault := f.fault()
	return &loader.Error{Op: op, Applied: fault.Applied, Err: f, Hint: fault.Hint}
}

// read makes a failure of an error of the SDK.
func read(err error) *failure {
	f := &failure{cause: err}
	// The SDK's wrappers repeat the operation.
	var (
		operation *smithy.OperationError
		unsent    *smithyhttp.RequestSendError
		canceled  *smithy.CanceledError
	)
	switch {
	case errors.As(err, &unsent):
		f.cause = unsent.Err
	case errors.As(err, &canceled):
		f.cause = canceled.Err
	case errors.As(err, &operation):
		f.cause = operation.Err
	}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		f.status = answer.HTTPStatusCode()
		header := answer.Response.Header
		f.region = header.Get("X-Amz-Bucket-Region")
		f.request = header.Get("X-Amz-Request-Id")
		if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds > 0 {
			f.after = time.Duration(seconds) * time.Second
		}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		f.code, f.message = api.ErrorCode(), api.ErrorMessage()
	}
	return f
}

// FaultOf is the loader.FaultFunc of object stores. No failure ends a session: every request stands for itself.
func FaultOf(err error) (loader.Fault, bool) {
	if f := failureOf(err); f != nil {
		return f.fault(), true
	}
	return loader.Fault{}, false
}

func (f *failure) fault() loader.Fault {
	if cut := (*lengthError)(nil); errors.As(f.cause, &cut) {
		return loader.Fault{Verdict: loader.Again(loader.ClassConnection)}
	}
	if f.status == 0 && f.code == "" {
		return f.unanswered()
	}
	status := f.status
	if status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect {
		status = http.StatusMovedPermanently
	}
	fault, listed := faults.Code(f.code)
	if !listed {
		fault, listed = faults.Code(strconv.Itoa(status))
	}
	switch {
	case listed:
	case status < 300: // success, with an answer that cannot be read
		fault.Class, fault.Retry, fault.Hint = loader.ClassConnection, true, "is the endpoint an S3 server?"
	case status >= 500:
		fault.Class, fault.Retry = loader.ClassOther, true
	default:
		fault.Verdict = loader.Refused(loader.ClassOther)
	}
	if fault.Hint == otherRegion && f.region != "" {
		fault.Hint = fmt.Sprintf("the bucket is in region %s: write ?region=%s", f.region, f.region)
	}
	fault.After = f.after
	return fault
}

// unanswered is the fault of a request without an answer.
func (f *failure) unanswered() loader.Fault {
	var (
		refused     *refusal
		credentials *credentialsError
		noTLS       tls.RecordHeaderError
	)
	switch {
	case errors.As(f.cause, &refused):
		return loader.Fault{Verdict: loader.Refused(loader.ClassOther)}
	case errors.As(f.cause, &credentials):
		return loader.Fault{
			Verdict: loader.Again(loader.ClassPermission),
			Hint:    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role",
		}
	}
	fault := loader.NetworkFault(f.cause)
	switch {
	case errors.As(f.cause, &noTLS):
		fault.Hint = "the server does not speak TLS: is it an http:// endpoint?"
	case fault.Class == loader.ClassOther && !errors.Is(f.cause, context.Canceled):
		// The SDK has many errors for a lost answer.
		fault.Verdict = loader.Lost(loader.ClassConnection)
	}
	fault.SessionDead = false
	return fault
}

// otherRegion is the hint for a bucket whose region the answer does not name.
const otherRegion = "the bucket is in another region than the request was signed for: write ?region=…"

// faults lists the codes and statuses (Amazon S3 API reference, "Error responses").
var faults = loader.Faults{
	{Codes: "SlowDown RequestLimitExceeded Throttling ThrottlingException TooManyRequests " +
		"BandwidthLimitExceeded 429", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "the store asks for fewer requests: use fewer workers or larger batches"},
	{Codes: "ServiceUnavailable XMinioServerNotInitialized 503", Verdict: loader.Again(loader.ClassThrottled)},
	{Codes: "ExpiredToken ExpiredTokenException RequestExpired TokenRefreshRequired",
		Verdict: loader.Refused(loader.ClassPermission),
		Hint:    "the credentials have expired: renew them, then resume"},
	// versitygw's word for an unknown key is XAdminUserNotFound, with status 404.
	{Codes: "InvalidAccessKeyId XAdminUserNotFound InvalidToken InvalidSecurity NotSignedUp",
		Verdict: loader.Refused(loader.ClassPermission),
		Hint: "the store does not know the key: check AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN and AWS_PROFILE, and " +
			"that the endpoint is the right one"},
	{Codes: "SignatureDoesNotMatch AuthorizationQueryParametersError InvalidRequestSignature",
		Verdict: loader.Refused(loader.ClassPermission),
		Hint:    "check AWS_SECRET_ACCESS_KEY and the region; a proxy in between must not change host or headers"},
	{Codes: "RequestTimeTooSkewed", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "set this machine's clock: signatures are good for 15 minutes"},
	{Codes: "PermanentRedirect TemporaryRedirect Redirect AuthorizationHeaderMalformed " +
		"IllegalLocationConstraintException InvalidRegion 301", Verdict: loader.Refused(loader.ClassOther),
		Hint: otherRegion},
	{Codes: "NoSuchBucket", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "make the bucket first, or check its name; terapush makes none"},
	{Codes: "NoSuchKey NotFound 404", Verdict: loader.Refused(loader.ClassMissing)},
	{Codes: "RequestTimeout 408", Verdict: loader.Again(loader.ClassTimeout)},
	{Codes: "IncompleteBody BadDigest", Verdict: loader.Again(loader.ClassConnection)},
	{Codes: "OperationAborted ConditionalRequestConflict 409",
		Verdict: loader.Verdict{Class: loader.ClassLock, Retry: true}}, // the other request may be an earlier attempt
	{Codes: "EntityTooLarge 413", Verdict: loader.Refused(loader.ClassTooLarge), Hint: "lower --batch-bytes"},
	{Codes: "QuotaExceeded XMinioStorageFull XMinioAdminBucketQuotaExceeded InsufficientCapacity 507",
		Verdict: loader.Refused(loader.ClassDiskFull),
		Hint:    "make room in the store, then resume"},
	{Codes: "AccessDenied AllAccessDisabled AccountProblem 401 403",
		Verdict: loader.Refused(loader.ClassPermission),
		Hint: "the credentials need s3:ListBucket on the bucket and s3:PutObject, s3:GetObject and " +
			"s3:DeleteObject on what is in it"},
	{Codes: "501", Verdict: loader.Refused(loader.ClassOther)},
}
