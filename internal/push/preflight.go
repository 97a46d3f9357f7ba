package push

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/engine/ledger"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/machine"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// preflightTime is how long the first connection may take. It is tried once.
const preflightTime = 10 * time.Second

// preflight opens the target, agrees on a contract, makes or checks the table, proves the transactions and writes the
// run's record. After it nothing about the rows can change any more.
func (p *push) preflight(ctx context.Context) error {
	if p.Config.Resume != "" {
		return p.takeOver(ctx)
	}
	if err := p.configure(); err != nil {
		return failed(Usage, err)
	}
	if err := ledger.Usable(p.Config.State); err != nil {
		return err
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	run := ledger.NewID(p.started)
	caps := p.loader.Caps()
	if err := p.negotiate(caps); err != nil {
		return err
	}
	// A plan that cannot be made is refused before a table is. What it warns of, the final one will say.
	if _, _, _, err := planOf(&p.Config, p.data, p.contract, p.Config.FirstKey); err != nil {
		return failed(Usage, err)
	}
	if err := p.prepareTable(ctx, run, loader.CreateMode(p.Config.Create)); err != nil {
		return err
	}
	if p.table.HasRows && !p.Config.Append {
		return fmt.Errorf("table %s holds rows: choose --append to add to it, another --table, or --create recreate for one that terapush made", p.table.Name)
	}
	if err := p.proveTransactions(ctx, run, caps); err != nil {
		return err
	}
	first, err := p.firstKey(ctx, run)
	if err != nil {
		return err
	}
	if err := p.makePlan(first); err != nil {
		return err
	}
	p.ledger, err = ledger.Create(p.Config.State, ledger.Record{
		Run: run, Started: p.started, Stage: ledger.Loading,
		Target: p.target.String(), Table: p.table.Name, Identity: p.table.Identity,
		Plan: p.plan, Flags: p.Given,
	})
	return err
}

// configure finds driver, method and dataset.
func (p *push) configure() error {
	c := &p.Config
	err := c.Validate()
	if err != nil {
		return err
	}
	if p.driver, _, p.target, err = c.LoaderTarget(p.Drivers); err != nil {
		return err
	}
	p.data, err = dataset.New(c.Dataset, dataset.Options{
		Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: dataset.Kind(c.PayloadKind),
	})
	return err
}

// open connects and probes, once, within the preflight's time.
func (p *push) open(ctx context.Context) error {
	bound, cancel := context.WithTimeoutCause(ctx, preflightTime, fmt.Errorf("no answer within %s", preflightTime))
	defer cancel()
	var err error
	p.loader, err = p.driver.Open(bound, p.target, p.deps())
	if err != nil && bound.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(bound), err)
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", p.target, err)
	}
	return nil
}

func (p *push) deps() loader.Deps {
	return loader.Deps{Dial: p.wire.DialContext, TLS: p.Config.Connect.Trust.TLS, Log: p.Log}
}

// negotiate agrees on method, format, guarantee and batch size.
func (p *push) negotiate(caps loader.Caps) error {
	contract, warnings, err := loader.Negotiate(caps, want(&p.Config, p.target.Method, p.data))
	if err != nil && p.Config.Delivery == string(loader.ExactlyOnce) && caps.Delivery() != loader.ExactlyOnce {
		return err // the server's fault, or the table's
	}
	if err != nil {
		return failed(Usage, err)
	}
	p.contract = contract
	for _, w := range warnings {
		p.warn(w)
	}
	return nil
}

// want is what the configuration asks of a method. Workers and rows have an effect on the batch size only.
func want(c *config.Push, method string, d dataset.Dataset) loader.Want {
	return loader.Want{
		Method: method, Format: c.WireFormat(), Delivery: loader.Delivery(c.Delivery),
		BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes),
		Rows: size(c).RowCount(d.Schema().MaxRowBytes()), Workers: workers(c),
		Carries: func(f batch.Format) error { return encode.Carries(f, d.Schema()) },
		RowBytes: func(f batch.Format) int64 {
			e, err := encode.New(f, d.Schema(), encode.Options{})
			if err != nil {
				return 1 // Carries has refused the format already
			}
			return int64(e.MaxRow())
		},
	}
}

func size(c *config.Push) plan.Size {
	s := plan.Size{Rows: c.Rows, Bytes: int64(c.Bytes), ByDuration: c.Duration > 0}
	if s == (plan.Size{}) {
		s.Bytes = int64(config.DefaultPayload)
	}
	return s
}

// workers is the number asked for, or two a core: one sends while the other waits for its answer.
func workers(c *config.Push) int {
	if c.Workers > 0 {
		return c.Workers
	}
	return min(max(2*runtime.GOMAXPROCS(0), 4), 64)
}

// memory is the budget of all buffers.
func memory(c *config.Push) int64 {
	if c.Memory > 0 {
		return int64(c.Memory)
	}
	if m := machine.Memory(); m > 0 {
		return m / 4
	}
	return 1 << 30
}

func (p *push) prepareTable(ctx context.Context, run string, mode loader.CreateMode) error {
	var err error
	p.table, err = p.loader.Prepare(ctx, p.preparation(run, mode))
	return err
}

// preparation is what the back-end is asked to make or check.
func (p *push) preparation(run string, mode loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: run, Schema: p.data.Schema(), Contract: p.contract,
		Create: mode, MayDrop: p.Config.YesDrop, PrimaryKey: p.Config.PrimaryKey,
		Resume: p.resumed && p.ledger.Record().Stage != ledger.Verified, // the claims of a proven run are gone
		Silent: p.Config.Create == string(loader.CreateNever) && p.contract.Delivery == loader.AtLeastOnce,
	}
}

// proveTransactions sends one row that is rolled back, and settles for less when it survives.
func (p *push) proveTransactions(ctx context.Context, run string, caps loader.Caps) error {
	prober, can := p.loader.(loader.Prober)
	if !can || p.contract.Dedup != loader.DedupTx {
		return nil
	}
	one, err := p.probeBatch(ctx, run)
	if err != nil {
		return err
	}
	proof, err := prober.Probe(ctx, p.contract, one)
	if err != nil {
		return fmt.Errorf("probing for transactions: %w", err)
	}
	if proof.Transactional {
		return nil
	}
	caps.Dedup, caps.Reason = loader.DedupNone, proof.Reason
	return p.negotiate(caps)
}

// probeBatch is one row under a key that no run will ever use: the upper half of all keys is never planned.
func (p *push) probeBatch(ctx context.Context, run string) (*batch.Batch, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	key := int64(1)<<62 | int64(binary.NativeEndian.Uint64(random[:])&(1<<62-1))
	e, err := feed.NewEncoder(p.contract.Format, p.data, key, 1)
	if err != nil {
		return nil, err
	}
	// The feed is left to the garbage collector with its batch: one row is worth no bookkeeping.
	f, err := feed.New(feed.Config{Dataset: p.data, Encoder: e, Run: run, FirstKey: key, Rows: 1, BatchRows: 1, Buffers: 1})
	if err != nil {
		return nil, err
	}
	b, err := f.Batch(ctx, 0)
	if err == nil {
		b.ID.Number = math.MaxInt64 // a batch number that no run reaches
	}
	return b, err
}

// firstKey is the one asked for, or the first free one of a table that is appended to.
func (p *push) firstKey(ctx context.Context, run string) (int64, error) {
	if !p.Config.Append {
		return p.Config.FirstKey, nil
	}
	reserver, can := p.loader.(loader.Reserver)
	if !can {
		return 0, fmt.Errorf("%s cannot find out which keys are free: give --first-key instead of --append", p.driver.Name())
	}
	return reserver.Reserve(ctx, run, size(&p.Config).RowCount(p.data.Schema().MaxRowBytes()))
}

// makePlan fixes the run's numbers.
func (p *push) makePlan(first int64) error {
	var err error
	var warnings []string
	p.plan, p.encoder, warnings, err = planOf(&p.Config, p.data, p.contract, first)
	for _, w := range warnings {
		p.warn(w)
	}
	return failed(Usage, err)
}

// planOf is the plan of a configuration; pure, for dry runs too.
func planOf(c *config.Push, d dataset.Dataset, contract loader.Contract, first int64) (plan.Plan, encode.Encoder, []string, error) {
	rowBytes := d.Schema().MaxRowBytes()
	in := plan.Input{
		Contract: contract, Dataset: c.Dataset, Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: c.PayloadKind,
		FirstKey: first, Rows: size(c).RowCount(rowBytes), ByDuration: size(c).ByDuration, RowBytes: rowBytes,
		DistinctBytes: int64(c.DistinctBytes.Bytes),
	}
	if c.DistinctBytes.All {
		in.DistinctBytes = 0
	}
	e, err := feed.NewEncoder(contract.Format, d, first, in.Rows)
	if err != nil {
		return plan.Plan{}, nil, nil, err
	}
	in.EncodedBytes = int64(e.MaxRow())
	in.Resources = resources(c, d, e)
	made, warnings, err := plan.Make(in)
	return made, e, warnings, err
}

// resources is what this machine gives a run.
func resources(c *config.Push, d dataset.Dataset, e encode.Encoder) plan.Resources {
	return plan.Resources{
		Workers: workers(c), Memory: memory(c),
		BufferMemory: func(batchRows int64) int64 {
			return feed.Memory(feed.Config{Dataset: d, Encoder: e, BatchRows: batchRows, Buffers: 1})
		},
	}
}
