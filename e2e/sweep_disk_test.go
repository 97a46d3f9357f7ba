package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

// The server's disk fills up in the middle of a sweep: what was measured is shown, and the rest is not begun.
func TestSweepFillsTheDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	const plan = `name: growing
rows: 2000
push: {payload_bytes: 512, batch_rows: 1000, retries: 0}
parts:
  little:
    axes: {workers: [1, 2]}
  much:
    rows: 400000
    axes: {workers: [1, 2, 4]}
  rest:
    axes: {workers: [1, 2]}
`
	for k, with := range map[kind]struct {
		room  int64 // as in TestDiskFull
		words string
	}{
		postgres: {150 << 20, "No space left on device"},
		mariaDB:  {50 << 20, "is full"},
	} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			dir := openFolder(t)
			smallDisk(t, dir)
			d := scratchIn(t, k, dir).database(t)
			fillDisk(t, filepath.Join(dir, "ballast"), with.room)

			s := newSweep(t, plan)
			r := s.of(d.target()).run(t).ends(t, 1)
			r.says(t, with.words, "the rest is not begun", "make room")
			assert.Contains(t, r.stdout, "little", "the table so far")
			t.Log(r.stderr)

			read, err := results.Read(s.record)
			require.NoError(t, err)
			var parts []int
			for _, e := range read.Entries {
				parts = append(parts, e.Part)
				assert.Equal(t, e.Part == 0, e.Status == results.Measured, "%+v: %s", e.Push(), strings.TrimSpace(e.Error))
			}
			assert.Equal(t, []int{0, 0, 1}, parts, "one push finds the disk full, and no other is begun")
		})
	}
}
