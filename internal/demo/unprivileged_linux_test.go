package demo

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
}

func TestOrdinaryUsersStayWhoTheyAre(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	ran, _, err := Unprivileged(t.Context(), helperArgs("exit"), nil, nil, nil)
	require.NoError(t, err)
	require.False(t, ran)
}

func TestRootCannotStartAServer(t *testing.T) {
	needRoot(t)
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, "refuses to run as root")
}

func TestExitCodes(t *testing.T) {
	needRoot(t)
	for task, want := range map[string]int{"exit": 7, "die": 128 + 9} {
		ran, code, err := Unprivileged(t.Context(), helperArgs(task), nil, nil, nil)
		require.NoError(t, err)
		require.True(t, ran)
		require.Equal(t, want, code)
	}
}

func TestUnprivilegedEnvironment(t *testing.T) {
	needRoot(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "root's")
	t.Setenv("XDG_STATE_HOME", "/root/state")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
	var out bytes.Buffer
	_, code, err := Unprivileged(t.Context(), helperArgs("environment"), nil, nil, &out)
	require.NoError(t, err)
	require.Zero(t, code)
	text := out.String()
	require.Contains(t, text, "HTTPS_PROXY=http://127.0.0.1:3128")
	require.NotContains(t, text, "AWS_")
	require.NotContains(t, text, "XDG_STATE_HOME")
	require.NotContains(t, text, "uid 0")

	_, after, _ := strings.Cut(text, "HOME=")
	path, _, _ := strings.Cut(after, "\n")
	require.NoDirExists(t, filepath.Dir(path), "the home is gone")
}

// writer tells a channel about the first line it gets.
type writer struct {
	once  sync.Once
	first chan struct{}
	mutex sync.Mutex
	text  bytes.Buffer
}

func (w *writer) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.first) })
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.text.Write(p)
}

// reportSignals prints what it is sent within half a second after the first signal.
func reportSignals() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	println("ready")
	println((<-signals).String())
	after := time.After(2*settle + 100*time.Millisecond)
	for {
		select {
		case s := <-signals:
			println(s.String())
		case <-after:
			return
		}
	}
}

func TestSignalsReachTheProcessOnce(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name string
		end  func(cancel func())
		want string
	}{
		{"a signal", func(func()) { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }, "ready\ninterrupt\n"},
		{"a signal that main makes the context's end of", func(cancel func()) {
			cancel()
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		}, "ready\ninterrupt\n"},
		{"a context", func(cancel func()) { cancel() }, "ready\nterminated\n"},
		{"two signals", func(cancel func()) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			cancel()
			time.Sleep(settle / 2) // equal signals that are pending together are one
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}, "ready\ninterrupt\nterminated\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &writer{first: make(chan struct{})}
			go func() { <-out.first; c.end(cancel) }()
			_, code, err := Unprivileged(ctx, helperArgs("signals"), nil, nil, out)
			require.NoError(t, err)
			require.Zero(t, code)
			require.Equal(t, c.want, out.text.String())
		})
	}
}

// Killed hard, this process can pass nothing on; the kernel does.
func TestTheProcessDoesNotOutliveItsParent(t *testing.T) {
	needRoot(t)
	root, err := rootFolder()
	require.NoError(t, err)
	before, err := filepath.Glob(filepath.Join(root, "demo-*"))
	require.NoError(t, err)

	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	parent := exec.Command("/proc/self/exe", helperArgs("parent")...)
	parent.Stderr = to
	require.NoError(t, parent.Start())
	require.NoError(t, to.Close())
	lines := bufio.NewReader(from)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Contains(t, string(rest), "terminated\n") // once for each thread of the parent's, it may be

	after, err := filepath.Glob(filepath.Join(root, "demo-*"))
	require.NoError(t, err)
	for _, home := range after {
		if !slices.Contains(before, home) {
			require.NoFileExists(t, filepath.Join(home, "terapush"))
			require.NoError(t, os.RemoveAll(home))
		}
	}
}

func TestFoldersOfOthersAreRefused(t *testing.T) {
	needRoot(t)
	who := account{name: "nobody", uid: 65534, gid: 65534}
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	require.NoError(t, own(mine, who))
	require.NoError(t, own(mine, who), "made before")
	require.ErrorContains(t, private(mine, 0), "belongs to user 65534, not to 0")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(mine, link))
	require.Error(t, own(link, who))
	theirs := filepath.Join(dir, "theirs")
	require.NoError(t, os.Mkdir(theirs, 0o700))
	require.ErrorContains(t, own(theirs, who), "belongs to user 0, not to 65534")
}
