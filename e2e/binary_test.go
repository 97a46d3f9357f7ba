package e2e_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a run of terapush may take before the test gives it up.
const patience = 3 * time.Minute

// result is how an invocation ended.
type result struct {
	line   string // the command line, for messages
	stdout string
	stderr string
	code   int
	took   time.Duration
}

// all is everything that was printed.
func (r result) all() string { return r.stdout + r.stderr }

// ends asserts the exit code, and shows everything when it is another.
func (r result) ends(t *testing.T, code int) result {
	t.Helper()
	require.Equal(t, code, r.code, "exit code of %s\nstdout: %s\nstderr: %s", r.line, r.stdout, r.stderr)
	return r
}

// says asserts that stderr contains every one of the texts.
func (r result) says(t *testing.T, texts ...string) result {
	t.Helper()
	for _, text := range texts {
		assert.Contains(t, r.stderr, text, "stderr of %s", r.line)
	}
	return r
}

// invocation is one start of terapush. The zero value takes its environment from the test's, without anything that
// terapush or a database's client would read.
type invocation struct {
	args []string
	env  []string // name=value, on top
	attr *syscall.SysProcAttr
	in   *os.File // is stdin, if it is there
	log  *os.File // takes stdout and stderr, if it is there
}

// run runs terapush to its end.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return invocation{args: args}.run(t)
}

func (i invocation) run(t *testing.T) result {
	t.Helper()
	return i.start(t).wait(t)
}

func (i invocation) start(t *testing.T) *process {
	t.Helper()
	return startCommand(t, i, binary, i.args...)
}

// process is a terapush at work.
type process struct {
	*exec.Cmd
	stdout, stderr buffer
	began          time.Time
	done           chan struct{}
}

func startCommand(t *testing.T, i invocation, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(name, args...), began: time.Now(), done: make(chan struct{})}
	p.Env = append(cleanEnvironment(t.TempDir()), i.env...)
	p.SysProcAttr = i.attr
	p.WaitDelay = time.Second // what a killed shell has started keeps its pipes
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if i.in != nil {
		p.Stdin = i.in
	}
	if i.log != nil {
		p.Stdout, p.Stderr = i.log, i.log
	}
	require.NoError(t, p.Start())
	go func() {
		defer close(p.done)
		_ = p.Wait() // the exit code tells
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
	})
	return p
}

// cleanEnvironment is the test's own, without what decides where terapush and the databases' clients look.
func cleanEnvironment(home string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		for _, prefix := range []string{"TERAPUSH_", "PG", "MYSQL_", "HOME=", "XDG_"} {
			if strings.HasPrefix(v, prefix) {
				return true
			}
		}
		return false
	})
	return append(env, "HOME="+home)
}

// wait waits for the end.
func (p *process) wait(t *testing.T) result {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.Process.Signal(syscall.SIGQUIT) // its goroutines, on stderr
		<-p.done
		t.Errorf("%s does not end\nstdout: %s\nstderr: %.5000s", p, p.stdout.String(), p.stderr.String())
	}
	return result{
		line: p.String(), stdout: p.stdout.String(), stderr: p.stderr.String(),
		code: p.ProcessState.ExitCode(), took: time.Since(p.began),
	}
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends a signal to a process that has to be there still.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	err := p.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("%s ended before %s\nstdout: %s\nstderr: %s", p, s, p.stdout.String(), p.stderr.String())
	}
	require.NoError(t, err)
}

// until waits until something is so, while the process runs.
func (p *process) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.Now().Add(time.Minute)
	seen := p.sees(func() bool { return time.Now().After(late) || so() })
	require.True(t, time.Now().Before(late), "a minute without %s: %s", what, p.stderr.String())
	require.True(t, seen || so(), "it ended before %s: %s%s", what, p.stdout.String(), p.stderr.String())
}

// sees waits until something is so, and reports whether it was before the process ended. It asks for a fifth of the time at
// most, since the server has more to do than to answer.
func (p *process) sees(so func() bool) bool {
	for p.running() {
		asked := time.Now()
		if so() {
			return true
		}
		time.Sleep(max(4*time.Since(asked), time.Millisecond))
	}
	return false
}

// kill is kill -9.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.done
}

// buffer can be read while the process still writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
