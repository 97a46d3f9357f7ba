package sink

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShelf(t *testing.T) {
	var s Shelf[int]
	_, found := s.Find("0")
	require.False(t, found)
	s.Remove("0")
	require.Empty(t, s.Below(""))
	for i := range maxShelf + 3 {
		s.Put(fmt.Sprint(i), i)
	}
	require.Len(t, s.known, maxShelf)
	last, found := s.Find(fmt.Sprint(maxShelf + 2))
	require.True(t, found)
	require.Equal(t, maxShelf+2, last)

	s.Put("b/2", 2)
	s.Put("b/1", 1)
	s.Put("b/1", -1)
	require.Equal(t, []string{"b/1", "b/2"}, s.Below("b/"))
	again, _ := s.Find("b/1")
	require.Equal(t, -1, again)
	s.Remove("b/1")
	require.Equal(t, []string{"b/2"}, s.Below("b"))
}
