package push

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// preflightTime is how long each question of the preflight may take: the first connection, the look at the table, the
// probe.
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
	if err := p.fits(); err != nil {
		return err
	}
	if err := runlog.Usable(p.Config.State); err != nil {
		return err
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	run := runlog.NewID(p.started)
	caps := p.loader.Caps()
	p.heed(caps)
	if err := p.negotiate(caps); err != nil {
		return err
	}
	// A plan that cannot be made is refused before a table is. What it warns of, the final one will say.
	draft, _, _, err := p.planFrom(p.Config.FirstKey.Key)
	if err != nil {
		return failed(Usage, err)
	}
	if err := p.examineAndPrepare(ctx, run, draft); err != nil {
		return err
	}
	if err := p.unwantedRows(); err != nil {
		return err
	}
	if err := p.begin(ctx, run, caps); err != nil {
		p.giveBack(ctx, run)
		return err
	}
	return nil
}

// unwantedRows refuses a table that holds rows which nobody has asked to add to.
func (p *push) unwantedRows() error {
	if !p.table.HasRows || p.Config.Append {
		return nil
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: fmt.Errorf("table %s holds rows", p.table.Name),
		Hint: "choose --append to add to it, another --table, or --create recreate or truncate for one that terapush made",
	}
}

// begin finds the first key, proves the transactions with it, fixes the run's numbers and writes its record.
func (p *push) begin(ctx context.Context, run string, caps loader.Caps) error {
	first, err := p.firstKey(ctx, run)
	if err != nil {
		return err
	}
	if err := p.proveTransactions(ctx, run, first, caps); err != nil {
		return err
	}
	if err := p.makePlan(first); err != nil {
		return err
	}
	p.ledger, err = runlog.Create(p.Config.State, runlog.Record{
		Run: run, Started: p.started, Stage: runlog.Loading,
		Target: p.target.String(), Via: p.Config.Via.String(), Table: p.table.Name, Identity: p.table.Identity,
		Plan: p.plan, Flags: p.Given,
	})
	return err
}

// configure finds driver, method and dataset, and refuses what no server could serve: a mistake on the command line is
// no failure of a server, and is told before one is looked for.
func (p *push) configure() error {
	c := &p.Config
	valid := everything(c.Validate(), p.readPrices())
	var caps loader.Caps
	var target error
	if p.driver, _, p.target, target = c.LoaderTarget(p.Drivers); target == nil {
		caps, target = p.driver.Check(p.target)
	}
	if err := everything(valid, target); err != nil {
		return err
	}
	var err error
	p.data, err = dataset.New(c.Dataset, dataset.Options{
		Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: dataset.Kind(c.PayloadKind),
	})
	if err != nil {
		return err
	}
	p.hire(caps)
	// Formats are the method's; about delivery and sizes the server has its say.
	w := p.want()
	w.Delivery, w.BatchRows, w.BatchBytes, w.GroupBatches = loader.DeliveryAuto, 0, 0, 0
	_, _, err = loader.Negotiate(caps, w)
	return err
}

// open connects and probes, once, within the preflight's time.
func (p *push) open(ctx context.Context) error {
	err := within(ctx, func(bound context.Context) (err error) {
		p.loader, err = p.driver.Open(bound, p.target, p.deps())
		return err
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", p.target, err)
	}
	if p.uncounted() {
		p.warn("the target is a sink that drops the data unseen: no row is counted there, and the figures are a ceiling, no database's")
	}
	return nil
}

// uncounted reports whether the target says of itself that it does not count rows.
func (p *push) uncounted() bool { return strings.Contains(p.loader.Server().Version, dropsUnseen) }

// dropsUnseen is in the version of a `terapush sink --no-count`.
const dropsUnseen = "terapush-sink-no-count"

// retried returns ask with retries where the answer is lost, as for a batch. ask begins anew each time and must be
// idempotent.
func (p *push) retried(what string, ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		lost := func(err error) { p.Log.Warn("asking again", "what", what, "error", err) }
		return p.retries().Ask(ctx, p.driver.Classify, lost, ask)
	}
}

func (p *push) retries() retry.Policy { return retry.Policy{Retries: p.Config.Retries} }

// errTooLate is the cause of the end of a step that took too long.
var errTooLate = fmt.Errorf("no answer within %s", preflightTime)

// within bounds a step of the preflight, and says so where that is what ended it.
func within(ctx context.Context, step func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, preflightTime, errTooLate)
	defer cancel()
	err := step(bound)
	if err != nil && bound.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(bound), err)
	}
	return err
}

func (p *push) deps() loader.Deps {
	addresses := network.Spread{Dial: p.wire.DialContext}
	return loader.Deps{Dial: p.wire.DialContext, Spread: addresses.DialContext, TLS: p.tls, Log: p.Log}
}

// negotiate agrees on method, format, guarantee and batch size.
func (p *push) negotiate(caps loader.Caps) error {
	contract, warnings, err := loader.Negotiate(caps, p.want())
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
func (p *push) want() loader.Want {
	c, d := &p.Config, p.data
	return loader.Want{
		Method: p.target.Method, Format: c.WireFormat(), Delivery: loader.Delivery(c.Delivery),
		BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes), GroupBatches: c.CommitBatches,
		Rows: size(c).RowCount(d.Schema().RowBytes()), Workers: p.crew.workers,
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

// memory is the budget of all buffers.
func memory(c *config.Push) int64 {
	if c.Memory > 0 {
		return int64(c.Memory)
	}
	if m := host.Memory(); m > 0 {
		return m / 4
	}
	return 1 << 30
}

func (p *push) prepareTable(ctx context.Context, run string, mode loader.CreateMode) error {
	prepare := func(ctx context.Context) (err error) {
		p.table, err = p.loader.Prepare(ctx, p.preparation(run, mode))
		return err
	}
	if mode == loader.CreateRecreate || mode == loader.CreateTruncate {
		return prepare(ctx) // to drop or empty a large table takes as long as it takes
	}
	err := within(ctx, p.retried("table", prepare))
	if errors.Is(err, errTooLate) {
		return fmt.Errorf("making table %s ready, or looking at it: %w", p.target.Table, err)
	}
	return err
}

// preparation is what the back-end is asked to make or check.
func (p *push) preparation(run string, mode loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: run, Schema: p.data.Schema(), Contract: p.contract,
		Create: mode, MayDrop: p.Config.YesDrop, PrimaryKey: p.Config.PrimaryKey,
		Resume: p.resumed && (p.ledger.Record().Stage != runlog.Verified || !p.claims()), // the claims of a proven run are gone
		Silent: p.silent(), Hold: p.hold(),
	}
}

// hold returns which other runs to keep off the table: without --append, all of them.
func (p *push) hold() loader.Hold {
	switch {
	case p.resumed && p.ledger.Record().Stage != runlog.Loading: // it sends nothing any more
		return loader.HoldNone
	case p.Config.Append:
		return loader.HoldShared
	}
	return loader.HoldAlone
}

// silent tells that the user asked for nothing but the load.
func (p *push) silent() bool {
	return p.Config.Create == string(loader.CreateNever) && p.contract.Delivery == loader.AtLeastOnce
}

// proveTransactions sends the run's first row, rolls it back, and settles for less when it survives.
func (p *push) proveTransactions(ctx context.Context, run string, first int64, caps loader.Caps) error {
	prober, can := p.loader.(loader.Prober)
	if !can || p.contract.Dedup != loader.DedupTx {
		return nil
	}
	one, free, err := p.probeBatch(ctx, run, first)
	if err != nil {
		return err
	}
	defer free()
	var proof loader.Proof
	probe := p.retried("probe", func(ctx context.Context) (err error) {
		proof, err = prober.Probe(ctx, p.contract, one)
		return err
	})
	if p.table.HasRows { // where its key has no index, to look for the row takes as long as a scan does
		err = probe(ctx)
	} else {
		err = within(ctx, probe)
	}
	if err != nil {
		return fmt.Errorf("probing for transactions: %w", err)
	}
	if proof.Transactional {
		return nil
	}
	caps.Dedup, caps.Reason = loader.DedupNone, proof.Reason
	return p.negotiate(caps)
}

// probeBatch is the run's first row by itself: with any other key an AUTO_INCREMENT would jump, which InnoDB does not take
// back, and partitions and constraints could refuse what they do not refuse the run. free gives its memory back, unless
// somebody reads it still.
func (p *push) probeBatch(ctx context.Context, run string, key int64) (one *batch.Batch, free func(), err error) {
	e, err := feed.NewEncoder(p.contract.Format, p.data, key, p.rows())
	if err != nil {
		return nil, nil, err
	}
	f, err := feed.New(feed.Config{Dataset: p.data, Encoder: e, Run: run, FirstKey: key, Rows: 1, BatchRows: 1, Buffers: 1})
	if err != nil {
		return nil, nil, err
	}
	if one, err = f.Batch(ctx, 0); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	one.ID.Number = math.MaxInt64 // a batch number that no run reaches
	return one, func() {
		one.Release()
		_ = f.Close() // it refuses as long as a driver that was cut off reads the row
	}, nil
}

// rows is the size of a run that has no plan yet; of one by duration, the most it can have.
func (p *push) rows() int64 { return size(&p.Config).RowCount(p.data.Schema().RowBytes()) }

// makePlan fixes the run's numbers.
func (p *push) makePlan(first int64) error {
	var err error
	var warnings []string
	p.plan, p.encoder, warnings, err = p.planFrom(first)
	for _, w := range warnings {
		p.warn(w)
	}
	return failed(Usage, err)
}

// planFrom is the plan of a run with a first key, for dry runs too: it changes nothing.
func (p *push) planFrom(first int64) (plan.Plan, encode.Encoder, []string, error) {
	c, d := &p.Config, p.data
	rowBytes := d.Schema().RowBytes()
	in := plan.Input{
		Contract: p.contract, Dataset: c.Dataset, Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: c.PayloadKind,
		FirstKey: first, MaxNumber: d.Schema().MaxNumber(), Rows: size(c).RowCount(rowBytes), ByDuration: size(c).ByDuration, RowBytes: rowBytes,
		DistinctBytes: int64(c.DistinctBytes.Bytes),
	}
	if c.DistinctBytes.All {
		in.DistinctBytes = 0
	}
	e, err := feed.NewEncoder(p.contract.Format, d, first, in.Rows)
	if err != nil {
		return plan.Plan{}, nil, nil, err
	}
	in.EncodedBytes = int64(e.MaxRow())
	in.Resources = p.resources(e)
	made, warnings, err := plan.Make(in)
	return made, e, warnings, err
}

// resources is what this machine gives a run.
func (p *push) resources(e encode.Encoder) plan.Resources {
	return plan.Resources{
		Workers: p.crew.workers, Default: !p.crew.asked, Memory: memory(&p.Config),
		BufferMemory: func(batchRows int64) int64 {
			return feed.Memory(feed.Config{Dataset: p.data, Encoder: e, BatchRows: batchRows, Buffers: 1})
		},
	}
}
