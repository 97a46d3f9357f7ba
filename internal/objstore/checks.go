package objstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/terapush/terapush/pkg/loader"
)

// questionTime bounds each question of CheckServer.
const questionTime = 4 * time.Second

// CheckServer looks at the bucket for what would stop or slow a push down. It lists one key and asks about the bucket, and
// writes nothing: whether objects may be put, the first one shows. reader is what loads the objects afterwards, such as
// "Doris"; "" where the objects are the goal. The error is that nobody answers.
func (s *Store) CheckServer(ctx context.Context, i loader.Intent, reader string) ([]loader.Finding, error) {
	first, err := s.checkListing(ctx)
	if err != nil || first.Grade != loader.GradeOK {
		return []loader.Finding{first}, err
	}
	all := append([]loader.Finding{first}, s.checkHead(ctx)...)
	all = append(all, s.checkRoute(ctx, i.Workers)...)
	all = append(all, s.checkVersions(ctx, reader)...)
	all = append(all, s.checkLifecycle(ctx))
	if reader != "" {
		all = append(all, s.readerView(reader))
	}
	return all, nil
}

// asking bounds one question.
func asking[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	return ask(ctx)
}

func (s *Store) checkListing(ctx context.Context) (loader.Finding, error) {
	began := time.Now()
	_, err := asking(ctx, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.under()), MaxKeys: aws.Int32(1)})
	})
	finding := loader.Finding{Check: "bucket"}
	if err == nil {
		finding.Grade = loader.GradeOK
		finding.Found = fmt.Sprintf("%s was listed in %s; whether objects may be put there is not tried, since nothing is written",
			s, time.Since(began).Round(100*time.Microsecond))
		return finding, nil
	}
	f := read(err)
	if f.status == 0 {
		return loader.Finding{}, failed("list "+s.String(), err)
	}
	finding.Grade, finding.Found, finding.Fix = loader.GradeFail, fmt.Sprintf("%s cannot be listed: %v", s, f), f.fault().Hint
	if f.fault().Retry { // too busy, or broken at the moment
		finding.Grade = loader.GradeUnknown
	}
	return finding, nil
}

// checkHead asks for the bucket's region, and reads the clock of whoever answers.
func (s *Store) checkHead(ctx context.Context) []loader.Finding {
	head, err := asking(ctx, func(ctx context.Context) (*s3.HeadBucketOutput, error) {
		return s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	})
	if err != nil {
		f := read(err)
		if f.region == "" {
			return []loader.Finding{s.unanswered("region", "s3:ListBucket", err)}
		}
		return []loader.Finding{s.regionFinding(f.region)}
	}
	all := []loader.Finding{s.regionFinding(aws.ToString(head.BucketRegion))}
	if skew, known := skewOf(head.ResultMetadata, time.Now()); known {
		all = append(all, clockFinding(skew))
	}
	return all
}

func (s *Store) regionFinding(region string) loader.Finding {
	switch region {
	case "":
		return loader.Finding{Check: "region", Grade: loader.GradeOK,
			Found: fmt.Sprintf("the store names no region, and takes requests signed for %s", s.region)}
	case s.region:
		return loader.Finding{Check: "region", Grade: loader.GradeOK, Found: "the bucket is in " + region + ", as requests say"}
	}
	// The listing was answered, so a request for the wrong region is: by a store that does not mind, or by one that
	// sends a redirect with the first body.
	return loader.Finding{Check: "region", Grade: loader.GradeWarn,
		Found: fmt.Sprintf("the bucket is in %s, and requests are signed for %s: where they are taken at all they go the long way, and are paid for as such", region, s.region),
		Fix:   "write ?region=" + region + " into the s3:// URL"}
}

// skewOf is how far the store's clock is ahead of now, to the second, as an answer says it.
func skewOf(m middleware.Metadata, now time.Time) (skew time.Duration, known bool) {
	answer, is := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response)
	if !is || answer == nil || answer.Response == nil {
		return 0, false
	}
	at, err := http.ParseTime(answer.Header.Get("Date"))
	return at.Sub(now).Truncate(time.Second), err == nil
}

// skewWarned leaves some way to the 15 minutes at which signatures are refused ("RequestTimeTooSkewed").
const skewWarned = 5 * time.Minute

func clockFinding(skew time.Duration) loader.Finding {
	f := loader.Finding{Check: "clock", Grade: loader.GradeOK, Found: "this machine's clock and the store's agree"}
	if skew.Abs() > time.Second { // an answer's date has no fractions
		f.Found = fmt.Sprintf("this machine's clock and the store's are %s apart, and signatures are good for 15 minutes", skew.Abs())
	}
	if skew.Abs() > skewWarned {
		f.Grade, f.Fix = loader.GradeWarn, "sudo chronyc makestep"
	}
	return f
}

// checkVersions asks what becomes of objects that are overwritten and removed.
func (s *Store) checkVersions(ctx context.Context, reader string) []loader.Finding {
	const check = "versioning"
	found, err := asking(ctx, func(ctx context.Context) (*s3.GetBucketVersioningOutput, error) {
		return s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &s.bucket})
	})
	switch {
	case err != nil:
		return []loader.Finding{s.unanswered(check, "s3:GetBucketVersioning", err)}
	case found.Status != types.BucketVersioningStatusEnabled: // and so no lock either: it needs versions
		return []loader.Finding{{Check: check, Grade: loader.GradeOK, Found: "off: what is overwritten or removed is gone, and paid for no more"}}
	}
	f := loader.Finding{Check: check, Grade: loader.GradeWarn,
		Found: "on: a batch that is sent again leaves an old version behind, which is paid for",
		Fix:   "aws s3api put-bucket-versioning --bucket " + s.bucket + " --versioning-configuration Status=Suspended",
	}
	if reader != "" {
		f.Found = "on: objects that are removed when " + reader + " has loaded them stay as old versions, and are paid for"
	}
	return []loader.Finding{f, s.checkLock(ctx)}
}

func (s *Store) checkLock(ctx context.Context) loader.Finding {
	const check = "object lock"
	found, err := asking(ctx, func(ctx context.Context) (*s3.GetObjectLockConfigurationOutput, error) {
		return s.client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: &s.bucket})
	})
	none := loader.Finding{Check: check, Grade: loader.GradeOK, Found: "objects have no retention by default"}
	switch {
	case err != nil && slices.Contains([]string{"ObjectLockConfigurationNotFoundError", "NoSuchObjectLockConfiguration"}, read(err).code):
		return none
	case err != nil:
		return s.unanswered(check, "s3:GetBucketObjectLockConfiguration", err)
	}
	c := found.ObjectLockConfiguration
	if c == nil || c.Rule == nil || c.Rule.DefaultRetention == nil {
		return none
	}
	r := c.Rule.DefaultRetention
	kept := fmt.Sprintf("%d days", aws.ToInt32(r.Days))
	if r.Days == nil {
		kept = fmt.Sprintf("%d years", aws.ToInt32(r.Years))
	}
	return loader.Finding{Check: check, Grade: loader.GradeWarn,
		Found: fmt.Sprintf("every object is kept for %s (%s): none can be removed earlier, and Amazon wants a checksum with each PUT, which terapush does not send", kept, r.Mode),
		Fix:   "take a bucket without a default retention, or: aws s3api put-object-lock-configuration --bucket " + s.bucket + " --object-lock-configuration ObjectLockEnabled=Enabled"}
}

// unanswered is the finding for a question that has no answer: a right that is missing, or a store that has no such
// thing.
func (s *Store) unanswered(check, action string, err error) loader.Finding {
	f := read(err)
	finding := loader.Finding{Check: check, Grade: loader.GradeUnknown, Found: "the store does not say: " + f.Error()}
	switch {
	case f.fault().Class == loader.ClassPermission:
		finding.Fix = fmt.Sprintf("allow %s on arn:aws:s3:::%s to the credentials", action, s.bucket)
	case errors.Is(f.cause, context.DeadlineExceeded):
		finding.Found = fmt.Sprintf("the store has not said within %s", questionTime)
	}
	return finding
}

// readerView says what no client can see.
func (s *Store) readerView(reader string) loader.Finding {
	at := s.serverEndpoint
	if at == "" {
		at = s.endpoint
	}
	if at == "" {
		at = "Amazon S3 in " + s.region
	}
	return loader.Finding{Check: "store from the server", Grade: loader.GradeUnknown,
		Found: fmt.Sprintf("%s reads the objects from %s itself: whether it reaches that, the first commit shows", reader, at),
		Fix:   "if the server knows the store by another address, add server_endpoint=https://host:port to --via"}
}
