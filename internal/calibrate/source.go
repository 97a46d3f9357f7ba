package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"
	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Bytes that are drawn and encoded at a time. A piece stays in a core's own cache, as in a push.
const (
	pieceBytes = 128 << 10
	batchBytes = 1 << 20
)

// sourceShare is the share of the time for drawing and encoding.
const sourceShare = 0.12

// source is a stage before sending: fill, or encode in a protocol's format.
type source struct {
	key  baseline.Key
	data dataset.Dataset
}

// sources plans the pushes to find their formats. It fails if one of them cannot be planned.
func (c *Calibration) sources() ([]source, error) {
	var fills, encodes []source
	for _, p := range c.Protocols {
		one, err := c.fit(p, nowhere(), false, 1, shortest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		d, err := datasetOf(one)
		if err != nil {
			return nil, err
		}
		fill := source{baseline.Key{
			Stage: baseline.Fill, Dataset: one.Plan.Dataset, PayloadBytes: one.Plan.PayloadBytes, PayloadKind: one.Plan.PayloadKind,
		}, d}
		encode := fill
		encode.key.Stage, encode.key.Format = baseline.Encode, string(one.Plan.Format)
		fills, encodes = append(fills, fill), append(encodes, encode)
	}
	seen := map[baseline.Key]bool{}
	return slices.DeleteFunc(append(fills, encodes...), func(s source) bool {
		was := seen[s.key]
		seen[s.key] = true
		return was
	}), nil
}

// measureSources draws and encodes on one core and on all.
func (c *Calibration) measureSources(ctx context.Context, sources []source, found *Found) error {
	cores := slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	each := time.Duration(sourceShare * float64(c.Time) / float64(len(sources)*len(cores)))
	var all []baseline.Measurement
	for _, s := range sources {
		for _, n := range cores {
			m := c.measurement(s.key, n)
			run := s.fill
			if s.key.Stage == baseline.Encode {
				run = s.encode
			}
			if err := run(ctx, &m, each); err != nil {
				return err
			}
			all = append(all, m)
			c.tell("%s on %s: %s/s, %s rows/s", strings.TrimSpace(sourceName(m)+" "+m.Format), english.Plural(n, "core", ""),
				size(m.BytesPerSecond), units.Amount(m.RowsPerSecond))
		}
	}
	found.Source = all
	return baseline.Save(c.State, all)
}

// step does a piece of work.
type step func() (rows, bytes int64, err error)

// measure repeats each worker's step for the duration, and sets the rates.
func measure(ctx context.Context, m *baseline.Measurement, duration time.Duration, worker func() step) error {
	bound, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var group errgroup.Group
	var rows, bytes atomic.Int64
	steps := make([]step, m.Workers)
	for n := range steps {
		steps[n] = worker()
	}
	cpu, began := stats.ProcessUsage().CPU(), time.Now()
	for _, do := range steps {
		group.Go(func() error {
			for first := true; first || bound.Err() == nil; first = false {
				r, b, err := do()
				if err != nil {
					return err
				}
				rows.Add(r)
				bytes.Add(b)
			}
			return nil
		})
	}
	err := group.Wait()
	seconds := time.Since(began).Seconds()
	m.RowsPerSecond, m.BytesPerSecond = float64(rows.Load())/seconds, float64(bytes.Load())/seconds
	m.CPUSecondsPerGiB = (stats.ProcessUsage().CPU() - cpu) / (float64(bytes.Load()) / gib)
	return errors.Join(err, ctx.Err())
}

// fill draws rows into blocks.
func (s source) fill(ctx context.Context, m *baseline.Measurement, duration time.Duration) error {
	schema := s.data.Schema()
	n := int(max(1, pieceBytes/schema.MaxRowBytes()))
	var next atomic.Int64
	return measure(ctx, m, duration, func() step {
		block := rows.NewBlock(schema)
		return func() (int64, int64, error) {
			first := next.Add(int64(n)) - int64(n)
			s.data.Fill(block, first, n)
			s.data.Derive(block, first)
			return int64(n), block.PayloadBytes(), nil
		}
	})
}

// encode makes the batches of a run in which no row repeats.
func (s source) encode(ctx context.Context, m *baseline.Measurement, duration time.Duration) error {
	const many = math.MaxInt32 // batches
	format, schema := batch.Format(s.key.Format), s.data.Schema()
	widest, err := encode.New(format, schema, encode.Options{})
	if err != nil {
		return err
	}
	perBatch := max(1, batchBytes/int64(widest.MaxRow()))
	total := min(many*perBatch, schema.MaxNumber())
	e, err := feed.NewEncoder(format, s.data, 0, total)
	if err != nil {
		return err
	}
	// The ring exceeds the caches, so that buffers are written to memory.
	ring, err := feed.New(feed.Config{
		Dataset: s.data, Encoder: e, Run: "calibrate", Rows: total, BatchRows: perBatch, Buffers: max(64, 2*m.Workers),
	})
	if err != nil {
		return err
	}
	if err = ring.Fill(ctx, m.Workers, nil); err == nil {
		var next atomic.Int64
		next.Store(int64(ring.Buffers()))
		err = measure(ctx, m, duration, func() step {
			return func() (int64, int64, error) {
				b, err := ring.Batch(ctx, next.Add(1)-1)
				if err != nil {
					return 0, 0, err
				}
				defer b.Release()
				return b.Rows, b.Payload, nil
			}
		})
	}
	return errors.Join(err, ring.Close())
}

// datasetOf returns what a push would send.
func datasetOf(one sweep.Setup) (dataset.Dataset, error) {
	p := one.Plan
	return dataset.New(p.Dataset, dataset.Options{Seed: p.Seed, PayloadBytes: p.PayloadBytes, PayloadKind: dataset.Kind(p.PayloadKind)})
}

// fixedLength returns the length of every row in the format, in a run of so many rows; 0 if rows differ.
func fixedLength(d dataset.Dataset, f batch.Format, runRows int64) (int64, error) {
	const some = 1000 // rows: if lengths differ, they differ among so many
	e, err := feed.NewEncoder(f, d, 0, runRows)
	if err != nil {
		return 0, err
	}
	if _, columnar := e.(encode.PerBatch); columnar {
		return 0, nil
	}
	block, at := rows.NewBlock(d.Schema()), new(encode.Offsets)
	d.Fill(block, 0, some)
	d.Derive(block, 0)
	head := len(e.AppendHead(nil))
	body := len(e.AppendRows(e.AppendHead(nil), block, at)) - head
	if all := some * e.MaxRow(); body != all && body+1 != all { // the first row has no separator
		return 0, nil
	}
	return int64(e.MaxRow()), nil
}

// sourceName names a measurement of drawing or encoding.
func sourceName(m baseline.Measurement) string {
	name := "draw rows"
	if m.Stage == baseline.Encode {
		name = "draw and encode"
	}
	if m.PayloadKind == string(dataset.Text) {
		name += ", text payload"
	}
	return name
}
