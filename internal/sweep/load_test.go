package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

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
