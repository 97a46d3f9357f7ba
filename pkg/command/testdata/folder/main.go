// Command folder is terapush with a back-end of another module: folder:///path writes each batch into a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/command"
	"github.com/terapush/terapush/pkg/loader"
)

func main() { command.Main(driver{}) }

type driver struct{}

var caps = loader.Caps{
	Formats:           []batch.Format{batch.CSV, batch.NDJSON},
	Reason:            "a file that is written again has another name",
	DefaultBatchBytes: 1 << 20,
}

// options are those of the method, and so flags of the command line.
type options struct {
	Prefix string `option:"prefix" default:"rows-" help:"what the names of the files begin with"`
}

func (driver) Name() string      { return "folder" }
func (driver) Schemes() []string { return []string{"folder"} }

func (driver) Methods() []loader.Method {
	return []loader.Method{{
		Name: "write", Help: "a file for each batch", Caps: caps, Options: loader.OptionsOf(options{}),
	}}
}

func (d driver) Check(t loader.Target) (loader.Caps, error) {
	_, err := loader.ReadOptions(d, t, new(options))
	if t.Database == "" {
		err = errors.Join(err, errors.New("the target names no folder: write folder:///path"))
	}
	if len(t.Params) > 0 || len(t.Settings) > 0 || t.Via != nil {
		err = errors.Join(err, errors.New("a folder has no parameters, settings or store"))
	}
	return caps, err
}

func (driver) Explain(t loader.Target, _ loader.Preparation) []loader.Statement {
	return []loader.Statement{{When: "per batch", Text: "write a file in /" + t.Database}}
}

func (driver) Classify(error) loader.Verdict {
	return loader.Verdict{Applied: loader.No, Class: loader.ClassOther}
}

func (d driver) Open(_ context.Context, t loader.Target, _ loader.Deps) (loader.Loader, error) {
	if _, err := d.Check(t); err != nil {
		return nil, err
	}

	f := folder{path: "/" + t.Database}
	_, err := loader.ReadOptions(d, t, &f.options)
	return f, err
}

type folder struct {
	options
	path string
}

func (f folder) Server() loader.Server {
	return loader.Server{Product: "folder", Endpoint: loader.NoEndpoint}
}

func (folder) Caps() loader.Caps { return caps }
func (folder) Close() error      { return nil }

func (f folder) Prepare(context.Context, loader.Preparation) (loader.Table, error) {
	return loader.Table{Name: f.path}, os.MkdirAll(f.path, 0o700)
}

func (f folder) Session(context.Context, loader.Contract) (loader.Session, error) {
	return session{f}, nil
}

type session struct{ folder }

func (session) Close() error { return nil }

func (s session) Load(_ context.Context, b *batch.Batch) (loader.Ack, error) {
	body := b.Open()
	defer body.Close()

	path := filepath.Join(s.path, fmt.Sprintf("%s%s-%d-%d.%s", s.Prefix, b.ID.Run, b.ID.Number, b.Attempt, b.Format))
	part := path + ".part" // what has failed is not applied: see Classify
	if err := write(part, body); err != nil {
		_ = os.Remove(part)
		return loader.Ack{}, err
	}
	return loader.Ack{Rows: b.Rows}, os.Rename(part, path)
}

func write(path string, body io.Reader) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}
