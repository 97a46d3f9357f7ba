package sqlload

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/terapush/terapush/pkg/loader"
)

// TableCheck is what the doctor has found out about the table.
type TableCheck struct {
	*State            // with the names of what is there; Relation is nil where nothing is
	Missing  []string // the tables that the run would make
	Findings []loader.Finding
}

// Check looks whether Prepare would succeed, and changes nothing. An error says that the server could not be asked.
func (t *Table) Check(ctx context.Context, c Conn, i loader.Intent) (*TableCheck, error) {
	k := &TableCheck{State: t.Plan(i.Preparation)}
	s := k.State
	found, err := t.Locate(ctx, c, s)
	switch {
	case err != nil:
		return k, t.refused(ctx, k, "table", err)
	case found == nil:
		k.Missing = append(k.Missing, s.Table)
		k.ok("table", "there is no table "+s.Table+"; the run makes it")
	case s.Want.Create == loader.CreateRecreate:
		k.Missing = append(k.Missing, s.Table)
		k.ok("table", s.Table+" is there; the run drops it and makes it anew")
	default:
		if err := t.Fits(ctx, c, s, found); err != nil {
			if err := t.refused(ctx, k, "table", err); err != nil {
				return k, err
			}
			break
		}
		k.ok("table", s.Table+" is there and takes the rows of dataset "+s.Schema.Dataset)
	}
	s.Relation = found
	if !s.claims() {
		return k, nil
	}
	there, err := t.Claims.CheckClaims(ctx, c, s)
	switch {
	case err != nil:
		return k, t.refused(ctx, k, "claim table", t.Failed("check the claim table", err))
	case there:
		k.ok("claim table", s.Claims+" is there, keyed, and open to this user")
	case s.Want.Resume:
		return k, t.refused(ctx, k, "claim table", loader.NoClaims(s.Claims))
	default:
		k.Missing = append(k.Missing, s.Claims)
	}
	return k, nil
}

// refused adds the finding of what Prepare would say. The error is err where that says nothing about the table, as the
// connection is gone.
func (t *Table) refused(ctx context.Context, k *TableCheck, check string, err error) error {
	f := loader.Finding{Check: check, Grade: loader.GradeFail, Found: err.Error()}
	gone := t.gone(ctx, err)
	if gone || t.Classify(err).Retry { // at the next moment the answer may be another
		f.Grade, f.Found = loader.GradeUnknown, "the server does not say: "+f.Found
	} else if told := (*loader.Error)(nil); errors.As(err, &told) && told.Err != nil {
		f.Found, f.Fix = told.Err.Error(), told.Hint
	}
	k.Findings = append(k.Findings, f)
	if gone {
		return err
	}
	return nil
}

func (k *TableCheck) ok(check, found string) {
	k.Findings = append(k.Findings, loader.Finding{Check: check, Grade: loader.GradeOK, Found: found})
}

// Check is a question of the doctor about the server or the table, and what its answer means for a push.
type Check struct {
	Name string
	Ask  string // a query; "": the answer is known already
	// Judge returns the finding on the values of the answer, row after row; nil if there is none. One without a grade is
	// left out, and one without a name has the check's.
	Judge func(values []string) loader.Finding
	// Hidden returns the finding where the server does not answer; nil: the one that Ask has for all.
	Hidden func(error) loader.Finding
}

// OK is a finding of what is as it should be.
func OK(found string) loader.Finding { return loader.Finding{Grade: loader.GradeOK, Found: found} }

// Warn is a finding of what costs time or is probably not wanted.
func Warn(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeWarn, Found: found, Fix: fix}
}

// Fail is a finding of what would stop the push.
func Fail(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeFail, Found: found, Fix: fix}
}

// Ask goes through the checks; those that ask the same are answered at once. What the server does not answer is a finding,
// with the fix that grant gives for it; a nil grant: all checks have Hidden. An error says that the connection is gone.
func (t *Table) Ask(ctx context.Context, c Conn, checks []Check, grant func(error) string) (findings []loader.Finding, err error) {
	type answer struct {
		values []string
		err    error
	}
	answers := map[string]answer{"": {}}
	for _, check := range checks {
		a, asked := answers[check.Ask]
		if !asked {
			rows, err := Rows(ctx, c, check.Ask)
			a = answer{slices.Concat(rows...), err}
			answers[check.Ask] = a
		}
		var f loader.Finding
		switch {
		case a.err == nil:
			f = check.Judge(a.values)
		case asked:
		case check.Hidden != nil:
			f = check.Hidden(a.err)
		default:
			f = loader.Finding{Grade: loader.GradeUnknown, Found: "the server does not say: " + a.err.Error(), Fix: grant(a.err)}
		}
		if f.Check = cmp.Or(f.Check, check.Name); f.Grade != "" {
			findings = append(findings, f)
		}
		if a.err != nil && t.gone(ctx, a.err) {
			return findings, a.err
		}
	}
	return findings, nil
}

// gone reports whether nothing more can be asked after err.
func (t *Table) gone(ctx context.Context, err error) bool {
	v := t.Classify(err)
	return ctx.Err() != nil || v.SessionDead && v.Class != loader.ClassOther // other is every refusal of ours, too
}
