package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

var _ interface {
	loader.Loader
	loader.Resolver
	loader.Inventory
	loader.Sizer
	loader.Checker
} = (*opened)(nil)

// opened is a store, and from Prepare on a run in it.
type opened struct {
	store *objstore.Store
	run   atomic.Pointer[run]
}

type run struct {
	*objstore.Run
	format batch.Format
}

func (o *opened) prepared() (*run, error) {
	if r := o.run.Load(); r != nil {
		return r, nil
	}
	return nil, errors.New("s3: the loader was not prepared")
}

func (o *opened) Server() loader.Server {
	endpoint, product := o.store.Endpoint(), "S3-compatible store"
	if endpoint == "" {
		endpoint, product = "Amazon S3, "+o.store.Region(), "Amazon S3"
	}
	return loader.Server{
		Product: product, Version: o.store.Software(), Endpoint: endpoint,
		Settings: map[string]string{"region": o.store.Region()},
	}
}

func (o *opened) Caps() loader.Caps { return caps() }
func (o *opened) Close() error      { return o.store.Close() }

// Prepare checks that the folder of a new run is empty: objects of another run with its id would be overwritten.
func (o *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if p.Create == loader.CreateRecreate || p.Create == loader.CreateTruncate {
		return loader.Table{}, &loader.Error{
			Op: "prepare", Applied: loader.No, Err: errors.New("a store has no table to drop or empty"),
			Hint: fmt.Sprintf("leave --create %s out: every run has a folder of its own", p.Create),
		}
	}
	r := &run{o.store.Run(p.Run), p.Contract.Format}
	o.run.Store(r)
	table := loader.Table{Name: o.store.Bucket() + "/" + strings.TrimSuffix(r.Folder(), "/"), Created: !p.Resume}
	if p.Silent || p.Resume {
		return table, nil
	}
	return table, r.List(ctx, func(found objstore.Object) error {
		return &loader.Error{
			Op: "prepare", Applied: loader.No, Err: fmt.Errorf("%s is in the folder of this new run", found.Name),
			Hint: "remove it, or choose another prefix",
		}
	})
}

// Session puts one batch at a time. All sessions share the connections.
func (o *opened) Session(_ context.Context, _ loader.Contract) (loader.Session, error) {
	r, err := o.prepared()
	if err != nil {
		return nil, err
	}
	return objstore.Session(r.Run), nil
}

// Resolve checks that the batch's object is there, with its rows and length. A store shows an object whole or not at
// all, and at once. An earlier PUT that is still running can only put the same bytes there.
func (o *opened) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	r, err := o.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	holds, err := o.store.Run(ref.ID.Run).Holds(ctx, ref, r.format)
	if err != nil {
		return loader.Resolution{}, err
	}
	if holds {
		return loader.Resolution{Applied: loader.Yes}, nil
	}
	return loader.Resolution{Applied: loader.No}, nil
}

// Objects lists what the run has put.
func (o *opened) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return o.store.Run(run).Objects(ctx, f)
}

// Stored is the sum of the run's objects, in bytes.
func (o *opened) Stored(ctx context.Context) (total int64, err error) {
	r, err := o.prepared()
	if err != nil {
		return 0, err
	}
	err = r.List(ctx, func(found objstore.Object) error {
		total += found.Bytes
		return nil
	})
	return total, err
}

// CheckServer checks the bucket.
func (o *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	return o.store.CheckServer(ctx, i, "")
}
