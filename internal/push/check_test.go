package push_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// ward is a driver whose servers can be checked.
type ward struct {
	loader.Driver
	endpoint string
	findings []loader.Finding
	err      error
	asked    []loader.Intent
}

func (w *ward) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	l, err := w.Driver.Open(ctx, t, d)
	if err != nil {
		return nil, err
	}
	return patient{l.(whole), w}, nil
}

type patient struct {
	whole
	ward *ward
}

func (p patient) Server() loader.Server {
	s := p.whole.Server()
	s.Endpoint = p.ward.endpoint
	return s
}

func (p patient) CheckServer(_ context.Context, i loader.Intent) ([]loader.Finding, error) {
	p.ward.asked = append(p.ward.asked, i)
	return p.ward.findings, p.ward.err
}

// checkedBy is a job on such a server.
func (p *place) checkedBy(args string, w *ward) push.Job {
	p.Helper()
	j := p.job(args)
	w.Driver = meddler{p.memory.Driver(), p}
	var err error
	j.Drivers, err = loader.NewRegistry(w)
	require.NoError(p, err)
	return j
}

func finding(grade loader.Grade, check string) loader.Finding {
	f := loader.Finding{Check: check, Grade: grade, Found: "is " + string(grade)}
	if grade == loader.GradeWarn || grade == loader.GradeFail {
		f.Fix = "SET " + check
	}
	return f
}

func TestThePreflightChecksTheServer(t *testing.T) {
	p := newPlace(t)
	w := &ward{findings: []loader.Finding{
		finding(loader.GradeOK, "a"), finding(loader.GradeWarn, "b"), finding(loader.GradeUnknown, "c"), finding(loader.GradeWarn, "d"),
		finding(loader.GradeWarn, "e"), finding(loader.GradeWarn, "f"), finding(loader.GradeWarn, "g"),
	}}
	r, err := push.Run(t.Context(), p.checkedBy(small, w))
	require.NoError(t, err)
	require.Equal(t, []string{
		"b: is warn; fix: SET b", "d: is warn; fix: SET d", "e: is warn; fix: SET e", "2 more about the server: terapush doctor lists them",
	}, r.Warnings)
	p.exact(0, 195)

	require.Len(t, w.asked, 1)
	i := w.asked[0]
	require.Equal(t, p.run(), i.Run)
	require.Equal(t, 4, i.Workers)
	require.EqualValues(t, 10, i.Contract.BatchRows)
	require.Positive(t, i.BatchBytes)
	require.Equal(t, i.BatchBytes/10*195, i.TotalBytes)
	require.False(t, i.Silent)
}

func TestWhatWouldStopAPushEndsThePreflight(t *testing.T) {
	const stops = "the server would stop the push: b: is fail; fix: SET b\nthe server would stop the push: c: is fail; fix: SET c"
	for name, c := range map[string]struct {
		args    string
		prepare error
		want    string
		last    string // that was asked of the server
	}{
		"before a table is dropped":   {small + " --create recreate", nil, stops, "open"},
		"before a table is emptied":   {small + " --create truncate", nil, stops, "open"},
		"before the table is probed":  {small, nil, stops, "prepare"},
		"after the server's own word": {small, errors.New("you may not"), "you may not", "prepare"},
	} {
		t.Run(name, func(t *testing.T) {
			p, last := newPlace(t), ""
			p.meddle = func(_ context.Context, op string, _ int64) error {
				if last = op; op == "prepare" {
					return c.prepare
				}
				return nil
			}
			w := &ward{findings: []loader.Finding{finding(loader.GradeFail, "b"), finding(loader.GradeOK, "a"), finding(loader.GradeFail, "c")}}
			_, err := push.Run(t.Context(), p.checkedBy(c.args, w))
			require.EqualError(t, err, c.want)
			require.Equal(t, report.PreflightFailed, push.OutcomeOf(err))
			require.Equal(t, c.last, last)
		})
	}
}

func TestChecksThatFailStopNothing(t *testing.T) {
	p := newPlace(t)
	r, err := push.Run(t.Context(), p.checkedBy(small, &ward{err: errors.New("it went away")}))
	require.NoError(t, err)
	require.Equal(t, []string{"the server could not be checked: it went away"}, r.Warnings)
}

func TestOneWhoWantsOnlyTheLoadIsNotChecked(t *testing.T) {
	p := newPlace(t)
	w := &ward{findings: []loader.Finding{finding(loader.GradeFail, "b")}}
	_, err := push.Run(t.Context(), p.checkedBy(small+" --create never --delivery at-least-once --verify none", w))
	require.NoError(t, err)
	require.Empty(t, w.asked)
}

func TestCheckServer(t *testing.T) {
	p := newPlace(t)
	w := &ward{endpoint: "db:5432", findings: []loader.Finding{finding(loader.GradeFail, "b"), finding(loader.GradeOK, "a")}}
	e, err := push.CheckServer(t.Context(), p.checkedBy(small+" --memory 1GiB --create never --delivery at-least-once", w))
	require.NoError(t, err)
	require.Equal(t, w.findings, e.Findings)
	require.Equal(t, "db:5432", e.Endpoint)
	require.Equal(t, 4, e.Workers)
	require.EqualValues(t, 1<<30, e.Memory)
	require.Equal(t, w.asked[0].BatchBytes, e.BatchBytes)
	require.False(t, w.asked[0].Silent, "who calls a doctor wants to be asked")
	require.Empty(t, p.memory.Applied())
}

func TestCheckServerOfARunByDuration(t *testing.T) {
	w := &ward{}
	_, err := push.CheckServer(t.Context(), newPlace(t).checkedBy("--duration 5s", w))
	require.NoError(t, err)
	require.Zero(t, w.asked[0].TotalBytes)
}

func TestWhatGoesWrongIsAFinding(t *testing.T) {
	hint := &loader.Error{Op: "connect", Err: errors.New("refused\nby the server"), Hint: "check the port"}
	for name, c := range map[string]struct {
		args string
		ward ward
		open error
		want []loader.Finding
	}{
		"nobody there": {small, ward{}, hint, []loader.Finding{
			{Check: "connection", Grade: loader.GradeFail, Found: "opening memory://u@h/d: connect: refused; by the server", Fix: "check the port"},
		}},
		"no plan": {small + " --memory 1KiB", ward{endpoint: "https://db.example/x"}, nil, []loader.Finding{
			{Check: "connection", Grade: loader.GradeOK, Found: "at db.example:443"}, {Check: "plan", Grade: loader.GradeFail},
		}},
		"gone": {small, ward{findings: []loader.Finding{finding(loader.GradeOK, "a")}, err: errors.New("gone")}, nil, []loader.Finding{
			finding(loader.GradeOK, "a"), {Check: "server", Grade: loader.GradeFail, Found: "gone"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if c.open != nil {
				p.failOn("open", c.open)
			}
			e, err := push.CheckServer(t.Context(), p.checkedBy(c.args, &c.ward))
			require.NoError(t, err)
			require.Len(t, e.Findings, len(c.want))
			for i, want := range c.want {
				require.Equal(t, want.Check, e.Findings[i].Check)
				require.Equal(t, want.Grade, e.Findings[i].Grade)
				if want.Grade == loader.GradeOK && want.Check == "connection" {
					require.True(t, strings.HasSuffix(e.Findings[i].Found, want.Found), e.Findings[i].Found)
				} else if want.Found != "" {
					require.Equal(t, want, e.Findings[i])
				}
			}
		})
	}
}

func TestABackEndWithoutChecks(t *testing.T) {
	e, err := push.CheckServer(t.Context(), newPlace(t).job(small))
	require.NoError(t, err)
	require.Len(t, e.Findings, 1)
	require.Equal(t, loader.GradeOK, e.Findings[0].Grade)
}

func TestCheckServerRefusesUsageAndStops(t *testing.T) {
	_, err := push.CheckServer(t.Context(), newPlace(t).job(small+" --set x"))
	require.Equal(t, push.Usage, push.OutcomeOf(err))

	p := newPlace(t)
	j := p.checkedBy(small, &ward{})
	p.meddle = func(ctx context.Context, _ string, _ int64) error {
		close(p.drain)
		<-ctx.Done()
		return ctx.Err()
	}
	_, err = push.CheckServer(t.Context(), j)
	require.Equal(t, report.Interrupted, push.OutcomeOf(err))
}

// What the preflight refuses of a table that is there, the doctor does, in the same words; it makes nothing and sends no row.
func TestCheckServerLooksAtRows(t *testing.T) {
	const held, fix = "prepare: table memory holds rows", "choose --append to add to it, another --table, or --create recreate or truncate for one that terapush made"
	for args, c := range map[string]struct{ found, fix string }{
		"":                          {held, fix},
		" --first-key 1000":         {held, fix},
		" --append":                 {},
		" --append --first-key 195": {},
		" --append --first-key 0":   {"195 rows of table memory have keys from 0 to 194, which the run needs: choose a larger --first-key", ""},
		" --create recreate":        {},
		" --create truncate":        {},
		" --create never --delivery at-least-once": {}, // a push looks at nothing either
	} {
		p := newPlace(t)
		p.succeeds(small)
		p.meddle = func(_ context.Context, op string, _ int64) error {
			if op == "probe" || op == "reserve" {
				return errors.New("the doctor changes nothing")
			}
			return nil
		}
		e, err := push.CheckServer(t.Context(), p.checkedBy(small+args, &ward{}))
		require.NoError(t, err)
		if c.found == "" {
			require.Empty(t, e.Findings, args)
		} else {
			require.Equal(t, []loader.Finding{{Check: "rows", Grade: loader.GradeFail, Found: c.found, Fix: c.fix}}, e.Findings, args)
			_, err := push.Run(t.Context(), p.checkedBy(small+args, &ward{}))
			require.ErrorContains(t, err, c.found)
		}
		p.exact(0, 195)
	}

	p := newPlace(t)
	p.failOn("prepare", fmt.Errorf("table memory %w", loader.ErrNoTable))
	e, err := push.CheckServer(t.Context(), p.checkedBy(small, &ward{}))
	require.NoError(t, err)
	require.Empty(t, e.Findings, "the run makes it")
}
