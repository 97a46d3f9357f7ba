package objstore

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	add := func(name string, f *failure) { all = append(all, loadertest.Failure{Name: name, Err: f}) }
	for status := 200; status < 600; status++ {
		add(fmt.Sprint(status), &failure{status: status, cause: io.EOF})
	}
	for _, code := range []string{
		"SlowDown", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests", "BandwidthLimitExceeded",
		"ServiceUnavailable", "XMinioServerNotInitialized", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired",
		"InvalidAccessKeyId", "XAdminUserNotFound", "InvalidToken", "InvalidSecurity", "NotSignedUp", "SignatureDoesNotMatch",
		"AuthorizationQueryParametersError", "InvalidRequestSignature", "RequestTimeTooSkewed", "PermanentRedirect", "TemporaryRedirect", "Redirect",
		"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "InvalidRegion", "NoSuchBucket", "NoSuchKey", "NotFound",
		"RequestTimeout", "IncompleteBody", "BadDigest", "OperationAborted", "ConditionalRequestConflict", "EntityTooLarge", "QuotaExceeded",
		"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientCapacity", "AccessDenied", "AllAccessDisabled", "AccountProblem", "Other",
	} {
		add(code, &failure{status: 400, code: code, cause: io.EOF})
		add(code+" without a status", &failure{code: code, cause: io.EOF})
	}
	add("301 of a region", &failure{status: 301, region: "eu-1", cause: io.EOF})
	add("another region", &failure{status: 400, code: "AuthorizationHeaderMalformed", region: "eu-1", cause: io.EOF})
	add("403 of a region", &failure{status: 403, region: "eu-1", cause: io.EOF})
	add("later", &failure{status: 503, after: 1, cause: io.EOF})
	add("refused here", &failure{cause: &refusal{io.EOF}})
	add("no credentials", &failure{cause: &credentialsError{io.EOF}})
	add("cut short", &failure{status: 200, cause: &lengthError{1, 2}})
	unread := func(err error) error { // whatever the network says becomes a failure first
		if failureOf(err) != nil {
			return err
		}
		return &failure{cause: err}
	}
	judge := func(err error) loader.Verdict {
		v, _ := classify(unread(err))
		return v
	}
	describe := func(op string, err error) error {
		if known := (*loader.Error)(nil); errors.As(err, &known) {
			return err
		}
		return failed(op, unread(err))
	}
	connect := func(err error) error { return failed("open s3://bucket/", unread(err)) }
	loadertest.Verdicts(t, judge, describe, connect, all...)
}

// classify is what the back-ends make of an error; ok is false for an error that no object store has made.
func classify(err error) (v loader.Verdict, ok bool) {
	_, ok = FaultOf(err)
	return loader.Judge(err, FaultOf), ok
}
