package sweep

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

func newLab(t *testing.T) *Trials {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	return &Trials{
		Sources: Sources{Drivers: drivers, LookupEnv: func(string) (string, bool) { return "", false }},
		State:   StateFor(t.TempDir(), "test", "name"), Log: slog.New(slog.DiscardHandler),
	}
}

func TestALabLeavesNothing(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.Lock())
	require.ErrorIs(t, (&Trials{State: l.State}).Lock(), ErrTaken)
	require.NoError(t, os.MkdirAll(filepath.Join(l.State, ".new-20260101-000000-aaaaaa"), 0o700))
	one, err := l.Setup(map[string][]string{"target": {"discard://u:hunter2@h"}, "rows": {"100"}})
	require.NoError(t, err)
	require.NoError(t, one.Outline(l.Drivers))
	require.EqualValues(t, 100, one.Plan.Rows)
	r, err := l.Push(t.Context(), one, nil, nil)
	require.NoError(t, err)
	require.Equal(t, report.OK, r.Result.Outcome)
	require.NoError(t, l.Close(t.Context(), nil))
	require.NoDirExists(t, l.State)
	require.NoError(t, l.Lock(), "and it is free")
	require.NoError(t, l.Close(t.Context(), nil))
}

// What killed trials left and these cannot free stays, and is told. Close tries once more, over connections of its own.
func TestWhatALabCannotForget(t *testing.T) {
	l := newLab(t)
	begun, err := runlog.NewDraft(l.State, runlog.Record{Run: "20260101-000000-aaaaaa", Target: "discard://u@h/"})
	require.NoError(t, err)
	require.NoError(t, begun.Close())
	require.EqualError(t, l.Close(t.Context(), nil), "claims of these runs may still be in the claim table; "+
		"the same command tries again to remove them: run 20260101-000000-aaaaaa of discard://u@h/")

	cases := []Case{{}, {}}
	for i, target := range []string{"discard://elsewhere", "discard://u:hunter2@h"} {
		cases[i].Setup, err = l.Setup(map[string][]string{"target": {target}, "rows": {"100"}})
		require.NoError(t, err)
	}
	require.ErrorContains(t, l.Close(t.Context(), cases[:1]), "run 20260101-000000-aaaaaa")
	require.NoError(t, l.Close(t.Context(), cases))
	require.NoDirExists(t, l.State)

	run := filepath.Join(l.State, ".new-20260101-000000-bbbbbb-begun")
	require.NoError(t, os.MkdirAll(run, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(run, "journal-000000000001.jsonl"), []byte("{}\n"), 0o600))
	require.NoError(t, l.Lock())
	require.ErrorContains(t, l.Close(t.Context(), nil), run, "nobody can read what it is")
	l.Discards = true // nobody is asked
	require.NoError(t, l.Lock())
	require.NoError(t, l.Close(t.Context(), nil))
	require.NoDirExists(t, l.State)
}

// The flags of the process are none of a trial's, wherever they come from.
func TestSetup(t *testing.T) {
	l := newLab(t)
	l.LookupEnv = func(name string) (string, bool) {
		value, ok := map[string]string{"TERAPUSH_STATE_DIR": "/s", "TERAPUSH_METRICS_LINGER": "1s", "TERAPUSH_PROGRESS": "none", "TERAPUSH_SEED": "5"}[name]
		return value, ok
	}
	for target, want := range map[string]map[string][]string{
		"postgres://h/db": {"seed": {"5"}, "create": {"recreate"}, "set": {"app.token=t0ken", "a=b"}},
		"s3://bucket/p":   {"seed": {"5"}, "set": {"app.token=t0ken", "a=b"}},
	} {
		one, err := l.Setup(map[string][]string{"target": {target}, "set": {"app.token=t0ken", "a=b"}})
		require.NoError(t, err)
		require.Equal(t, want, one.Given)
		require.Empty(t, one.Config.State+one.Config.Progress)
		require.Equal(t, []loader.Secret{"t0ken"}, one.secrets)
	}
	for text, want := range map[string]string{"app.token=x": "app.token=***", "a=b": "a=b", "token": "token"} {
		require.Equal(t, want, ShownSetting(text))
	}
}

func TestOnce(t *testing.T) {
	var out strings.Builder
	log := Once(slog.New(slog.NewTextHandler(&out, nil)))
	for range 3 {
		log.Warn("again")
		log.Warn("and again")
	}
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
}

// A push tells when its rows move, behind preparing and filling.
func TestBegunIsToldWhenRowsMove(t *testing.T) {
	l := newLab(t)
	one, err := l.Setup(map[string][]string{"target": {"discard://h"}, "duration": {"1h"}, "distinct-bytes": {"1MiB"}})
	require.NoError(t, err)
	drain := make(chan struct{})
	calls := 0
	r, err := l.Push(t.Context(), one, drain, func(moving func() bool) {
		calls++
		require.True(t, moving())
		close(drain)
	})
	require.Error(t, err)
	require.Equal(t, report.Interrupted, r.Result.Outcome)
	require.Equal(t, 1, calls)
	require.Positive(t, r.Phases.Load)

	one, err = l.Setup(map[string][]string{"target": {"postgres://u@127.0.0.1:1/db"}, "rows": {"1"}})
	require.NoError(t, err)
	_, err = l.Push(t.Context(), one, nil, func(func() bool) { require.Fail(t, "nothing was pushed") })
	require.ErrorIs(t, err, ErrUnreachable)
}

// A full or broken disk of this machine says nothing of the target, whatever an error of the system looks like to a driver.
func TestALocalErrorIsNoTargets(t *testing.T) {
	l := newLab(t)
	l.State = "/dev/null/x"
	one, err := l.Setup(map[string][]string{"target": {"postgres://u@127.0.0.1:1/db"}, "rows": {"1"}})
	require.NoError(t, err)
	r, err := l.Push(t.Context(), one, nil, nil)
	require.ErrorContains(t, err, "not a directory")
	require.NotErrorIs(t, err, ErrUnreachable)
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(err))
	require.Empty(t, r.Result.Errors)
}

func TestWhatAnErrorMeansForOtherTrials(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	driver, _ := drivers.Lookup("postgres")
	one := Setup{}
	failed := func(o report.Outcome, err error) error {
		return &push.Error{Outcome: o, Err: fmt.Errorf("loading: %w", loader.Judged(err, driver.Classify(err)))}
	}
	full := failed(report.Failed, &pgconn.PgError{Code: "53100", Message: "could not extend file"})
	stopping := &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"}

	require.NoError(t, one.classify(nil, nil))
	require.ErrorIs(t, one.classify(nil, full), ErrDiskFull)
	counted := &report.Report{Result: report.Result{Tries: report.Tries{Errors: map[string]int64{"disk_full": 3}}}}
	require.ErrorIs(t, one.classify(counted, failed(report.Failed, errors.New("gave up"))), ErrDiskFull)
	require.ErrorIs(t, one.classify(nil, failed(report.PreflightFailed, stopping)), ErrUnreachable)
	tooMany := failed(report.PreflightFailed, &pgconn.PgError{Code: "53300", Message: "too many clients already"})
	got := one.classify(nil, tooMany)
	require.ErrorIs(t, got, ErrLimit)
	require.EqualError(t, got, "more than the server allows: "+tooMany.Error())
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(got))
	for _, err := range []error{failed(report.Failed, stopping), failed(report.PreflightFailed, &pgconn.PgError{Code: "42501"})} {
		got := one.classify(&report.Report{}, err)
		require.Equal(t, err, got)
	}

	one.secrets = []loader.Secret{"hunter2-secret"}
	leaky := failed(report.PreflightFailed, &pgconn.PgError{Code: "57P03", Message: "cannot set hunter2-secret"})
	got = one.classify(nil, leaky)
	require.ErrorIs(t, got, ErrUnreachable)
	require.NotContains(t, got.Error(), "hunter2")
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(got))
	r := &report.Report{Warnings: []string{"it is hunter2-secret"}}
	r.Result.Error, r.Target.Settings = "no hunter2-secret", map[string]string{"app.password": "x", "search_path": "hunter2-secret"}
	r.Plan.Options = map[string]string{"stage": "of hunter2-secret"}
	require.NotContains(t, fmt.Sprintf("%+v", one.withoutSecrets(r)), "hunter2")
	require.Equal(t, "of ***", r.Plan.Options["stage"])
	require.Equal(t, "***", r.Target.Settings["app.password"])
}
