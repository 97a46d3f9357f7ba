package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// inStore reports whether a path is that of an object store.
func inStore(path string) bool { return strings.HasPrefix(path, "s3://") }

// needFolder refuses an object store as the --state-dir of a command that needs a folder.
func needFolder(stateDir string) error {
	if inStore(stateDir) {
		return errors.New("--state-dir: give a folder; only push, prepare, verify and forget take an object store")
	}
	return nil
}

// openFiles opens an object store for small files; of is the flag or argument that has its url.
func (a *app) openFiles(ctx context.Context, of, url string, c *config.Connect) (objstore.Files, error) {
	t, err := config.ParseStore(of, url)
	if err != nil {
		return objstore.Files{}, err
	}
	return a.openStore(c)(ctx, t)
}

// openStore returns what opens an object store for small files, and to read large ones.
func (a *app) openStore(c *config.Connect) func(context.Context, loader.Target) (objstore.Files, error) {
	return func(ctx context.Context, t loader.Target) (objstore.Files, error) {
		return objstore.OpenFiles(ctx, t, loader.Deps{Dial: new(net.Dialer).DialContext, TLS: c.Trust.TLS, Log: a.log()})
	}
}

// stateStore returns what opens the store at url that the processes of a named run share; nil if that is "".
func (a *app) stateStore(url string, c *config.Connect) func(context.Context) (push.StateStore, error) {
	if url == "" {
		return nil
	}
	return func(ctx context.Context) (push.StateStore, error) {
		files, err := a.openFiles(ctx, "--state-dir", url, c)
		if err != nil {
			return nil, err
		}
		return files, nil
	}
}

// uploadTime bounds the upload of a report, with its retries.
const uploadTime = time.Minute

// reportWriter returns what writes the report of a run, or of a shard, to --report-to, a folder or an object store,
// where report merge finds it. It finds out before the run whether it can. err is the run's: a process that lost its
// shard to another one leaves the other's report alone.
func (a *app) reportWriter(ctx context.Context, to string, c *config.Connect) (
	write func(ctx context.Context, r *report.Report, err error) error, err error,
) {
	if to == "" {
		return func(context.Context, *report.Report, error) error { return nil }, nil
	}
	put, done := func(_ context.Context, name string, text []byte) error {
		return file.Write(filepath.Join(to, name), text)
	}, func() error { return nil }
	if inStore(to) {
		put, done, err = a.uploader(ctx, to, c)
	} else if err = os.MkdirAll(to, 0o755); err == nil {
		err = file.Writable(filepath.Join(to, "any.json"))
	}
	if err != nil {
		return nil, fmt.Errorf("--report-to %s: %w", to, err)
	}
	return func(ctx context.Context, r *report.Report, err error) error {
		defer func() { _ = done() }()
		takenOver := push.OutcomeOf(err) == report.TakenOver // the report is that of the process that has the shard now
		if r == nil || r.Run.ID == "" || takenOver || errors.Is(err, runlog.ErrBusy) {
			return nil
		}
		shard := config.Shard{}
		if s := r.Run.Shard; s != nil {
			shard = config.Shard{Index: s.Index, Count: s.Count}
		}
		var text bytes.Buffer
		if err = r.WriteJSON(&text); err == nil {
			err = put(ctx, runlog.FolderOf(r.Run.ID, shard)+".json", text.Bytes())
		}
		if err != nil {
			return fmt.Errorf("--report-to %s: %w", to, err)
		}
		return nil
	}, nil
}

// uploader returns what writes a file to the object store of --report-to, after it has written one there.
func (a *app) uploader(ctx context.Context, to string, c *config.Connect) (
	put func(ctx context.Context, name string, text []byte) error, done func() error, err error,
) {
	files, err := a.openFiles(ctx, "--report-to", to, c)
	if err != nil {
		return nil, nil, err
	}
	lost := func(err error) { a.log().Warn("--report-to: retrying", "why", err) }
	put = func(ctx context.Context, name string, text []byte) error {
		ctx, cancel := context.WithTimeout(ctx, uploadTime)
		defer cancel()
		return retry.Policy{Retries: config.DefaultRetries}.Ask(ctx, files.Classify, lost, func(ctx context.Context) error {
			return files.Write(ctx, name, text)
		})
	}
	const tried = "written-before-the-run"
	if err := put(ctx, tried, nil); err != nil {
		return nil, nil, errors.Join(err, files.Close())
	}
	_ = files.Remove(ctx, tried) // a store may allow no removal
	return put, files.Close, nil
}

// reports reads a report, or all reports in a folder or an object store.
func (a *app) reports(ctx context.Context, from string) (all []report.Report, err error) {
	read := func(name string, text []byte) error {
		r, err := parseReport(name, text)
		all = append(all, r)
		return err
	}
	if inStore(from) {
		files, err := a.openFiles(ctx, "report merge", from, new(config.Connect))
		if err != nil {
			return nil, err
		}
		defer func() { _ = files.Close() }()
		err = files.Names(ctx, "", func(name string) error {
			if !strings.HasSuffix(name, ".json") {
				return nil
			}
			text, err := files.Read(ctx, name)
			if err != nil {
				return err
			}
			return read(name, text)
		})
		return all, err
	}
	paths := []string{from}
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		names, err := fs.Glob(os.DirFS(from), "*.json")
		if err != nil {
			return nil, err
		}
		paths = nil
		for _, name := range names {
			paths = append(paths, filepath.Join(from, name))
		}
	}
	for _, name := range paths {
		text, err := file.Read(name, maxReport)
		if err != nil {
			return nil, err
		}
		if err := read(name, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}
