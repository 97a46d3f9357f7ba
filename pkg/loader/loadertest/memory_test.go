package loadertest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

func schema() rows.Schema {
	return rows.Schema{
		Dataset: "d",
		Columns: []rows.Column{{Name: "k", Type: rows.Int64, Derived: true}, {Name: "v", Type: rows.Bytes, MaxBytes: 4}},
		Number:  []rows.Term{{Times: 1}},
	}
}

func row(n int64) []any { return []any{n, binary.BigEndian.AppendUint32(nil, uint32(n))} }

func newBatch(_ *testing.T, id batch.ID, first, n int64) *batch.Batch {
	return &batch.Batch{ID: id, Format: batch.PGBinary, First: first, Rows: n}
}

func contract() loader.Contract {
	return loader.Contract{
		Method: "keep", Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 100,
	}
}

// The suite is checked by a back-end that is right by inspection.
func TestMemory(t *testing.T) {
	tables := make(map[string]*loadertest.Memory)
	loadertest.Run(t, loadertest.Harness{
		Driver: tableDriver{Driver: (&loadertest.Memory{}).Driver(), tables: tables},
		Target: func(t *testing.T) loader.Target {
			tables[t.Name()] = &loadertest.Memory{Row: row}
			return loader.Target{Scheme: "memory", Table: t.Name()}
		},
		Schema: schema(), Contract: contract(), Batch: newBatch, Row: row,
	})
}

// tableDriver gives every table a database of its own.
type tableDriver struct {
	loader.Driver
	tables map[string]*loadertest.Memory
}

func (d tableDriver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	return d.tables[t.Table].Driver().Open(ctx, t, deps)
}

func TestMemoryScript(t *testing.T) {
	m := &loadertest.Memory{Script: func(_ int64, attempt int) loadertest.Fault {
		return [...]loadertest.Fault{
			1: {Before: loadertest.ErrConnection},
			2: {Stall: true},
			3: {After: loadertest.ErrConnection},
			4: {},
		}[attempt]
	}}
	l, err := m.Driver().Open(t.Context(), loader.Target{}, loader.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	b := newBatch(t, batch.ID{Run: "r", Number: 3}, 300, 100)
	attempt := func(ctx context.Context) (loader.Ack, error) {
		s, err := l.Session(ctx, contract())
		if err != nil {
			t.Fatal(err)
		}
		b.Hold()
		defer b.Release()
		return s.Load(ctx, b)
	}
	resolve := func(want loader.Applied) {
		t.Helper()
		r, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
		if err != nil || r.Applied != want {
			t.Errorf("resolved %v, %v, want %v", r.Applied, err, want)
		}
	}

	_, err = attempt(t.Context())
	if v := m.Driver().Classify(err); v.Applied != loader.Unknown || !v.Retry || !v.SessionDead {
		t.Errorf("%v: verdict %+v", err, v)
	}
	resolve(loader.No)

	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	_, err = attempt(ctx)
	if v := m.Driver().Classify(err); !errors.Is(err, context.DeadlineExceeded) || v.Applied != loader.No {
		t.Errorf("%v: verdict %+v", err, v)
	}

	_, err = attempt(t.Context())
	if err == nil {
		t.Error("the lost answer arrived")
	}
	resolve(loader.Yes)

	ack, err := attempt(t.Context())
	if err != nil || !ack.AlreadyApplied || ack.Rows != 100 {
		t.Errorf("ack %+v, %v", ack, err)
	}
	if m.Attempts(3) != 4 || len(m.Applied()) != 1 || m.Resolved() != 2 || m.Sessions() != 4 {
		t.Errorf("%d attempts, applied %v, %d resolved, %d sessions", m.Attempts(3), m.Applied(), m.Resolved(), m.Sessions())
	}
}
