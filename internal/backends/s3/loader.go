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

// opened is a store with the run that Prepare was told.
type opened struct {
	store *objstore.Store
	run   atomic.Pointer[preparation]
}

type preparation struct {
	objects *objstore.Run
	format  batch.Format
}

func (o *opened) Server() loader.Server {
	endpoint, product := o.store.Endpoint(), "S3-compatible store"
	if endpoint == "" {
		endpoint, product = "Amazon S3, "+o.store.Region(), "Amazon S3"
	}
	return loader.Server{Product: product, Version: o.store.Software(), Endpoint: endpoint, Settings: map[string]string{"region": o.store.Region()}}
}

func (o *opened) Caps() loader.Caps { return caps() }
func (o *opened) Close() error      { return o.store.Close() }

// Prepare makes sure that a new run finds its folder empty. The run's id is the folder's name, so whatever lies there came
// from somebody who used the same id, and would be overwritten.
func (o *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if p.Create == loader.CreateRecreate || p.Create == loader.CreateTruncate {
		return loader.Table{}, &loader.Error{
			Op: "prepare", Applied: loader.No, Err: errors.New("a store has no table that could be made anew or emptied"),
			Hint: fmt.Sprintf("leave --create %s out: every run has a folder of its own, and nothing of other runs is removed", p.Create),
		}
	}
	run := o.store.Run(p.Run)
	o.run.Store(&preparation{objects: run, format: p.Contract.Format})
	table := loader.Table{Name: o.store.Bucket() + "/" + strings.TrimSuffix(run.Folder(), "/"), Created: !p.Resume}
	if p.Silent || p.Resume {
		return table, nil
	}
	err := run.List(ctx, func(found objstore.Object) error {
		return &loader.Error{
			Op: "prepare", Applied: loader.No, Err: fmt.Errorf("%s lies in the folder of this new run", found.Name),
			Hint: "remove it, or choose another prefix",
		}
	})
	if err != nil {
		return loader.Table{}, err
	}
	return table, nil
}

// Session puts one batch at a time. Connections are shared: any of them can carry any request.
func (o *opened) Session(_ context.Context, _ loader.Contract) (loader.Session, error) {
	run := o.run.Load()
	if run == nil {
		return nil, errors.New("s3: a session before Prepare")
	}
	return objstore.Session(run.objects), nil
}

// Resolve looks whether the batch's object is there, with the rows and the length it should have. A store shows an object
// whole or not at all, and at once, so that is the answer; an earlier PUT that is still under way can only put the same
// bytes there again.
func (o *opened) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	run := o.run.Load()
	if run == nil {
		return loader.Resolution{}, errors.New("s3: a question before Prepare")
	}
	holds, err := o.store.Run(ref.ID.Run).Holds(ctx, ref, run.format)
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

// Stored sums up the run's objects.
func (o *opened) Stored(ctx context.Context) (total int64, err error) {
	run := o.run.Load()
	if run == nil {
		return 0, errors.New("s3: a question before Prepare")
	}
	err = run.objects.List(ctx, func(found objstore.Object) error {
		total += found.Bytes
		return nil
	})
	return total, err
}

// CheckServer asks about the bucket and the way to it.
func (o *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	return o.store.CheckServer(ctx, i, "")
}
