package recent

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResults(t *testing.T) {
	r := Results[string, int]{Most: 2}
	made := 0
	get := func(of string) int {
		v, err := r.Get(of, func() (int, error) { made++; return made, nil })
		require.NoError(t, err)
		return v
	}
	require.Equal(t, []int{1, 2, 1, 2}, []int{get("a"), get("b"), get("a"), get("b")})

	_, err := r.Get("c", func() (int, error) { return 0, errors.New("no") })
	require.Error(t, err)
	require.Equal(t, []int{2, 1, 3, 2, 4}, []int{get("b"), get("a"), get("c"), get("b"), get("a")}, "the first made goes first")
}
