// Package discard is the back-end without a database: it reads every body to its end and drops it. It measures this
// machine and terapush itself, up to the edge of the network.
package discard

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Driver is the loader.Driver of discard://.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name implements loader.Driver.
func (Driver) Name() string { return "discard" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string { return []string{"discard"} }

// Methods implements loader.Driver.
func (Driver) Methods() []loader.Method {
	return []loader.Method{{
		Name: "discard",
		Help: "encode and drop: measures this machine",
		Caps: caps(),
	}}
}

func caps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{
			batch.PGBinary, batch.TSV, batch.CSV, batch.DorisCSV, batch.NDJSON, batch.Parquet, batch.PGText, batch.Values,
			batch.PGValues, batch.ColumnArrays,
		},
		Reason:            "discarded rows are nowhere",
		DefaultBatchBytes: 16 << 20,
	}
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	if len(t.Settings) > 0 {
		return loader.Caps{}, fmt.Errorf("--set: discard:// has no sessions to set %s in", t.Settings[0].Name)
	}
	return caps(), nil
}

// Explain implements loader.Driver.
func (Driver) Explain(loader.Target, loader.Preparation) []loader.Statement { return nil }

// Classify implements loader.Driver.
func (Driver) Classify(error) loader.Verdict {
	return loader.Verdict{Applied: loader.No, Class: loader.ClassOther}
}

// Open implements loader.Driver.
func (d Driver) Open(_ context.Context, t loader.Target, _ loader.Deps) (loader.Loader, error) {
	_, err := d.Check(t)
	return opened{}, err
}

type opened struct{}

func (opened) Server() loader.Server {
	return loader.Server{Product: "discard", Endpoint: loader.NoEndpoint}
}
func (opened) Caps() loader.Caps { return caps() }

func (opened) Prepare(context.Context, loader.Preparation) (loader.Table, error) {
	return loader.Table{Name: "nowhere"}, nil
}

func (opened) Session(context.Context, loader.Contract) (loader.Session, error) {
	return &session{piece: make([]byte, 64<<10)}, nil
}

func (opened) Close() error { return nil }

type session struct {
	piece []byte // of the size that sockets are written in
}

func (*session) Close() error { return nil }

// Load reads the body in pieces.
func (s *session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	body := b.Open()
	defer body.Close()
	for ctx.Err() == nil {
		if _, err := body.Read(s.piece); errors.Is(err, io.EOF) {
			return loader.Ack{Rows: b.Rows}, nil
		}
	}
	return loader.Ack{}, ctx.Err()
}
