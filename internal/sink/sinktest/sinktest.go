// Package sinktest has what the tests of all sinks need.
package sinktest

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// Open listens on a free port until the test ends.
func Open(t testing.TB, listen func(addr string, o sink.Options) (*sink.Server, error), o sink.Options) *sink.Server {
	t.Helper()
	s, err := listen("127.0.0.1:0", o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Parquet returns a file of so many rows.
func Parquet(t testing.TB, rows int) string {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[struct{ ID int64 }](&file)
	_, err := w.Write(make([]struct{ ID int64 }, rows))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return file.String()
}

// TLS returns a certificate that the sink signed itself.
func TLS(t testing.TB) *tls.Config {
	t.Helper()
	c, err := sink.SelfSigned()
	require.NoError(t, err)
	return c
}

// Env returns an environment variable. Without it the test is skipped, and fails in CI.
func Env(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	need(t, value != "", name+" is not set")
	return value
}

// Program returns a function that runs a program and returns its stdout and stderr. Where it is not installed the test
// is skipped, and fails in CI.
func Program(t testing.TB, name string) func(stdin string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(name)
	need(t, err == nil, "not installed: "+name)
	return func(stdin string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), path, args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// Curl runs curl, which must succeed, and returns what it prints.
func Curl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	args = append([]string{"--silent", "--show-error", "--insecure", "--max-time", "60"}, args...)
	out, err := Program(t, "curl")(stdin, args...)
	require.NoError(t, err, out)
	return out
}

func need(t testing.TB, there bool, missing string) {
	t.Helper()
	if !there && os.Getenv("CI") == "true" {
		t.Fatal("CI has to test this: " + missing)
	}
	if !there {
		t.Skip(missing)
	}
}

// Say sends a text on a connection of its own and returns the answer to it. The sink has to close the connection.
func Say(t testing.TB, s *sink.Server, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	go func() {
		_, _ = io.WriteString(c, text) // the sink may close it in the middle
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	out, err := io.ReadAll(c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the sink did not close the connection")
	return string(out)
}
