package push_test

import (
	"bufio"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/discard"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/loader"
)

// A sweep pushes hundreds of times in one process: nothing may be left of a push but its report and its folder.
func TestManyPushesLeaveNothingBehind(t *testing.T) {
	drivers, err := loader.NewRegistry(discard.New())
	require.NoError(t, err)
	pushes := map[string]func(t *testing.T){
		"memory": func(t *testing.T) { newFixture(t).succeeds(small) },
		"memory, failing": func(t *testing.T) {
			p := newFixture(t)
			p.failOn("load", os.ErrInvalid)
			_, err := p.push(small + " --retries 0")
			require.Error(t, err)
		},
		"discard": func(t *testing.T) {
			j := newFixture(t).job(small)
			j.Drivers, j.Config.Target, j.Config.Verify = drivers, "discard://", "ack"
			j.Config.BatchBytes, j.Config.BatchRows = config.Bytes(1<<20), 0
			_, err := push.Run(t.Context(), j)
			require.NoError(t, err)
		},
	}
	for name, once := range pushes {
		t.Run(name, func(t *testing.T) {
			goroutines := runtime.NumGoroutine()
			once(t) // what is made once for all
			mapped := mappedByUs(t)
			for range 5 {
				once(t)
			}
			for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
				time.Sleep(time.Millisecond) // those that were told to end are about to
			}
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
			require.Equal(t, mapped, mappedByUs(t))
		})
	}
}

// mappedByUs lists the memory that was mapped with the wish for huge pages, as every ring is.
func mappedByUs(t *testing.T) (regions []string) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return nil
	}
	defer f.Close()
	region := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		flags, is := strings.CutPrefix(lines.Text(), "VmFlags:")
		switch {
		case is && strings.Contains(flags+" ", " hg "):
			regions = append(regions, region)
		case !is && strings.Contains(strings.SplitN(lines.Text(), " ", 2)[0], "-"):
			region, _, _ = strings.Cut(lines.Text(), " ")
		}
	}
	return regions
}
