package push

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// fileSource makes the batches of files.
type fileSource struct {
	*files.Source
	spec    *run.Files
	wire    files.Spec // how records are sent
	buffers int
	ended   bool // nothing is to be sent, and there is no Source
	drain   <-chan struct{}
}

func (f *fromFiles) open(ctx context.Context) (rowSource, error) {
	p := f.p
	if err := f.recall(); err != nil {
		return nil, err
	}
	if f.rejected != nil && p.progress.Stage() == runlog.Loading {
		if err := f.rejected.keep(p.progress.Done); err != nil {
			return nil, err
		}
	}
	if p.progress.Continued() && p.plan.Dedup == loader.DedupTx {
		// From then on it is known which of their records batches went in without.
		if _, _, err := p.progress.CountClaims(p.store.ctx); err != nil {
			return nil, err
		}
	}
	if p.idle || p.progress.Stage() != runlog.Loading { // the files may be gone by now
		return &fileSource{ended: true}, nil
	}
	spec := p.plan.Files
	if p.progress.Continued() {
		if err := p.Buckets.Connect(ctx, spec.Files); err != nil {
			return nil, err
		}
	}
	wire := files.Config{
		Spec: spec.Spec, Run: p.progress.ID(), Wire: p.plan.Format, Rewrite: p.caps.PlainFiles, Fields: spec.Width(),
		Columns: spec.ColumnsIn, Some: len(spec.Columns) > 0,
		BatchBytes: spec.BatchBytes, Buffers: p.plan.Buffers, Workers: p.plan.Workers,
		BufferBytes: p.plan.Memory / int64(p.plan.Buffers) / source.PageBytes * source.PageBytes,
		Parallel:    min(len(spec.Files), p.plan.Workers, runtime.GOMAXPROCS(0)),
		Known:       f.ranges.known, Done: p.progress.Done, Ahead: f.ahead, Skip: f.rejected != nil,
	}
	wire.Only, wire.Share = spec.Share()
	from, err := files.New(wire)
	if err != nil {
		return nil, err
	}
	return &fileSource{Source: from, spec: spec, wire: wire.WireSpec(), buffers: p.plan.Buffers, drain: p.Drain}, nil
}

// Batch adds to the batch how its records are written, and where they are.
func (s *fileSource) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	if s.ended {
		return nil, &source.EndError{}
	}
	wait, cancel := Until(ctx, s.drain, errStopped)
	defer cancel(nil)
	b, err := s.Source.Batch(wait, number)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return nil, errStopped // what is not read yet, as of a pipe, may never be
	}
	if bad := (*files.RecordError)(nil); errors.As(err, &bad) { // as a server's word on a record
		return nil, loader.Judged(err, loader.Refused(loader.ClassData))
	}
	if err != nil {
		return nil, err
	}
	r, known := s.Range(number)
	if !known {
		b.Release()
		return nil, fmt.Errorf("batch %d has no range", number)
	}
	b.Layout = s.spec.Layout(r.File)
	b.Origin = &batch.Origin{
		File: s.spec.Files[r.File].Name(), Line: r.FirstLine, Record: r.FirstRecord + 1,
		Records: func() []batch.Record { return s.records(r, b.Encoded) },
	}
	for _, bad := range s.Bad(number) {
		b.Origin.Bad = append(b.Origin.Bad, batch.Bad{
			File: bad.Path, Line: bad.Line, Words: bad.Why, Record: string(bad.Record),
		})
	}
	return b, nil
}

// records takes a batch in use apart.
func (s *fileSource) records(r files.Range, sent []byte) []batch.Record {
	bad := make(map[int64]bool)
	for _, b := range s.Bad(r.Batch) {
		bad[b.Line] = true
	}
	all, raw := make([]batch.Record, 0, r.Records), s.Raw(r.Batch)
	for lines, one := range s.spec.Records(raw) {
		if line := r.FirstLine + lines; !bad[line] {
			all = append(all, batch.Record{Raw: one, Wire: one, Line: line})
		}
	}
	if len(raw) == len(sent) && &raw[0] == &sent[0] { // as they are in the file
		return all
	}
	i := 0
	for _, wire := range s.wire.Records(sent) {
		all[i].Wire = wire
		i++
	}
	return all
}

// Fill does nothing: files are read while batches are sent.
func (*fileSource) Fill(context.Context, int, func(int64)) error { return nil }

// Buffers returns how many buffers there are.
func (s *fileSource) Buffers() int { return s.buffers }

// Free returns how many of them hold no batch.
func (s *fileSource) Free() int {
	if s.ended {
		return 0
	}
	return s.Source.Free()
}

// Close ends the reading.
func (s *fileSource) Close() error {
	if s.ended {
		return nil
	}
	return s.Source.Close()
}

// Refills returns 0: nothing is made twice.
func (*fileSource) Refills() int64 { return 0 }

// setTotals estimates how many bytes there are in the files, by the share of them that is read.
func (f *fromFiles) setTotals(o *stats.Options) {
	cut, from, spec := f.p.plan.Cut, f.p.source.(*fileSource), f.p.plan.Files
	o.Planned = func() int64 {
		made := cut.All()
		if from.ended {
			return made
		}
		read, all := from.Progress()
		switch {
		case cut.Ended():
			return made
		case read <= 0 || all <= 0 || made == 0:
			return spec.PlainBytes()
		}
		return max(int64(float64(made)*float64(all)/float64(read)), made)
	}
}

// sent ends a run whose files are read to their ends.
func (f *fromFiles) sent(result engine.Result, err error) (engine.Result, error) {
	if err == nil && !result.Drained {
		f.p.endAt(result.Handed)
		f.p.plan.Cut.End(result.Handed)
	}
	return result, err
}
