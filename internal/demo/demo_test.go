//go:build linux

package demo

import (
	"bufio"
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// TestDemoProcess is no test: the tests start it as another process, which prints the server's address and folder and
// then is killed. Arguments behind the flags are the folder of demos, and "keep".
func TestDemoProcess(t *testing.T) {
	if flag.NArg() == 0 {
		t.Skip("runs only as another test's process")
	}
	s, err := Start(t.Context(), flag.Arg(0), io.Discard)
	require.NoError(t, err)
	if flag.Arg(1) == "keep" {
		require.NoError(t, s.Keep())
	}
	println(s.URL(), s.path)
	select {} // until somebody kills it
}

// killed starts a server in another process, kills that one and returns what is left.
func killed(t *testing.T, task ...string) (left *Server) {
	t.Helper()
	other := exec.Command("/proc/self/exe", append([]string{"-test.run=^TestDemoProcess$"}, task...)...)
	stderr, err := other.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	words := strings.Fields(line)
	u, err := url.Parse(words[0])
	require.NoError(t, err)
	return &Server{url: *u, path: words[1]}
}

// testDir stays, so that the server is fetched once, and is not the folder of real demos.
func testDir(t *testing.T) string {
	t.Helper()
	if os.Geteuid() == 0 {
		return "/var/cache/terapush/postgres-test"
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "terapush", "postgres-test")
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	backendtest.Long(t)
	var log strings.Builder
	s, err := Start(t.Context(), dir, &log)
	if err != nil && strings.Contains(err.Error(), "cannot fetch PostgreSQL") && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.Contains(t, log.String(), "is up on "+s.url.Host)
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// requireEnded waits until the server is gone, for as long as a test may take.
func requireEnded(t *testing.T, s *Server) {
	t.Helper()
	for {
		c, err := pgx.Connect(t.Context(), s.URL())
		if err != nil && strings.Contains(err.Error(), "connection refused") {
			return
		}
		if err == nil {
			_ = c.Close(t.Context())
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(10 * time.Millisecond)
	}
}

func TestServer(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "root's")
	t.Setenv("LC_ALL", "nowhere")
	s := start(t, testDir(t))
	require.Less(t, s.url.Port(), "32768", "no port that an outgoing connection may have")
	c := connect(t, s)
	for name, want := range map[string]string{
		"server_version": "18.6", "fsync": "on", "synchronous_commit": "on", "shared_buffers": "256MB", "max_wal_size": "4GB",
		"wal_level": "minimal", "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "server_encoding": "UTF8",
	} {
		var got string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got))
		require.Equal(t, want, got, name)
	}
	var environment string
	require.NoError(t, c.QueryRow(t.Context(), "SELECT encode(pg_read_binary_file('/proc/self/environ'), 'escape')").Scan(&environment))
	require.NotContains(t, environment, "AWS_", "whoever connects can read it")

	guess := s.url
	guess.User = url.UserPassword("postgres", "postgres")
	_, err := pgx.Connect(t.Context(), guess.String())
	require.ErrorContains(t, err, "password authentication failed")
	require.NoFileExists(t, filepath.Join(s.path, "password"))

	requireInterruptible(t, s.program)
	requireKilledDemos(t, s)

	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop())
	requireEnded(t, s)
	require.NoDirExists(t, s.path)
}

// requireKilledDemos starts demos beside first, which is at work all the time.
func requireKilledDemos(t *testing.T, first *Server) {
	t.Helper()
	dir := testDir(t)
	orphan := killed(t, dir)
	requireEnded(t, orphan)
	kept := killed(t, dir, "keep")
	require.NoDirExists(t, orphan.path)
	last := start(t, dir)
	connect(t, first)
	connect(t, kept) // and stays connected

	bare, password := kept.Access()
	require.NotContains(t, bare, password)
	config, err := pgx.ParseConfig(bare)
	require.NoError(t, err)
	config.Password = password
	c, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	require.NoError(t, c.Close(t.Context()))

	for _, want := range []int{1, 0} {
		stopped, err := StopKept(t.Context(), dir)
		require.NoError(t, err)
		require.Equal(t, want, stopped)
		require.NoDirExists(t, kept.path)
		connect(t, first) // a demo that is at work
	}
	requireEnded(t, kept)

	require.NoError(t, last.process.Kill())
	<-last.ended
	err = last.Stop()
	require.ErrorContains(t, err, "PostgreSQL exited unexpectedly: signal: killed")
	require.ErrorContains(t, err, "ready to accept connections") // its log
	require.NoDirExists(t, last.path)
	connect(t, first)
}

// requireInterruptible interrupts a start, which leaves nothing.
func requireInterruptible(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // nobody has to get in
	require.NoError(t, os.Symlink(program, filepath.Join(dir, filepath.Base(program))))
	servers := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, serverPrefix+"*"))
		require.NoError(t, err)
		return found
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ; len(servers()) == 0; time.Sleep(time.Millisecond) {
		}
		cancel()
	}()
	_, err := Start(ctx, dir, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, servers())
}

func TestFetching(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "postgres")
	t.Setenv(repositoryEnv, "http://127.0.0.1:1")
	_, err := Start(t.Context(), dir, io.Discard)
	require.EqualError(t, err, "cannot fetch PostgreSQL 18.6.0 from http://127.0.0.1:1: unable to connect to http://127.0.0.1:1; "+
		"the demo needs it once: check the network or HTTPS_PROXY, name a mirror of Maven Central in TERAPUSH_DEMO_REPOSITORY, "+
		"or push to a PostgreSQL of your own: terapush push postgres://user@host/database")

	asked := make(chan struct{})
	mirror := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer mirror.Close()
	defer mirror.CloseClientConnections()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	t.Setenv(repositoryEnv, mirror.URL)
	_, err = Start(ctx, dir, io.Discard)
	require.EqualError(t, err, "fetching PostgreSQL: context canceled", "a download that hangs")

	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = Start(t.Context(), dir, io.Discard)
	require.ErrorContains(t, err, "others can write to "+dir)
	require.NoError(t, os.Chmod(dir, 0o700))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, -1))
		_, err = Start(t.Context(), dir, io.Discard)
		require.ErrorContains(t, err, "user 65534's: remove it")
	}
}
