package backendtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// Intent returns a push of 1 GiB by four workers, which asks for advice, too.
func Intent(p loader.Preparation) loader.Intent {
	return loader.Intent{Preparation: p, Workers: 4, BatchBytes: 16 << 20, TotalBytes: 1 << 30, Advice: true}
}

// Warn returns the finding that Only looks for: found and fix are parts of its texts.
func Warn(check, found, fix string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeWarn, Found: found, Fix: fix}
}

// Fail is Warn for a finding that stops the push.
func Fail(check, found, fix string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeFail, Found: found, Fix: fix}
}

// Unknown is Warn for what the server does not say.
func Unknown(check, found, fix string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeUnknown, Found: found, Fix: fix}
}

// Doctor opens a target and returns the findings of its checks. Whatever warns must say what to do.
func Doctor(t testing.TB, d loader.Driver, deps loader.Deps, to loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	l, err := d.Open(t.Context(), to, deps)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	findings, err := loader.FeaturesOf(l).Checker.CheckServer(t.Context(), i)
	require.NoError(t, err)
	require.NotEmpty(t, findings)
	for _, f := range findings {
		require.NotEmpty(t, f.Found, f.Check)
		if f.Grade != loader.GradeUnknown {
			require.Equal(t, f.Grade == loader.GradeOK, f.Fix == "", "%+v", f)
		}
	}
	return findings
}

// Complaints returns the findings that are not ok, without those that begin with what every server for tests has.
func Complaints(findings []loader.Finding, always string) []loader.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f loader.Finding) bool {
		return f.Grade == loader.GradeOK || strings.HasPrefix(f.Found, always)
	})
}

// Only requires that want is the one complaint, or that there is none if want has no name.
func Only(t testing.TB, want loader.Finding, complaints []loader.Finding) {
	t.Helper()
	if want.Check == "" {
		require.Empty(t, complaints)
		return
	}
	require.Len(t, complaints, 1)
	got := complaints[0]
	require.Equal(t, want.Check, got.Check, "%+v", got)
	require.Equal(t, want.Grade, got.Grade, "%+v", got)
	require.Contains(t, got.Found, want.Found)
	require.Contains(t, got.Fix, want.Fix)
}
