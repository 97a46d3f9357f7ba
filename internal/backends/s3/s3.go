// Package s3 writes batches as objects into Amazon S3 or a compatible store. The objects are the goal here; databases
// that load objects use internal/objstore.
package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const methodPut = "put"

// Driver is the loader.Driver of object stores.
type Driver struct{}

// New returns the driver.
func New() loader.Driver { return Driver{} }

// Name implements loader.Driver.
func (Driver) Name() string { return "s3" }

// Schemes implements loader.Driver.
func (Driver) Schemes() []string { return []string{"s3"} }

// Methods implements loader.Driver.
func (Driver) Methods() []loader.Method {
	return []loader.Method{{Name: methodPut, Help: "PutObject, one object a batch", Caps: caps()}}
}

// caps: a key names its batch forever, and an object is there whole or not at all.
func caps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{
			batch.CSV, batch.NDJSON, batch.Parquet, batch.TSV, batch.CSVGzip, batch.CSVZstd, batch.NDJSONGzip, batch.NDJSONZstd,
		},
		Dedup: loader.DedupKey, Atomic: true, Objects: true,
		MaxBytes: 5 << 30, // of one PUT
		// Readers of objects like 16 to 256 MiB. At 50 Gbps these are a hundred requests a second; a prefix takes
		// 3,500.
		DefaultBatchBytes: 64 << 20,
	}
}

// Check implements loader.Driver.
func (Driver) Check(t loader.Target) (loader.Caps, error) {
	if t.Method != "" && t.Method != methodPut {
		return loader.Caps{}, fmt.Errorf("s3:// has one method, %s, and not %q", methodPut, t.Method)
	}
	if t.Via != nil {
		return loader.Caps{}, errors.New("--staging: the objects are the goal of s3://, they go nowhere else")
	}
	return caps(), objstore.Check(t)
}

// Explain lets a run put a batch into a store that writes down what is sent. RUN stands for the run's id.
func (Driver) Explain(t loader.Target, p loader.Preparation) (all []loader.Statement) {
	when := "once"
	o := &opened{store: objstore.Recorded(t, func(request string) {
		text := strings.Replace(request, "000000000000.", "<batch number, 12 digits>.", 1)
		all = append(all, loader.Statement{When: when, Text: text})
	})}

	ctx := context.Background()
	p.Run = "RUN"
	_, err := o.Prepare(ctx, p)
	if err == nil {
		when = "per batch"
		b := &batch.Batch{ID: batch.ID{Run: p.Run}, Format: p.Contract.Format}
		b.Hold()
		err = o.run.Load().Put(ctx, b)
	}
	if err == nil {
		when = "to verify"
		err = o.Objects(ctx, p.Run, func(string, int64, int64) error { return nil })
	}
	if err != nil {
		return []loader.Statement{{When: "refused: " + strings.ReplaceAll(loader.Explain(err), "\n", "; ")}}
	}
	return all
}

// Classify implements loader.Driver.
func (Driver) Classify(err error) loader.Verdict { return loader.Judge(err, objstore.FaultOf) }

// Open connects to the bucket.
func (d Driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	if _, err := d.Check(t); err != nil {
		return nil, err
	}
	store, err := objstore.Open(ctx, t, deps)
	if err != nil {
		return nil, err
	}
	if err := checkAuthority(store, deps); err != nil {
		_ = store.Close()
		return nil, err
	}
	return &opened{store: store}, nil
}

// checkAuthority refuses an authority that could not be checked. It is not refused where the store is only on the way
// to a database, for which the authority may be meant.
func checkAuthority(store *objstore.Store, deps loader.Deps) error {
	if deps.TLS == nil || !strings.HasPrefix(store.Endpoint(), "http:") {
		return nil
	}
	config, _, err := deps.TLS(loader.TLSVerify, "")
	if err == nil && config.RootCAs != nil {
		err = errors.New("--tls-ca and an http:// endpoint contradict each other: name an https:// endpoint")
	}
	return err
}
