package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Unprivileged runs this program once more, as a user without privileges, when it runs as root; otherwise it does
// nothing and ran is false. args are the new process's arguments, without the program's name. It waits for the process
// and returns its exit code, 128 + the signal's number where a signal ended it.
//
// The process starts in a home folder of its own that is gone afterwards, with a cache folder that stays, and with the
// few environment variables that say nothing about root. SIGINT, SIGTERM, SIGHUP and SIGQUIT reach it through here,
// each once, although a terminal sends Ctrl-C to everybody: a second one would mean "at once". When ctx ends without a
// signal it gets SIGTERM, and also when this process is killed; only then the home stays behind, without the program.
func Unprivileged(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (ran bool, exitCode int, err error) {
	if os.Geteuid() != 0 {
		return false, 0, nil
	}
	who, err := unprivilegedUser()
	if err != nil {
		return false, 0, err
	}
	h, err := newHome(who)
	if err != nil {
		return false, 0, fmt.Errorf("making a home for user %s: %w", who.name, err)
	}
	defer os.RemoveAll(h.base)

	cmd := exec.Command(h.program, args...)
	cmd.Dir, cmd.Env = h.path, h.environment()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)},
		Setpgid:    true, // out of reach of the terminal's Ctrl-C
		Pdeathsig:  syscall.SIGTERM,
	}
	// The kernel sends Pdeathsig when the thread ends that started the process, so that thread has to stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)

	if err := cmd.Start(); err != nil {
		return false, 0, fmt.Errorf("running %s as user %s, since PostgreSQL refuses to run as root: %w; run the demo as an ordinary user",
			h.program, who.name, err)
	}
	_ = os.Remove(h.program) // it runs; nothing large is left behind even if this process is killed
	ended := make(chan struct{})
	go forward(ctx, signals, cmd.Process, ended)
	err = cmd.Wait()
	close(ended)
	return exitStatus(cmd.ProcessState, err)
}

func exitStatus(state *os.ProcessState, err error) (ran bool, exitCode int, failed error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		failed = err
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return true, 128 + int(status.Signal()), failed
	}
	return true, state.ExitCode(), failed
}

// settle is how long a context that has ended waits for the signal that may have ended it: main turns signals into
// contexts, and the process is to see one signal for it, the right one.
const settle = 200 * time.Millisecond

// forward passes signals on until the process has ended.
func forward(ctx context.Context, signals <-chan os.Signal, p *os.Process, ended <-chan struct{}) {
	over := ctx.Done()
	var settled <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			over, settled = nil, nil
			_ = p.Signal(s)
		case <-over:
			over, settled = nil, time.After(settle)
		case <-settled:
			_ = p.Signal(syscall.SIGTERM)
		}
	}
}
