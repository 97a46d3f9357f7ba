package push_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

func TestMoreWorkersThanOpenFilesAreRefused(t *testing.T) {
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
	p.fails("--rows 195 --batch-rows 10 --payload-bytes 16 --workers 2000", report.PreflightFailed,
		"this machine would stop the push: open files: 1,000, and 2000 workers need 2032 at least; fix: ulimit -n 65536")
	require.False(t, opened.Load(), "nothing is connected to")

	p.succeeds(small)
}
