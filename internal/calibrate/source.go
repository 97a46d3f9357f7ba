package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// What is drawn and encoded at a time, in bytes. A piece stays in a core's own cache, as it does in a push.
const (
	pieceBytes = 128 << 10
	batchBytes = 1 << 20
)

// sourceShare is the part of the time that drawing and encoding get together.
const sourceShare = 0.12

// source is what rows are made of, for each format that the protocols take.
type source struct {
	keys []baseline.Key // of the stages fill and encode
	data map[baseline.Key]dataset.Dataset
}

// newSource plans the pushes, which says in which formats rows go, and refuses what none of them could send.
func (c *Calibration) newSource() (*source, error) {
	s := &source{data: map[baseline.Key]dataset.Dataset{}}
	for _, p := range c.Protocols {
		one, err := c.fit(p, nowhere(), false, 1, shortest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		made := one.Plan
		d, err := datasetOf(one)
		if err != nil {
			return nil, err
		}
		drawn := baseline.Key{Stage: baseline.Fill, Dataset: made.Dataset, PayloadBytes: made.PayloadBytes, PayloadKind: made.PayloadKind}
		encoded := drawn
		encoded.Stage, encoded.Format = baseline.Encode, string(made.Format)
		for _, k := range []baseline.Key{drawn, encoded} {
			if s.data[k] == nil {
				s.data[k] = d
				s.keys = append(s.keys, k)
			}
		}
	}
	slices.SortStableFunc(s.keys, func(a, b baseline.Key) int {
		return map[baseline.Stage]int{baseline.Fill: 0, baseline.Encode: 1}[a.Stage] - map[baseline.Stage]int{baseline.Fill: 0, baseline.Encode: 1}[b.Stage]
	})
	return s, nil
}

// measureSource draws and encodes on one core and on all.
func (c *Calibration) measureSource(ctx context.Context, s *source, found *Found) error {
	cores := slices.Compact([]int{1, runtime.GOMAXPROCS(0)})
	each := time.Duration(sourceShare * float64(c.Time) / float64(len(s.keys)*len(cores)))
	var made []baseline.Measurement
	for _, k := range s.keys {
		for _, n := range cores {
			work := draw
			if k.Stage == baseline.Encode {
				work = encodeBatches
			}
			did, err := work(ctx, s.data[k], batch.Format(k.Format), n, each)
			if err != nil {
				return err
			}
			one := c.ceiling(k, n)
			one.RowsPerSecond, one.BytesPerSecond = did.rows/did.seconds, did.bytes/did.seconds
			one.CPUSecondsPerGiB = did.cpu / (did.bytes / gib)
			made = append(made, one)
			c.tell("%s: %s/s, %s rows/s", sourceName(one), size(one.BytesPerSecond), count(one.RowsPerSecond))
		}
	}
	found.Source = made
	return baseline.Save(c.State, made)
}

// done is what some goroutines did.
type done struct{ rows, bytes, seconds, cpu float64 }

// together runs one step again and again on several cores until the time is over; a step says what it did.
func together(ctx context.Context, cores int, long time.Duration, worker func(n int) func() (rows, bytes int64, err error)) (done, error) {
	bound, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var all sync.WaitGroup
	var drawn, bytes atomic.Int64
	problems := make([]error, cores)
	steps := make([]func() (int64, int64, error), cores)
	for n := range steps {
		steps[n] = worker(n)
	}
	before, began := stats.ProcessUsage().CPU(), time.Now()
	for n, step := range steps {
		all.Go(func() {
			for first := true; first || bound.Err() == nil; first = false {
				r, b, err := step()
				if err != nil {
					problems[n] = err
					return
				}
				drawn.Add(r)
				bytes.Add(b)
			}
		})
	}
	all.Wait()
	d := done{
		rows: float64(drawn.Load()), bytes: float64(bytes.Load()),
		seconds: time.Since(began).Seconds(), cpu: stats.ProcessUsage().CPU() - before,
	}
	return d, errors.Join(append(problems, ctx.Err())...)
}

// draw fills blocks with rows.
func draw(ctx context.Context, d dataset.Dataset, _ batch.Format, cores int, long time.Duration) (done, error) {
	n := int(max(1, pieceBytes/d.Schema().MaxRowBytes()))
	var next atomic.Int64
	return together(ctx, cores, long, func(int) func() (int64, int64, error) {
		block := rows.NewBlock(d.Schema())
		return func() (int64, int64, error) {
			first := next.Add(int64(n)) - int64(n)
			d.Fill(block, first, n)
			d.Derive(block, first)
			return int64(n), block.PayloadBytes(), nil
		}
	})
}

// encodeBatches has the feed of a run without any repeated row make one batch after the other.
func encodeBatches(ctx context.Context, d dataset.Dataset, f batch.Format, cores int, long time.Duration) (done, error) {
	const many = math.MaxInt32 // batches: as many as there is time for
	widest, err := encode.New(f, d.Schema(), encode.Options{})
	if err != nil {
		return done{}, err
	}
	perBatch := max(1, batchBytes/int64(widest.MaxRow()))
	total := min(many*perBatch, d.Schema().MaxNumber())
	e, err := feed.NewEncoder(f, d, 0, total)
	if err != nil {
		return done{}, err
	}
	// More than the caches hold, so that buffers are written to memory.
	ring, err := feed.New(feed.Config{
		Dataset: d, Encoder: e, Run: "calibrate", Rows: total, BatchRows: perBatch, Buffers: max(64, 2*cores),
	})
	if err != nil {
		return done{}, err
	}
	if err := ring.Fill(ctx, cores, nil); err != nil {
		return done{}, errors.Join(err, ring.Close())
	}
	var next atomic.Int64
	next.Store(int64(ring.Buffers()))
	did, err := together(ctx, cores, long, func(int) func() (int64, int64, error) {
		return func() (int64, int64, error) {
			b, err := ring.Batch(ctx, next.Add(1)-1)
			if err != nil {
				return 0, 0, err
			}
			defer b.Release()
			return b.Rows, b.Payload, nil
		}
	})
	return did, errors.Join(err, ring.Close())
}

// datasetOf is what a push would send.
func datasetOf(one sweep.Setup) (dataset.Dataset, error) {
	p := one.Plan
	return dataset.New(p.Dataset, dataset.Options{Seed: p.Seed, PayloadBytes: p.PayloadBytes, PayloadKind: dataset.Kind(p.PayloadKind)})
}

// lengthOfAll is the length that every row has in the format, in a run of so many rows; 0 if they differ.
func lengthOfAll(d dataset.Dataset, f batch.Format, runRows int64) (int64, error) {
	const some = 1000 // rows, among which lengths differ if they ever do
	e, err := feed.NewEncoder(f, d, 0, runRows)
	if err != nil {
		return 0, err
	}
	if _, together := e.(encode.PerBatch); together {
		return 0, nil // rows have no length of their own
	}
	block, at := rows.NewBlock(d.Schema()), new(encode.Offsets)
	d.Fill(block, 0, some)
	d.Derive(block, 0)
	head := len(e.AppendHead(nil))
	body := len(e.AppendRows(e.AppendHead(nil), block, at)) - head
	if all := some * e.MaxRow(); body != all && body+1 != all { // nothing separates the first row from one before
		return 0, nil
	}
	return int64(e.MaxRow()), nil
}

// sourceName is a figure of drawing or encoding for people.
func sourceName(c baseline.Measurement) string {
	what := map[baseline.Stage]string{baseline.Fill: "draw rows of " + c.Dataset, baseline.Encode: "draw and encode " + c.Format}[c.Stage]
	if c.PayloadKind != string(dataset.Bytes) {
		what += ", payload " + c.PayloadKind
	}
	return fmt.Sprintf("%s on %s", what, plural(c.Workers, "core"))
}
