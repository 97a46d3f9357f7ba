package mysql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFakeOpens(t *testing.T) {
	s := &fakeServer{vars: map[string]string{"version": "9.0.0", "max_allowed_packet": "67108864"}}
	target := s.start(t, "mysql")
	_, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
}
