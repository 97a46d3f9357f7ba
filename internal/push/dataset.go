package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
)

// fromDataset is the input of a push.
type fromDataset struct{ p *push }

func (fromDataset) command() string { return "push" }

func (d fromDataset) spec(context.Context) (run.Spec, error) {
	return specOf(&d.p.Config, d.p.target.Method), nil
}

// specOf returns the spec of a push that begins.
func specOf(c *config.Push, method string) run.Spec {
	return run.NewSpec(&c.Data, &c.Batches, method, c.RunID != "")
}

// What concerns files alone.
func (fromDataset) openRejects(facts) error         { return nil }
func (fromDataset) connected(context.Context) error { return nil }
func (fromDataset) recall() error                   { return nil }
func (fromDataset) rejects() engine.Rejects         { return nil }
func (fromDataset) leftOut() error                  { return nil }
func (fromDataset) explain(error) error             { return nil }
func (fromDataset) close() error                    { return nil }

// report measures how far the rows can be compressed, after the run and on rows made again: it costs tens of
// milliseconds.
func (d fromDataset) report(r *report.Plan) {
	made := &d.p.plan
	if !d.p.filled {
		return
	}
	if ratio, err := source.CompressionRatio(made.Data, made.Format, made.Rows); err == nil {
		r.ZstdRatio = ratio
	}
}

// choose takes the user's first key, or the first one behind those of a table that is appended to. From then on no
// other run gets these keys.
func (d fromDataset) choose(ctx context.Context) (spec run.Spec, err error) {
	p := d.p
	first, claims := p.Config.FirstKey.Key, p.target.Can.Claims
	behind := p.Config.Append && !p.Config.FirstKey.Given
	if behind && claims == nil {
		return spec, fmt.Errorf(
			"%s cannot find the free keys: give --first-key with --append, behind the table's largest key",
			p.target.Driver.Name())
	}
	if claims != nil && !p.silent {
		if first, err = p.reserve(ctx, behind); err != nil {
			return spec, err
		}
	}
	if _, column := dataset.OwnParents(p.plan.Data); first != 0 && !p.Config.Append && column != "" {
		return spec, fmt.Errorf("--first-key %d: column %s refers to the first rows of its own table, from key 0 on: "+
			"leave --first-key out, or --append to a table that has them", first, column)
	}
	if p.Config.Append && !behind {
		err = p.keysUnused(ctx, first)
	}
	return p.spec.From(first), err
}

// probeBatch makes a batch of some rows. They are the run's own: other keys would move an AUTO_INCREMENT, which InnoDB
// does not roll back, and partitions and constraints might refuse them. free releases the memory once no driver reads
// it.
func (d fromDataset) probeBatch(ctx context.Context, sample []int64) (one *batch.Batch, free func(), err error) {
	p := d.p
	n := int64(len(sample))
	spans := source.Spans{FirstKey: p.plan.FirstKey + sample[0], Rows: n, BatchRows: n}
	data := &dataset.Sample{Dataset: p.plan.Data, FirstKey: p.plan.FirstKey, Distinct: p.plan.DistinctRows, Rows: sample}
	f, err := source.New(source.Config{
		Spans: spans, Dataset: data, Encoder: p.plan.Encoder, Run: p.progress.ID(), Buffers: 1,
	})
	if err != nil {
		return nil, nil, err
	}
	if one, err = f.Batch(ctx, 0); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	one.ID.Number = math.MaxInt64 // no run has so many batches
	return one, func() {
		one.Release()
		_ = f.Close() // it fails while a driver that was cut off still reads the row
	}, nil
}

func (d fromDataset) open(context.Context) (rowSource, error) {
	p := d.p
	return source.New(source.Config{
		Spans: p.plan.Spans(), Dataset: p.plan.Data, Encoder: p.plan.Encoder, Run: p.progress.ID(),
		Distinct: p.plan.DistinctRows, Buffers: p.plan.Buffers, Done: p.progress.NeedsNoBuffer,
	})
}

func (d fromDataset) setTotals(o *stats.Options) {
	if plan := &d.p.plan; !plan.ByDuration() {
		o.PlannedRows, o.PlannedBytes = plan.ShardRows(), plan.PayloadTotal()
	}
}

// sent ends a run by duration. When it has stopped in order, every batch that was handed out is in, and the plan gets
// their number of rows.
func (d fromDataset) sent(result engine.Result, err error) (engine.Result, error) {
	p := d.p
	switch {
	case !p.plan.ByDuration() || err != nil:
	case result.Handed > 0:
		p.endAt(result.Handed)
		result.Drained = p.stopped() // stopping by the clock is no interruption
	case !p.stopped():
		err = fmt.Errorf("--duration %s was over before the first batch", p.Config.Duration)
	}
	return result, err
}

func (d fromDataset) verify(ctx context.Context) error {
	p := d.p
	mode, warning := verify.Possible(p.target.Can, p.mode)
	if warning != "" {
		p.notes.Warn(warning)
	}
	spans := p.plan.Spans()
	if !p.plan.Shard.Whole() && mode != verify.None { // what the others have sent is not to be expected yet
		mode, spans.Rows = verify.Ack, p.plan.ShardRows()
	}
	var err error
	p.verified, err = verify.Run(ctx, p.target.Can, mode, verify.Expect{
		Spans: spans, Proof: p.source.Proof(), VerifyRows: p.Config.VerifyRows, Seed: p.plan.Seed,
		Workers: cmp.Or(p.Config.VerifyWorkers, p.plan.Workers), Progress: p.proofProgress(),
		Saved: keptProof{p.progress.Log()}, Identity: p.progress.Log().Record().Identity,
		Acked: p.meters.stats.Snapshot().Rows, Run: p.progress.ID(), Length: p.progress.Length, Retry: p.target.Ask,
	})
	if len(p.verified.Strange) > 0 {
		p.notes.Warnf("objects under the run's prefix that are none of its batches, among them %s",
			strings.Join(p.verified.Strange, ", "))
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return nil
}

// proofProgress returns what shows how far a proof is, of which an earlier process may have done a part.
func (p *push) proofProgress() func(share float64, rows int64) {
	earlier := -1.0
	return func(share float64, rows int64) {
		if earlier < 0 {
			earlier = share
		}
		p.meters.stats.Verified(
			event.Verification{ExpectedRows: p.plan.Rows, FoundRows: rows, Share: share, Earlier: earlier})
	}
}

// keptProof keeps in the run's folder what a proof has counted. Without it an interrupted one starts over, which is no
// reason to fail.
type keptProof struct{ *runlog.Log }

func (k keptProof) Load() []byte { return k.Proof() }

func (k keptProof) Save(text []byte) { _ = k.SaveProof(text) }
