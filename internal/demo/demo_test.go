//go:build linux

package demo

import (
	"bytes"
	"context"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// TestHelper is no test: it is what the tests start as another process, with a task behind the flags.
func TestHelper(t *testing.T) {
	switch flag.Arg(0) {
	case "":
		t.Skip("runs only as another test's process")
	case "exit":
		os.Exit(7)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "environment":
		for _, line := range os.Environ() {
			println(line)
		}
		println("uid", os.Geteuid())
	case "signals":
		reportSignals()
	case "parent":
		_, _, err := Unprivileged(t.Context(), helperArgs("signals"), nil, nil, os.Stderr)
		require.NoError(t, err)
	case "serve":
		s, err := Start(t.Context(), Options{Dir: flag.Arg(1)})
		require.NoError(t, err)
		println(s.folder.path)
		select {} // until somebody kills it
	}
}

func helperArgs(task ...string) []string {
	return append([]string{"-test.run=^TestHelper$", "-test.v"}, task...)
}

// asOrdinaryUser runs the calling test as a user without privileges when the tests run as root, and tells whether it
// has done so.
func asOrdinaryUser(t *testing.T) bool {
	var out bytes.Buffer
	ran, code, err := Unprivileged(t.Context(), []string{"-test.run=^" + t.Name() + "$", "-test.v"}, nil, &out, &out)
	require.NoError(t, err)
	if !ran {
		return false
	}
	t.Log(out.String())
	require.Zero(t, code)
	if strings.Contains(out.String(), "--- SKIP") {
		missing(t, "PostgreSQL could not be fetched")
	}
	return true
}

// missing ends a test whose server cannot be had: on CI that is a failure.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// testDir stays, so that the server is fetched once, and is not the place of this user's real demos.
func testDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "terapush", "postgres-test")
}

// requireNoLeftovers wants every folder in dir to belong to a server that runs, another run of these tests' perhaps.
func requireNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
	require.NoError(t, err)
	for _, path := range paths {
		free, err := open(path).owner.TryLock()
		require.NoError(t, err)
		require.False(t, free, "%s stayed behind", path)
	}
}

func start(t *testing.T, ctx context.Context) *Server {
	t.Helper()
	var log bytes.Buffer
	s, err := Start(ctx, Options{Dir: testDir(t), Log: &log})
	if err != nil && strings.Contains(err.Error(), ErrFetch.Error()) {
		missing(t, err.Error())
	}
	require.NoError(t, err)
	t.Log(log.String())
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

func requireGone(t *testing.T, s *Server) {
	t.Helper()
	require.NoDirExists(t, s.folder.path)
	_, err := pgx.Connect(t.Context(), s.URL())
	require.ErrorContains(t, err, "connection refused")
}

func TestServer(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	s := start(t, t.Context())
	c := connect(t, s)
	for name, want := range map[string]string{
		"server_version": "18.6", "fsync": "on", "synchronous_commit": "on", "shared_buffers": "256MB", "max_wal_size": "4GB",
		"wal_level": "minimal", "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "server_encoding": "UTF8",
	} {
		var got string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got))
		require.Equal(t, want, got, name)
	}
	_, err := c.Exec(t.Context(), "SELECT no_such_column")
	require.Error(t, err)
	require.Eventually(t, func() bool { return strings.Contains(s.Log(4000), "no_such_column") }, 10*time.Second, 10*time.Millisecond)

	guess := s.url
	guess.User = url.UserPassword("postgres", "postgres")
	_, err = pgx.Connect(t.Context(), guess.String())
	require.ErrorContains(t, err, "password authentication failed")

	logs, err := filepath.Glob(filepath.Join(os.TempDir(), "embedded_postgres_log*"))
	require.NoError(t, err)
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		require.NotContains(t, string(text), s.folder.path, "the library's log stays behind")
	}

	// Two demos at once do not meet.
	second := start(t, t.Context())
	connect(t, second)
	require.NoError(t, second.Stop())

	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop())
	requireGone(t, s)
	_, err = s.Keep()
	require.ErrorContains(t, err, "stopped already")
}

func TestServerEndsWithItsContext(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := start(t, ctx)
	connect(t, s)
	cancel()
	require.NoError(t, s.Stop()) // waits for the one that is under way
	requireGone(t, s)

	// A Start that is interrupted leaves nothing behind.
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Options{Dir: testDir(t)})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireNoLeftovers(t, testDir(t))
}

func TestServerThatDiedIsReported(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	s := start(t, t.Context())
	p, certain := postmaster(s.folder.data())
	require.True(t, certain)
	require.NoError(t, p.Kill())
	require.Eventually(t, func() bool { p, _ := postmaster(s.folder.data()); return p == nil }, 10*time.Second, 10*time.Millisecond)
	err := s.Stop()
	require.ErrorContains(t, err, "stopping PostgreSQL")
	require.ErrorContains(t, err, "ready to accept connections") // its log
	requireGone(t, s)
}

func TestLeftoversAreRemoved(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	first := start(t, t.Context())
	dir := filepath.Dir(first.folder.path)

	helper := exec.Command("/proc/self/exe", helperArgs("serve", dir)...)
	stderr, err := helper.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	buffer := make([]byte, 4096)
	n, err := stderr.Read(buffer)
	require.NoError(t, err)
	orphan := strings.TrimSpace(string(buffer[:n]))
	require.NoError(t, helper.Process.Kill())
	_ = helper.Wait()
	_, certain := postmaster(filepath.Join(orphan, "data"))
	require.True(t, certain, "the server outlives its demo")
	text, err := os.ReadFile(filepath.Join(orphan, "data", "postmaster.pid"))
	require.NoError(t, err)
	address := "127.0.0.1:" + strings.Split(string(text), "\n")[3]

	kept := start(t, t.Context())
	require.NoDirExists(t, orphan)
	_, err = net.Dial("tcp", address)
	require.ErrorContains(t, err, "connection refused", "an orphan's server is stopped")
	connect(t, first) // whose owner lives

	stop, err := kept.Keep()
	require.NoError(t, err)
	require.NoError(t, kept.Stop())
	require.NoError(t, kept.folder.owner.Unlock()) // as when this process ends
	require.NoError(t, start(t, t.Context()).Stop())
	connect(t, kept)

	require.NoError(t, exec.Command("sh", "-c", stop).Run())
	require.Eventually(t, func() bool { p, _ := postmaster(kept.folder.data()); return p == nil }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, start(t, t.Context()).Stop())
	requireGone(t, kept)
	require.NoError(t, first.Stop())
}

func TestNowhereToFetchFrom(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	_, err := Start(t.Context(), Options{Dir: dir, Repository: "http://127.0.0.1:1"})
	require.ErrorIs(t, err, ErrFetch)
	require.EqualError(t, err, "cannot fetch PostgreSQL 18.6.0 from http://127.0.0.1:1: unable to connect to http://127.0.0.1:1; "+
		"the demo needs it once: check the network or HTTPS_PROXY, name a mirror of Maven Central in TERAPUSH_DEMO_REPOSITORY, "+
		"or push to a PostgreSQL of your own: terapush push postgres://user@host/database")
	requireNoLeftovers(t, dir)

	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = Start(t.Context(), Options{Dir: dir})
	require.ErrorContains(t, err, "only its owner can write to")
	_, err = Start(t.Context(), Options{Dir: "/"})
	require.ErrorContains(t, err, "belongs to user 0")
}

func TestADownloadThatHangsCanBeInterrupted(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	asked := make(chan struct{})
	mirror := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer mirror.Close()
	defer mirror.CloseClientConnections()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	t.Setenv(RepositoryEnv, mirror.URL)
	began := time.Now()
	_, err := Start(ctx, Options{Dir: t.TempDir()})
	require.EqualError(t, err, "fetching PostgreSQL: context canceled")
	require.Less(t, time.Since(began), grace/2)
}

func TestPortTaken(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	s := start(t, t.Context())
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	_, err = Start(t.Context(), Options{Dir: testDir(t), Port: port})
	require.ErrorContains(t, err, "already listening on port "+u.Port())
}
