package push_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

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
