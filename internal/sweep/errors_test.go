package sweep

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

func TestWhatAnErrorMeansForOtherTrials(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	one := Setup{}
	one.Config.Target = "postgres://u@h/db"
	failed := func(o report.Outcome, err error) error {
		return &push.Error{Outcome: o, Err: fmt.Errorf("loading: %w", err)}
	}
	full := failed(report.Failed, &pgconn.PgError{Code: "53100", Message: "could not extend file"})
	stopping := &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"}

	require.NoError(t, one.meaning(drivers, nil, nil))
	require.ErrorIs(t, one.meaning(drivers, nil, full), ErrDiskFull)
	counted := &report.Report{Result: report.Result{Errors: map[string]int64{"disk_full": 3}}}
	require.ErrorIs(t, one.meaning(drivers, counted, failed(report.Failed, errors.New("gave up"))), ErrDiskFull)
	require.ErrorIs(t, one.meaning(drivers, nil, failed(report.PreflightFailed, stopping)), ErrUnreachable)
	tooMany := failed(report.PreflightFailed, &pgconn.PgError{Code: "53300", Message: "too many clients already"})
	got := one.meaning(drivers, nil, tooMany)
	require.ErrorIs(t, got, ErrLimit)
	require.EqualError(t, got, tooMany.Error())
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(got))
	for _, err := range []error{failed(report.Failed, stopping), failed(report.PreflightFailed, &pgconn.PgError{Code: "42501"})} {
		got := one.meaning(drivers, &report.Report{}, err)
		require.Equal(t, err, got)
	}

	one.secrets = []loader.Secret{"hunter2-secret"}
	leaky := failed(report.PreflightFailed, &pgconn.PgError{Code: "57P03", Message: "cannot set hunter2-secret"})
	got = one.meaning(drivers, nil, leaky)
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
