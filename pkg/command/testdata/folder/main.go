// Command folder is terapush with a back-end of another module: folder:///path writes each batch into a file of its own.
package main

import (
	"context"
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
	if t.Database == "" {
		return caps, fmt.Errorf("the target names no folder: write folder:///path")
	}
	_, err := loader.ReadOptions(d, t, new(options))
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

	name := fmt.Sprintf("%s%s-%d-%d.%s", s.Prefix, b.ID.Run, b.ID.Number, b.Attempt, b.Format)
	file, err := os.Create(filepath.Join(s.path, name))
	if err != nil {
		return loader.Ack{}, err
	}

	if _, err := io.Copy(file, body); err != nil {
		_ = file.Close()
		return loader.Ack{}, err
	}
	return loader.Ack{Rows: b.Rows}, file.Close()
}
