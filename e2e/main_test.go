// Package e2e_test drives the built binary against real servers: what it prints, how it ends, and, by the servers' own
// client libraries, what is really there afterwards. What commands, exit codes and texts can tell is a script in
// testdata/scripts; Go has what is killed, waits for a moment, or counts.
//
// The binary is $TERAPUSH_BINARY, or else built here. Servers are named by $TERAPUSH_TEST_POSTGRES, …_MARIADB and
// …_MYSQL, as `scripts/servers env` prints them; a test whose server is not named is skipped, and fails in CI.
// $TERAPUSH_SOAK=1 runs the same cases for longer and with more data.
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// binary is what the tests drive.
var binary string

// TestMain lets more tests run side by side than there are cores: most wait for servers, for timeouts and for a rate.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.NumCPU())) // a flag that package testing has
	}
	if signal.Ignored(syscall.SIGHUP) { // under nohup, and what the tests start would ignore it, too
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	dir, err := os.MkdirTemp("", "terapush-e2e-")
	if err == nil {
		binary, err = findOrBuild(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func findOrBuild(dir string) (string, error) {
	if given := os.Getenv("TERAPUSH_BINARY"); given != "" {
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("TERAPUSH_BINARY: %w", err)
		}
		return filepath.Abs(given)
	}
	path := filepath.Join(dir, "terapush")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "../cmd/terapush")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building terapush: %w\n%s", err, out)
	}
	return path, nil
}

// soak reports whether there is time for more.
func soak() bool { return os.Getenv("TERAPUSH_SOAK") == "1" }

// scaled is the number for a soak test or for an ordinary one.
func scaled[T any](ordinary, inSoak T) T {
	if soak() {
		return inSoak
	}
	return ordinary
}

// missing skips a test for want of something, except in CI, where everything has to be there.
func missing(t testing.TB, format string, values ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI has to test this: "+format, values...)
	}
	t.Skipf(format, values...)
}
