package sqlload

import (
	"context"
	"errors"

	"github.com/terapush/terapush/pkg/loader"
)

// Checked is what the doctor has found out about the table.
type Checked struct {
	*State            // with the names of what is there; Relation is nil where nothing is
	Missing  []string // the tables that the run would make
	Findings []loader.Finding
}

// Check looks whether Prepare would succeed, and changes nothing. An error says that the server could not be asked.
func (t *Table) Check(ctx context.Context, c Conn, i loader.Intent) (*Checked, error) {
	k := &Checked{State: t.Plan(i.Preparation)}
	s := k.State
	found, err := t.Locate(ctx, c, s)
	switch {
	case err != nil:
		return k, t.refused(k, "table", err)
	case found == nil:
		k.Missing = append(k.Missing, s.Table)
		k.ok("table", "there is no table "+s.Table+"; the run makes it")
	case s.Want.Create == loader.CreateRecreate:
		k.Missing = append(k.Missing, s.Table)
		k.ok("table", s.Table+" is there; the run drops it and makes it anew")
	default:
		if err := t.Fits(ctx, c, s, found); err != nil {
			if err := t.refused(k, "table", err); err != nil {
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
		return k, t.refused(k, "claim table", t.Failed("check the claim table", err))
	case there:
		k.ok("claim table", s.Statements.Claims+" is there, keyed, and open to this user")
	case s.Want.Resume:
		return k, t.refused(k, "claim table", loader.NoClaims(s.Statements.Claims))
	default:
		k.Missing = append(k.Missing, s.Statements.Claims)
	}
	return k, nil
}

// refused adds the finding of what Prepare would say. The error is err where that says nothing about the table, as the
// connection is gone.
func (t *Table) refused(k *Checked, check string, err error) error {
	f := loader.Finding{Check: check, Grade: loader.GradeFail, Found: err.Error()}
	class := t.Classify(err).Class
	gone := class == loader.ClassConnection || class == loader.ClassTimeout || errors.Is(err, context.Canceled)
	if gone {
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

func (k *Checked) ok(check, found string) {
	k.Findings = append(k.Findings, loader.Finding{Check: check, Grade: loader.GradeOK, Found: found})
}
