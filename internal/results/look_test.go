package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who looks sees what Open will find, and leaves it as it is.
func TestLook(t *testing.T) {
	r, err := Look(filepath.Join(t.TempDir(), "nothing"))
	require.NoError(t, err)
	require.Empty(t, r.Head.Schema)
	text := written(t, 2)
	first := strings.Index(text, "\n") + 1
	for _, cut := range []int{0, 5, 60, first, first + 20, len(text)} {
		at := put(t, text[:cut])
		seen, err := Look(at)
		require.NoError(t, err, "cut at %d", cut)
		kept, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, text[:cut], string(kept))
		f, err := Open(at)
		require.NoError(t, err)
		require.Equal(t, f.Record().Head, seen.Head)
		require.Equal(t, f.Record().Entries, seen.Entries)
		require.NoError(t, f.Close())
	}
	at := put(t, "# a title")
	_, err = Look(at)
	require.ErrorContains(t, err, at+": it is neither a record nor a report")
	_, err = Look(t.TempDir())
	require.ErrorContains(t, err, "reading the record: ")
}
