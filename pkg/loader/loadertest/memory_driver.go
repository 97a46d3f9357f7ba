package loadertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Driver opens loaders on the database, under the scheme memory.
func (m *Memory) Driver() loader.Driver { return memoryDriver{m} }

type memoryDriver struct{ *Memory }

func (memoryDriver) Name() string      { return "memory" }
func (memoryDriver) Schemes() []string { return []string{"memory"} }

func (d memoryDriver) Methods() []loader.Method {
	caps := loader.Caps{
		Formats: []batch.Format{batch.PGBinary, batch.PGText, batch.TSV, batch.CSV, batch.ColumnArrays},
		Dedup:   loader.DedupTx, Atomic: true,
		DefaultBatchBytes: 1 << 20,
	}
	if d.Caps != nil {
		caps = *d.Caps
	}
	return []loader.Method{{Name: "keep", Help: "keeps in memory which rows it was given", Caps: caps}}
}

func (d memoryDriver) Check(t loader.Target) (loader.Caps, error) {
	if len(t.Settings) > 0 && t.Settings[0].Name == "unfit" {
		return loader.Caps{}, fmt.Errorf("--set %s: memory has no such variable", t.Settings[0].Name)
	}
	return d.Methods()[0].Caps, nil
}

func (memoryDriver) Explain(loader.Target, loader.Preparation) []loader.Statement {
	return nil
}

func (d memoryDriver) Open(context.Context, loader.Target, loader.Deps) (loader.Loader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claims == nil {
		d.claims, d.running, d.objects = make(map[batch.ID]loader.Ref), make(map[batch.ID]loader.Ref), make(map[batch.ID]object)
		d.attempts, d.commits = make(map[int64]int), make(map[int64]int)
	}
	return &memoryLoader{Memory: d.Memory, caps: d.Methods()[0].Caps, row: &loader.RunRow{}}, nil
}

func (memoryDriver) Classify(err error) loader.Verdict {
	v := loader.Verdict{Applied: loader.No, Class: loader.ClassOther}
	switch {
	case errors.As(err, new(*loader.TakenOverError)):
		v.Class = loader.ClassTakenOver
	case errors.Is(err, ErrConnection):
		v = loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassConnection}
	case errors.Is(err, ErrThrottled):
		v.Retry, v.After, v.Class = true, time.Millisecond, loader.ClassThrottled
	case errors.Is(err, ErrRejected):
		v.Class = loader.ClassConstraint
	case errors.Is(err, context.DeadlineExceeded):
		v = loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassTimeout}
	case errors.Is(err, context.Canceled):
		v = loader.Verdict{Applied: loader.Unknown, SessionDead: true, Class: loader.ClassOther}
	}
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

func (l *memoryLoader) Resolve(_ context.Context, ref loader.Ref) (loader.Resolution, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resolved++
	delete(l.running, ref.ID)
	if err := l.mayWrite(*l.row); err != nil {
		return loader.Resolution{}, err
	}
	ref.ID = l.claimant(ref.ID)
	if c, there := l.claims[ref.ID]; there && c.Rows != ref.Rows {
		return loader.Resolution{Reason: fmt.Sprintf("%d of its %d rows are there", c.Rows, ref.Rows)}, nil
	} else if there {
		return loader.Resolution{Applied: loader.Yes}, nil
	}
	return loader.Resolution{Applied: loader.No}, nil
}

func (l *memoryLoader) Probe(context.Context, loader.Contract, *batch.Batch) (loader.Proof, error) {
	return loader.Proof{Transactional: l.Unprovable == "", Reason: l.Unprovable}, nil
}
