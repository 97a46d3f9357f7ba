package sink

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecent(t *testing.T) {
	var r Recent[int]
	_, found := r.Find("0")
	require.False(t, found)
	r.Remove("0")
	for i := range maxRecent {
		r.Put(fmt.Sprint(i), i)
	}
	r.Put("0", -1) // is the newest now
	r.Put("more", 7)
	r.Put("and more", 8)
	for name, want := range map[string]bool{"0": true, "1": false, "2": false, "3": true, "more": true} {
		_, found := r.Find(name)
		require.Equal(t, want, found, name)
	}
	again, _ := r.Find("0")
	require.Equal(t, -1, again)
	require.Equal(t, []int{3, 4, 7, -1, 7}, r.Where(func(n int) bool { return n < 5 || n == 7 }))
	r.Remove("3")
	require.Len(t, r.Where(func(int) bool { return true }), maxRecent-1)
}
