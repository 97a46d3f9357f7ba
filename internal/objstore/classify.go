package objstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/loader"
)

// failure is a request that failed: what the server said, or why there is no answer.
type failure struct {
	status        int    // of the answer; 0: there was none
	code, message string // the server's words
	request       string // the server's id of the request
	region        string // that the bucket is in, where the answer says so
	after         time.Duration
	cause         error
}

// Error is short: the SDK's own text repeats itself four times.
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

// failed makes the error of a request, with what is known about it and what to do.
func failed(op string, err error) error {
	f := failureOf(err)
	if f == nil {
		f = read(err)
	}
	m := f.meaning()
	return &loader.Error{Op: op, Applied: m.applied, Err: f, Hint: m.hint(f)}
}

// read takes an error of the SDK apart.
func read(err error) *failure {
	f := &failure{cause: err}
	// The SDK's wrappers say what Op says, and that there is no status where there is no answer.
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
	var said smithy.APIError
	if errors.As(err, &said) {
		f.code, f.message = said.ErrorCode(), said.ErrorMessage()
	}
	return f
}

// Classify answers the questions a retry asks of an error. ok is false for an error that no object store has made.
func Classify(err error) (v loader.Verdict, ok bool) {
	f := failureOf(err)
	if f == nil {
		return v, false
	}
	m := f.meaning()
	v = loader.Verdict{Applied: m.applied, Retry: m.retry, After: f.after, Class: m.class}
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v, true
}

// meaning is what a failure means for a load. No failure ends a session: every request is one by itself.
type meaning struct {
	codes   []string
	status  int
	class   loader.Class
	applied loader.Applied
	retry   bool
	advice  string
}

func (m meaning) hint(f *failure) string {
	if m.status == http.StatusMovedPermanently && f.region != "" {
		return fmt.Sprintf("the bucket is in region %s: write ?region=%s", f.region, f.region)
	}
	return m.advice
}

func (f *failure) meaning() meaning {
	if cut := (*lengthError)(nil); errors.As(f.cause, &cut) {
		return meaning{class: loader.ClassConnection, applied: loader.No, retry: true}
	}
	if f.status == 0 && f.code == "" {
		return f.unanswered()
	}
	all := meanings()
	if i := slices.IndexFunc(all, func(m meaning) bool { return slices.Contains(m.codes, f.code) }); i >= 0 {
		return all[i]
	}
	status := f.status
	if status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect {
		status = http.StatusMovedPermanently
	}
	if i := slices.IndexFunc(all, func(m meaning) bool { return m.status == status }); i >= 0 {
		return all[i]
	}
	switch {
	case status < 300: // it said yes, and then something that cannot be read
		return meaning{class: loader.ClassConnection, retry: true, advice: "is the endpoint an S3 server?"}
	case status >= 500:
		return meaning{class: loader.ClassOther, retry: true}
	}
	return meaning{class: loader.ClassOther, applied: loader.No}
}

// unanswered judges a request that has no answer.
func (f *failure) unanswered() meaning {
	m := meaning{class: loader.ClassConnection, retry: true}
	var refused *refusal
	var credentials *credentialsError
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(f.cause, &refused):
		m.class, m.applied, m.retry = loader.ClassOther, loader.No, false
	case errors.As(f.cause, &credentials):
		m.class, m.applied = loader.ClassPermission, loader.No
		m.advice = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
	case errors.Is(f.cause, context.DeadlineExceeded):
		m.class = loader.ClassTimeout
	case errors.Is(f.cause, context.Canceled):
		m.class, m.retry = loader.ClassOther, false
	case errors.As(f.cause, &certificate):
		m.applied, m.retry = loader.No, false
		m.advice = "check the endpoint's certificate, or name its authority with the --tls flags"
	case errors.As(f.cause, &noTLS):
		m.applied, m.retry = loader.No, false
		m.advice = "nobody speaks TLS there: is it an http:// endpoint?"
	case httpload.NotSent(f.cause):
		m.applied, m.advice = loader.No, "check the endpoint"
	}
	return m
}

// meanings lists the codes and statuses (Amazon S3 API reference, "Error responses"), codes before statuses.
func meanings() []meaning {
	const (
		rights = "the credentials need s3:ListBucket on the bucket and s3:PutObject, s3:GetObject and s3:DeleteObject on what is in it"
		slower = "the store asks for fewer requests: use fewer workers or larger batches"
		room   = "make room in the store, then resume"
	)
	return []meaning{
		{
			codes:  []string{"SlowDown", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests", "BandwidthLimitExceeded"},
			status: http.StatusTooManyRequests,
			class:  loader.ClassThrottled, applied: loader.No, retry: true, advice: slower,
		},
		{
			codes: []string{"ServiceUnavailable", "XMinioServerNotInitialized"}, status: http.StatusServiceUnavailable,
			class: loader.ClassThrottled, applied: loader.No, retry: true,
		},
		{
			codes: []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"},
			class: loader.ClassPermission, applied: loader.No, advice: "the credentials have expired: renew them, then resume",
		},
		{
			// versitygw's word for an unknown key is XAdminUserNotFound, with status 404.
			codes: []string{"InvalidAccessKeyId", "XAdminUserNotFound", "InvalidToken", "InvalidSecurity", "NotSignedUp"},
			class: loader.ClassPermission, applied: loader.No,
			advice: "the store does not know the key: check AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN and AWS_PROFILE, and that the endpoint is the right one",
		},
		{
			codes: []string{"SignatureDoesNotMatch", "AuthorizationQueryParametersError", "InvalidRequestSignature"},
			class: loader.ClassPermission, applied: loader.No,
			advice: "check AWS_SECRET_ACCESS_KEY and the region; a proxy in between must not change host or headers",
		},
		{
			codes: []string{"RequestTimeTooSkewed"}, class: loader.ClassPermission, applied: loader.No,
			advice: "set this machine's clock: signatures are good for 15 minutes",
		},
		{
			codes:  []string{"PermanentRedirect", "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "InvalidRegion"},
			status: http.StatusMovedPermanently,
			class:  loader.ClassOther, applied: loader.No,
			advice: "the bucket is in another region than the request was signed for: write ?region=…",
		},
		{
			codes: []string{"NoSuchBucket"}, class: loader.ClassMissing, applied: loader.No,
			advice: "make the bucket first, or check its name; terapush makes none",
		},
		{codes: []string{"NoSuchKey", "NotFound"}, status: http.StatusNotFound, class: loader.ClassMissing, applied: loader.No},
		{codes: []string{"RequestTimeout"}, status: http.StatusRequestTimeout, class: loader.ClassTimeout, applied: loader.No, retry: true},
		{codes: []string{"IncompleteBody", "BadDigest"}, class: loader.ClassConnection, applied: loader.No, retry: true},
		{codes: []string{"OperationAborted", "ConditionalRequestConflict"}, status: http.StatusConflict, class: loader.ClassLock, retry: true},
		{
			codes: []string{"EntityTooLarge"}, status: http.StatusRequestEntityTooLarge,
			class: loader.ClassTooLarge, applied: loader.No, advice: "lower --batch-bytes",
		},
		{
			codes:  []string{"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientCapacity"},
			status: http.StatusInsufficientStorage, class: loader.ClassDiskFull, applied: loader.No, advice: room,
		},
		{codes: []string{"AccessDenied", "AllAccessDisabled", "AccountProblem"}, class: loader.ClassPermission, applied: loader.No, advice: rights},
		{status: http.StatusForbidden, class: loader.ClassPermission, applied: loader.No, advice: rights},
		{status: http.StatusUnauthorized, class: loader.ClassPermission, applied: loader.No, advice: rights},
		{status: http.StatusNotImplemented, class: loader.ClassOther, applied: loader.No},
	}
}
