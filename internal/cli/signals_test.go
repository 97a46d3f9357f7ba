package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
)

// interrupt starts a push that would take an hour, and sends it the signal as soon as it has loaded something.
func (s shell) interrupt(with os.Signal, args string) result {
	s.Helper()
	signals := make(chan os.Signal, 2)
	state := s.env["XDG_STATE_HOME"]
	stop := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			journals, _ := filepath.Glob(filepath.Join(state, "terapush", "*", "journal.jsonl"))
			for _, path := range journals {
				if info, err := os.Stat(path); err == nil && info.Size() > 1000 {
					signals <- with
					return
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	var stdout, stderr bytes.Buffer
	code := cli.Run(s.Context(), strings.Fields(args), cli.Process{
		Stdout: &stdout, Stderr: &stderr, Signals: signals,
		LookupEnv: func(name string) (string, bool) { text, ok := s.env[name]; return text, ok },
	})
	close(stop)
	<-sent
	return result{code, stdout.String(), stderr.String()}
}

// What a signal leaves behind can be resumed with the command that is printed.
func TestSignals(t *testing.T) {
	for with, code := range map[os.Signal]int{syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		s := newShell(t)
		r := s.interrupt(with, "push discard:// --duration 1h --batch-rows 100 --distinct-bytes 1MiB --max-rate 10MiB/s --progress none")
		require.Equal(t, code, r.code, r.stderr)
		require.Contains(t, r.stderr, "finishing what is on its way; a second signal closes the connections")
		command := regexp.MustCompile(`to go on: terapush (.*)`).FindStringSubmatch(r.stderr)
		require.Len(t, command, 2, r.stderr)
		require.Contains(t, r.stdout, "interrupted: ")

		again := s.run(strings.Fields(strings.ReplaceAll(command[1], "'", ""))...)
		require.Zero(t, again.code, again.stderr)
		require.Contains(t, again.stdout, "verify ok: ack")
	}
}
