//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"

	backends "github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// method is the default one of a family, if terapush has a back-end of that name.
func method(family string) (loader.Method, bool) {
	drivers, err := backends.Drivers()
	if err != nil {
		return loader.Method{}, false
	}
	d, found := drivers.Lookup(family)
	if !found {
		return loader.Method{}, false
	}
	return loader.FindMethod(d, "")
}

// openSession opens what a worker of terapush uses, without the worker: batches go in under their labels. A table is
// looked at and made only where p is not silent.
func openSession(ctx context.Context, url string, m loader.Method, p loader.Preparation) (loader.Session, error) {
	t, err := loader.ParseTarget(url)
	if err != nil {
		return nil, err
	}
	t.Method, t.Table = m.Name, benchTable
	drivers, err := backends.Drivers()
	if err != nil {
		return nil, err
	}
	driver, found := drivers.Lookup(t.Scheme)
	if !found {
		return nil, fmt.Errorf("there is no back-end for %s://", t.Scheme)
	}
	d, err := documents()
	if err != nil {
		return nil, err
	}
	opened, err := driver.Open(ctx, t, loader.Deps{
		Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	p.Run, p.Schema = "bench", d.Schema()
	if p.Contract.Method == "" {
		p.Contract = loader.Contract{Method: m.Name, Format: m.Caps.Formats[0], Dedup: m.Caps.Dedup}
	}
	if _, err := opened.Prepare(ctx, p); err != nil {
		return nil, err
	}
	return opened.Session(ctx, p.Contract)
}

func loadBatches(ctx context.Context, s loader.Session, r *ring) (rows int64, err error) {
	for i := range r.bodies {
		if err := loadBatch(ctx, s, "bench", i, r); err != nil {
			return 0, err
		}
		rows += r.bodyRows()
	}
	return rows, nil
}

// loadBatch loads the i-th body of the ring as a batch of the run.
func loadBatch(ctx context.Context, s loader.Session, run string, i int, r *ring) error {
	b := &batch.Batch{ID: batch.ID{Run: run, Number: int64(i)}, Format: r.format, First: int64(i) * r.bodyRows(),
		Rows: r.bodyRows(), Attempt: 1, Encoded: r.bodies[i]}
	b.Hold()
	defer b.Release()
	ack, err := s.Load(ctx, b)
	if err == nil && ack.Rows != b.Rows {
		err = fmt.Errorf("%d rows acknowledged of %d", ack.Rows, b.Rows)
	}
	return err
}
