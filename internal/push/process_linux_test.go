package push_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/discard"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// breakJournal puts /dev/null in the place of this process's open journal: it takes every write and cannot be synced.
func breakJournal(t *testing.T) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = null.Close() })
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	broken := 0
	for _, fd := range open {
		name, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if strings.HasPrefix(filepath.Base(name), "journal-") {
			number, err := strconv.Atoi(fd.Name())
			require.NoError(t, err)
			require.NoError(t, syscall.Dup3(int(null.Fd()), number, 0))
			broken++
		}
	}
	assert.Equal(t, 1, broken) // workers call it
}

// The objects of a group are the only copy until the journal has its commit: what could not be written down keeps them,
// also when the run tidies up.
func TestObjectsStayUntilTheJournalHasTheirCommit(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.hook = func(_ context.Context, op string, number int64) error {
		if op == "discard" {
			t.Errorf("group %d is discarded", number)
		}
		if op == "after commit" && number == 0 {
			breakJournal(t)
		}
		return nil
	}
	r := p.fails(grouped+" --workers 1", report.Failed, "syncing the journal")
	require.GreaterOrEqual(t, p.memory.Objects(), 4)
	require.Contains(t, r.Warnings[len(r.Warnings)-1], "a resume uses them")

	p.hook = nil
	p.succeeds("--resume " + r.Run.ID)
	p.exact(0, 195)
	require.Zero(t, p.memory.Objects())
}

// A label is asked for only if the journal knows its attempt: no batch is sent before that is on disk.
func TestNothingIsSentUntilTheJournalHasIt(t *testing.T) {
	p := newLabelled(t)
	p.watch = func(push.Watched) (func(), error) {
		breakJournal(t)
		return func() {}, nil
	}
	p.fails(small, report.Failed, "syncing the journal")
	require.Zero(t, p.memory.Attempts(0))
}

// Workers that get no file for a connection retry, so few files are only a warning.
func TestMoreWorkersThanOpenFiles(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: min(was.Cur, 1000), Max: was.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) }()

	p := newFixture(t)
	r := p.succeeds("--rows 195 --batch-rows 10 --payload-bytes 16 --workers 2000")
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "open files: 1,000 are few for 2000 workers")
	require.Empty(t, p.succeeds(small+" --append --first-key 1000").Warnings)
}

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

// huge matches what smaps says of memory that was mapped with the wish for huge pages.
var huge = regexp.MustCompile(`(?m)^([0-9a-f]+-[0-9a-f]+) .*\n([A-Z].*\n)*VmFlags:.* hg\b`)

// mappedByUs lists the memory of that kind, as every ring is.
func mappedByUs(t *testing.T) (regions []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	for _, found := range huge.FindAllSubmatch(text, -1) {
		regions = append(regions, string(found[1]))
	}
	return regions
}
