package push_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Workers that get no file for a connection try again, so that few files are a warning, and nothing more.
func TestMoreWorkersThanOpenFilesAreWarnedOf(t *testing.T) {
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: min(was.Cur, 1000), Max: was.Max}))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) }()

	p := newPlace(t)
	var opened atomic.Bool
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "open" {
			opened.Store(true)
		}
		return nil
	}
	r := p.succeeds("--rows 195 --batch-rows 10 --payload-bytes 16 --workers 2000")
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "open files: 1,000 are few for 2000 workers")

	require.Empty(t, p.succeeds(small+" --append --first-key 1000").Warnings)
}
