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

// Check, a dry run and the preflight refuse the same. None of these has asked a server.
func TestCheck(t *testing.T) {
	for args, want := range map[string][]string{
		small: nil,
		small + " --rows 5 --bytes 1MB --dataset nothing --verify full": {
			"--rows, --bytes and --duration exclude each other", `dataset "nothing" does not exist`,
		},
		small + " --method gone --workers 5000":    {"--workers 5000: 1 to 4096", `method "gone" does not exist`},
		small + " --set unfit=1 --retries -1":      {"--retries -1: 0 or more", "--set unfit: memory has no such variable"},
		small + " --memory 1KiB":                   {"more than --memory 1.0 KiB: raise --memory"},
		small + " --format values":                 {`method keep does not take format "values"`},
		small + " --commit-batches 4":              {"method keep loads every batch by itself"},
		small + " --first-key 4611686018427387904": {"dataset documents has rows 0 to"},
		small + " --staging s3://bucket/prefix":    {"leave out --staging"},
		"--rows 9223372036854775807":               {"9223372036854775807 rows: a run has 1 to 1"},
	} {
		p := newFixture(t)
		p.failOn("open", errors.New("it connects"))
		j := p.job(args)
		before := j.Config
		_, err := push.NewOutline(&j.Config, j.Drivers)
		require.Equal(t, before, j.Config, "it is the caller's")
		if want == nil {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err, args)
		require.Len(t, strings.Split(err.Error(), "\n"), len(want), err.Error())
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
	}

	// What a sweep's values give to a configuration need not have gone through flags.
	p := newFixture(t)
	j := p.job(small)
	j.Config.Resume = "20260102-030405-abcdef"
	_, err := push.NewOutline(&j.Config, j.Drivers)
	require.NoError(t, err, "a dry run takes no run over")
	j.Config.Verify = "sometimes"
	_, err = push.NewOutline(&j.Config, j.Drivers)
	require.ErrorContains(t, err, `verify mode "sometimes" does not exist`)
}

// checking is a loader of a server that can be checked.
type checking struct {
	hooked
	endpoint string
	findings []loader.Finding
	err      error
	asked    *[]loader.Intent
}

func (l checking) Server() loader.Server {
	s := l.hooked.Server()
	s.Endpoint = l.endpoint
	return s
}

func (l checking) CheckServer(_ context.Context, i loader.Intent) ([]loader.Finding, error) {
	*l.asked = append(*l.asked, i)
	return l.findings, l.err
}

// checks makes the server one that can be checked, and returns what it is asked.
func (p *fixture) checks(c checking) (asked *[]loader.Intent) {
	c.asked = new([]loader.Intent)
	p.wrap = func(h hooked) loader.Loader {
		c.hooked = h
		return c
	}
	return c.asked
}

func finding(grade loader.Grade, check string) loader.Finding {
	f := loader.Finding{Check: check, Grade: grade, Found: "is " + string(grade)}
	if grade == loader.GradeWarn || grade == loader.GradeFail {
		f.Fix = "SET " + check
	}
	return f
}

func TestPreflightChecksTheServer(t *testing.T) {
	p := newFixture(t)
	asked := p.checks(checking{findings: []loader.Finding{
		finding(loader.GradeOK, "a"), finding(loader.GradeWarn, "b"), finding(loader.GradeUnknown, "c"), finding(loader.GradeWarn, "d"),
		finding(loader.GradeWarn, "e"), finding(loader.GradeWarn, "f"), finding(loader.GradeWarn, "g"),
	}})
	require.Equal(t, []string{
		"b: is warn; fix: SET b", "d: is warn; fix: SET d", "e: is warn; fix: SET e", "2 more about the server: terapush doctor lists them",
	}, p.succeeds(small).Warnings)
	require.Len(t, *asked, 1)
	i := (*asked)[0]
	require.Equal(t, p.run(), i.Run)
	require.Equal(t, 4, i.Workers)
	require.EqualValues(t, 10, i.Contract.BatchRows)
	require.Positive(t, i.BatchBytes)
	require.Equal(t, i.BatchBytes/10*195, i.TotalBytes)
	require.False(t, i.Silent)

	p = newFixture(t)
	p.checks(checking{err: errors.New("it went away")})
	require.Equal(t, []string{"the server could not be checked: it went away"}, p.succeeds(small).Warnings)

	p = newFixture(t) // the user wants only the load
	asked = p.checks(checking{findings: []loader.Finding{finding(loader.GradeFail, "b")}})
	p.succeeds(small + " --create never --delivery at-least-once --verify none")
	require.Empty(t, *asked)
}

func TestChecksThatEndThePreflight(t *testing.T) {
	const stops = "the server would stop the push: b: is fail; fix: SET b\nthe server would stop the push: c: is fail; fix: SET c"
	for name, c := range map[string]struct {
		args string
		want string
		last string // that was asked of the server
	}{
		"before a table is dropped": {" --create recreate", stops, "open"},
		"before a table is emptied": {" --create truncate", stops, "open"},
		"before a table is made":    {"", stops, "open"},
	} {
		t.Run(name, func(t *testing.T) {
			p, last := newFixture(t), ""
			p.hook = func(_ context.Context, op string, _ int64) error {
				if !strings.HasPrefix(op, "after ") {
					last = op
				}
				return nil
			}
			p.checks(checking{findings: []loader.Finding{
				finding(loader.GradeFail, "b"), finding(loader.GradeOK, "a"), finding(loader.GradeFail, "c"),
			}})
			p.fails(small+c.args, report.PreflightFailed, c.want)
			require.Equal(t, c.last, last)
		})
	}
}

func TestCheckServer(t *testing.T) {
	p := newFixture(t)
	found := []loader.Finding{finding(loader.GradeFail, "b"), finding(loader.GradeOK, "a")}
	asked := p.checks(checking{endpoint: "db:5432", findings: found})
	e, err := push.CheckServer(t.Context(), p.job(small+" --memory 1GiB --create never --delivery at-least-once"))
	require.NoError(t, err)
	require.Equal(t, found, e.Findings)
	require.Equal(t, "db:5432", e.Endpoint)
	require.Equal(t, 4, e.Workers)
	require.EqualValues(t, 1<<30, e.Memory)
	require.Equal(t, (*asked)[0].BatchBytes, e.BatchBytes)
	require.False(t, (*asked)[0].Silent, "the doctor may ask what this push would not")
	require.Empty(t, p.memory.Applied())

	_, err = push.CheckServer(t.Context(), p.job("--duration 5s"))
	require.NoError(t, err)
	require.Zero(t, (*asked)[1].TotalBytes)
}

func TestCheckServerThatFails(t *testing.T) {
	hint := &loader.Error{Op: "connect", Err: errors.New("refused\nby the server"), Hint: "check the port"}
	for name, c := range map[string]struct {
		args   string
		server checking
		open   error
		want   []loader.Finding
	}{
		"refused": {open: hint, want: []loader.Finding{
			{Check: "connection", Grade: loader.GradeFail, Found: "opening memory://u@h/d: connect: refused; by the server", Fix: "check the port"},
		}},
		"no plan": {args: " --memory 1KiB", server: checking{endpoint: "https://db.example/x"}, want: []loader.Finding{
			{Check: "connection", Grade: loader.GradeOK, Found: "Memory 1 at db.example:443"}, {Check: "plan", Grade: loader.GradeFail},
		}},
		"gone": {server: checking{findings: []loader.Finding{finding(loader.GradeOK, "a")}, err: errors.New("gone")}, want: []loader.Finding{
			finding(loader.GradeOK, "a"), {Check: "server", Grade: loader.GradeFail, Found: "gone"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			p.failOn("open", c.open)
			p.checks(c.server)
			e, err := push.CheckServer(t.Context(), p.job(small+c.args))
			require.NoError(t, err)
			for i := range c.want {
				if c.want[i].Found == "" { // the plan's own words
					c.want[i].Found = e.Findings[i].Found
				}
			}
			require.Equal(t, c.want, e.Findings)
		})
	}

	_, err := push.CheckServer(t.Context(), newFixture(t).job(small+" --set unfit=1"))
	require.Equal(t, push.Usage, push.OutcomeOf(err))

	p := newFixture(t)
	p.on("open", func(ctx context.Context) error {
		close(p.drain)
		<-ctx.Done()
		return ctx.Err()
	})
	_, err = push.CheckServer(t.Context(), p.job(small))
	require.Equal(t, report.Interrupted, push.OutcomeOf(err))
}

// What the preflight refuses of a table that is there, the doctor does, in the same words; it makes nothing and sends no row.
func TestCheckServerLooksAtRows(t *testing.T) {
	t.Parallel()
	const held = "prepare: table memory holds rows"
	const fix = "choose --append to add to it, another --table, or --create recreate or truncate for one that terapush made"
	p := newFixture(t)
	p.succeeds(small)
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
		p.checks(checking{})
		p.hook = func(_ context.Context, op string, _ int64) error {
			if op == "probe" || op == "reserve" {
				return errors.New("the doctor changes nothing")
			}
			return nil
		}
		e, err := push.CheckServer(t.Context(), p.job(small+args))
		require.NoError(t, err)
		if c.found == "" {
			require.Empty(t, e.Findings, args)
		} else {
			require.Equal(t, []loader.Finding{{Check: "rows", Grade: loader.GradeFail, Found: c.found, Fix: c.fix}}, e.Findings, args)
			p.hook = nil
			p.fails(small+args, report.PreflightFailed, c.found)
		}
		p.exact(0, 195)
	}

	p.failOn("prepare", fmt.Errorf("table memory %w", loader.ErrNoTable))
	e, err := push.CheckServer(t.Context(), p.job(small))
	require.NoError(t, err)
	require.Empty(t, e.Findings, "the run makes it")

	p.wrap, p.hook = nil, nil // a back-end without checks
	e, err = push.CheckServer(t.Context(), p.job(small+" --append"))
	require.NoError(t, err)
	require.Len(t, e.Findings, 1)
	require.Equal(t, loader.GradeOK, e.Findings[0].Grade)
}
