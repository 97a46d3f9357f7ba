package objstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/terapush/terapush/pkg/loader"
)

// checkLifecycle looks for rules by which the store itself removes what a run has put.
func (s *Store) checkLifecycle(ctx context.Context) loader.Finding {
	const check = "lifecycle"
	found, err := asking(ctx, func(ctx context.Context) (*s3.GetBucketLifecycleConfigurationOutput, error) {
		return s.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &s.bucket})
	})
	if err != nil && read(err).code != "NoSuchLifecycleConfiguration" {
		return s.unanswered(check, "s3:GetLifecycleConfiguration", err)
	}
	if err == nil {
		for _, r := range found.Rules {
			if when, applies := removes(r, s.under()); applies {
				return loader.Finding{Check: check, Grade: loader.GradeWarn,
					Found: fmt.Sprintf("rule %q removes objects below %s %s: a run that is resumed or verified later finds them gone", aws.ToString(r.ID), s, when),
					Fix:   "choose another prefix than " + printable(prefixOfRule(r)) + ", or end the rule: aws s3api get-bucket-lifecycle-configuration --bucket " + s.bucket + " shows it"}
			}
		}
	}
	return loader.Finding{Check: check, Grade: loader.GradeOK, Found: "no rule removes objects below " + s.String()}
}

// removes reports whether a rule is about current objects below a prefix, and when it removes them. Which objects have the
// tag that a rule may ask for is not known: ours have none.
func removes(r types.LifecycleRule, under string) (when string, applies bool) {
	if r.Status != types.ExpirationStatusEnabled || r.Expiration == nil || tagged(r.Filter) {
		return "", false
	}
	p := prefixOfRule(r)
	if !strings.HasPrefix(under, p) && !strings.HasPrefix(p, under) {
		return "", false
	}
	switch {
	case r.Expiration.Days != nil:
		return fmt.Sprintf("after %d days", *r.Expiration.Days), true
	case r.Expiration.Date != nil:
		return "from " + r.Expiration.Date.Format("2006-01-02") + " on", true
	}
	return "", false // only of markers of what is gone
}

func tagged(f *types.LifecycleRuleFilter) bool {
	return f != nil && (f.Tag != nil || f.And != nil && len(f.And.Tags) > 0)
}

// prefixOfRule is what the rule's keys begin with: rules of the first API have it beside the filter.
func prefixOfRule(r types.LifecycleRule) string {
	switch f := r.Filter; {
	case f == nil:
		return aws.ToString(r.Prefix) //nolint:staticcheck // deprecated for writers; stores still answer with it
	case f.And != nil:
		return aws.ToString(f.And.Prefix)
	default:
		return aws.ToString(f.Prefix)
	}
}

func printable(prefix string) string {
	if prefix == "" {
		return "any of this bucket's"
	}
	return prefix
}
