package sqlload

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/terapush/terapush/pkg/loader"
)

// TableCheck is what Table.Check has found.
type TableCheck struct {
	*State            // with the names of what exists
	Missing  []string // the tables that the run would make
	Findings []loader.Finding
}

// Check checks whether Prepare would succeed, and changes nothing. An error means that the server could not be asked.
func (t *Table) Check(ctx context.Context, c Conn, i loader.Intent) (*TableCheck, error) {
	k := &TableCheck{State: t.Plan(i.Preparation)}
	s := k.State
	found, err := t.Locate(ctx, c, s)
	fits := err == nil && found != nil && s.Want.Create != loader.CreateRecreate
	if fits {
		err = t.Fits(ctx, c, s, found)
	}
	switch {
	case err != nil:
		if err := t.failure(ctx, c, k, "table", err); err != nil || !fits {
			return k, err
		}
	case found == nil:
		k.Missing = append(k.Missing, s.Table)
		k.add("table", OK("there is no table "+s.Table+"; the run makes it"))
	case !fits:
		k.Missing = append(k.Missing, s.Table)
		k.add("table", OK(s.Table+" exists; the run drops it and makes it again"))
	default:
		k.add("table", OK(s.Table+" exists and takes the rows of dataset "+s.Schema.Dataset))
	}
	s.Relation = found
	if !s.claims() {
		return k, nil
	}
	exists, err := t.Claims.CheckClaims(ctx, c, s)
	switch {
	case err != nil:
		return k, t.failure(ctx, c, k, "claim table", t.Failed("check the claim table", err))
	case exists:
		k.add("claim table", OK(s.Claims+" exists, is keyed, and this user may use it"))
	case s.Want.Resume:
		return k, t.failure(ctx, c, k, "claim table", loader.NoClaims(s.Claims))
	default:
		k.Missing = append(k.Missing, s.Claims)
	}
	return k, t.checkRuns(ctx, c, k)
}

// CheckServer implements loader.Checker: it asks about the table and its claims. Most back-ends have a CheckServer of
// their own, which asks more.
func (t *Table) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	err = t.connect(ctx, func(c Conn) error {
		found, err := t.Check(ctx, c, i)
		findings = found.Findings
		return err
	})
	return findings, t.Failed("check the server", err)
}

// checkRuns checks that this user may write the runs' rows, by a statement that changes none, and that no other run has
// the table.
func (t *Table) checkRuns(ctx context.Context, c Conn, k *TableCheck) error {
	s := k.State
	_, err := Rows(ctx, c, s.lookForRuns())
	if t.isMissing(err) {
		k.Missing = append(k.Missing, s.Runs())
		return nil
	}
	if err != nil {
		return nil //nolint:nilerr // checks of privileges say so, and Prepare does
	}
	_, err = c.Exec(ctx, s.updateRuns("state = state", "1 = 0"))
	switch {
	case err != nil && t.Classify(err).Class == loader.ClassPermission:
		err = t.denied(ctx, c, "change the table "+s.Runs(), err, "SELECT, INSERT, UPDATE, DELETE", s.Runs(), "")
		return t.failure(ctx, c, k, "runs", err)
	case err != nil || s.Want.Begin == nil:
		return nil //nolint:nilerr // other checks say that a server takes no rows
	}
	err = t.refuseOpen(ctx, c, s, loader.RunRow{Name: s.Want.Run, Appends: s.Want.Begin.Appends})
	if err != nil {
		return t.failure(ctx, c, k, "runs", err)
	}
	return nil
}

func (k *TableCheck) add(check string, f loader.Finding) {
	f.Check = check
	k.Findings = append(k.Findings, f)
}

// failure adds Prepare's error as a finding. It returns err if the connection is lost, and nothing more can be asked.
func (t *Table) failure(ctx context.Context, c Conn, k *TableCheck, check string, err error) error {
	f := Fail(loader.Explain(err), "")
	lost := t.lost(ctx, c, err)
	if lost || t.Classify(err).Retry { // the next answer may be another
		f.Grade, f.Found = loader.GradeUnknown, "the server does not say: "+f.Found
	} else if known := (*loader.Error)(nil); errors.As(err, &known) && known.Err != nil {
		f.Found, f.Fix = known.Err.Error(), loader.HintOf(err)
	}
	k.add(check, f)
	if lost {
		return err
	}
	return nil
}

// Check is one question of the doctor about the server or the table.
type Check struct {
	Name string
	Ask  string // a query; "" if the answer is known already
	// Judge returns the finding for the values of the answer, row after row; nil if there are none. A finding without a
	// grade is left out, and one without a name gets the check's.
	Judge func(values []string) loader.Finding
	// Advice marks a check of what only costs time, which is left out unless the intent asks for it.
	Advice bool
	// Hidden returns the finding for an error of the query; nil is the finding of Table.Ask.
	Hidden func(error) loader.Finding
}

// OK returns a finding that everything is in order.
func OK(found string) loader.Finding { return loader.Finding{Grade: loader.GradeOK, Found: found} }

// Warn returns a finding that costs time or is probably not wanted.
func Warn(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeWarn, Found: found, Fix: fix}
}

// Fail returns a finding that would stop the push.
func Fail(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeFail, Found: found, Fix: fix}
}

// Ask runs the checks; those with the same query share its answer. An unanswered query is a finding, with the fix that
// grant returns; grant may be nil if all checks have Hidden. An error means that the connection is lost.
func (t *Table) Ask(
	ctx context.Context, c Conn, i loader.Intent, checks []Check, grant func(error) string,
) (findings []loader.Finding, err error) {
	type answer struct {
		values []string
		err    error
	}
	answers := map[string]answer{"": {}}
	for _, check := range checks {
		if check.Advice && !i.Advice {
			continue
		}
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
			f = loader.Finding{Grade: loader.GradeUnknown, Found: "the server does not say: " + loader.Explain(a.err), Fix: grant(a.err)}
		}
		if f.Check = cmp.Or(f.Check, check.Name); f.Grade != "" {
			findings = append(findings, f)
		}
		if a.err != nil && t.lost(ctx, c, a.err) {
			return findings, a.err
		}
	}
	return findings, nil
}

// lost reports whether the connection of err, or the time for questions, has ended. It asks again, since an error that
// ends the session of a load may have ended one query only, as MySQL's 1317 does. ClassOther includes all refusals of
// ours.
func (t *Table) lost(ctx context.Context, c Conn, err error) bool {
	broken := func(err error) bool {
		v := t.Classify(err)
		return err != nil && v.SessionDead && v.Class != loader.ClassOther
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true // the next query would wait as long
	}
	if ctx.Err() == nil && broken(err) {
		_, err = Rows(ctx, c, "SELECT 1")
	}
	return ctx.Err() != nil || broken(err)
}
