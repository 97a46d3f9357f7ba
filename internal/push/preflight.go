package push

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// preflight opens the target, agrees on a contract, makes or checks the table, proves the transactions and writes the
// run's record. After it nothing about the rows can change any more.
func (p *push) preflight(ctx context.Context) error {
	if err := p.configure(); err != nil {
		return failed(Usage, err)
	}
	if err := p.checkLimits(); err != nil {
		return err
	}
	if err := runlog.Usable(p.Config.State); err != nil {
		return err
	}
	if err := p.target.open(ctx); err != nil {
		return err
	}
	run := runlog.NewID(p.started)
	caps := p.target.loader.Caps()
	p.plan.adjustWorkers(caps)
	if err := p.plan.negotiate(caps); err != nil {
		return err
	}
	// A plan that cannot be made is refused before a table is. What it warns of, the final one will say.
	draft, _, _, err := p.plan.from(p.Config.FirstKey.Key)
	if err != nil {
		return failed(Usage, err)
	}
	if err := p.checkAndPrepare(ctx, run, draft); err != nil {
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

// configure finds driver, method and dataset, and refuses what no server could serve: a mistake on the command line is
// no failure of a server, and is told before one is looked for.
func (p *push) configure() error {
	valid := p.Config.Validate()
	if p.Config.Prices != "" {
		var err error
		p.plan.prices, err = host.ReadPrices(p.Config.Prices)
		valid = joinOnce(valid, err)
	}
	caps, err := p.target.configure(p.Drivers)
	if err := joinOnce(valid, err); err != nil {
		return err
	}
	return p.plan.configure(p.target.Method, caps, func() int64 { return p.target.link.Bits(destination(p.target.Target)) })
}

// checkAndPrepare makes the table, unless the server has something that would stop the push. What the making itself comes
// upon is told first, since that is in the server's own words; but no table is dropped or emptied for a run that cannot be.
func (p *push) checkAndPrepare(ctx context.Context, run string, draft config.Plan) error {
	mode := loader.CreateMode(p.Config.Create)
	stops := p.check(ctx, run, draft)
	if stops != nil && (ctx.Err() != nil || removes(mode)) {
		return stops
	}
	if err := p.target.prepare(ctx, p.preparation(run, mode)); err != nil {
		return err
	}
	return stops
}

// preparation is what the back-end is asked to make or check.
func (p *push) preparation(run string, mode loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: run, Schema: p.plan.data.Schema(), Contract: p.plan.Contract,
		Create: mode, MayDrop: p.Config.YesDrop, PrimaryKey: p.Config.PrimaryKey,
		// The claims of a run that is proven are gone.
		Resume: p.state.resumed && (p.state.stage() != runlog.Verified || !p.state.hasClaims()),
		Silent: p.silent(), Hold: p.hold(),
	}
}

// hold returns which other runs to keep off the table: without --append, all of them.
func (p *push) hold() loader.Hold {
	switch {
	case p.state.resumed && p.state.stage() != runlog.Loading: // it sends nothing any more
		return loader.HoldNone
	case p.Config.Append:
		return loader.HoldShared
	}
	return loader.HoldAlone
}

// silent reports whether the user asked for nothing but the load.
func (p *push) silent() bool {
	return p.Config.Create == string(loader.CreateNever) && p.plan.Delivery == loader.AtLeastOnce
}

// unwantedRows refuses a table that holds rows which nobody has asked to add to.
func (p *push) unwantedRows() error {
	if !p.target.table.HasRows || p.Config.Append {
		return nil
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: fmt.Errorf("table %s holds rows", p.target.table.Name),
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
	if err := p.plan.fix(first); err != nil {
		return err
	}
	p.state.log, err = runlog.Create(p.Config.State, runlog.Record{
		Run: run, Started: p.started, Stage: runlog.Loading,
		Target: p.target.String(), Via: p.Config.Via.String(), Table: p.target.table.Name, Identity: p.target.table.Identity,
		Plan: p.plan.Plan, Flags: p.Given,
	})
	return err
}

// firstKey returns the key that was asked for, or the first free one of a table that is appended to.
func (p *push) firstKey(ctx context.Context, run string) (int64, error) {
	switch first := p.Config.FirstKey; {
	case !p.Config.Append:
		return first.Key, nil
	case first.Given:
		return first.Key, p.keysUnused(ctx, first.Key)
	}
	reserver := p.target.can.Reserver
	if reserver == nil {
		return 0, fmt.Errorf("%s cannot find out which keys are free: give --first-key besides --append, behind the table's largest key",
			p.target.driver.Name())
	}
	var first int64
	err := p.target.ask(ctx, "first key", func(ctx context.Context) (err error) {
		first, err = reserver.Reserve(ctx, run, p.plan.rows(), config.LargestKey(p.plan.data.Schema().MaxNumber()))
		return err
	})
	if errors.As(err, new(*loader.RangeError)) {
		return 0, fmt.Errorf("--append to table %s: %w; choose another --table, fewer --rows, or a --first-key with room behind it",
			p.target.table.Name, err)
	}
	return first, err
}

// keysUnused makes sure that no row has a key that the run would use: neither a lost answer nor the proof of arrival could
// tell such rows from the run's own. It sets nothing aside; who chooses the keys keeps other runs off them.
func (p *push) keysUnused(ctx context.Context, first int64) error {
	if p.target.can.Counter == nil || p.silent() {
		p.notes.warnf("nobody has looked whether the keys from %d on are free in table %s", first, p.target.table.Name)
		return nil
	}
	keys := loader.KeyRange{First: first, Last: first + p.plan.rows() - 1}
	found, err := p.target.rowsIn(ctx, "keys", keys, p.plan.BatchRows)
	if err != nil {
		return fmt.Errorf("looking for keys from %d to %d: %w", keys.First, keys.Last, err)
	}
	var there int64
	for _, rows := range found {
		there += rows
	}
	if there > 0 {
		return fmt.Errorf("%d rows of table %s have keys from %d to %d, which are to be the run's: choose a larger --first-key",
			there, p.target.table.Name, keys.First, keys.Last)
	}
	return nil
}

// giveBack removes the keys that were set aside for a run that has no record, without which nobody can forget it. It is
// needed after a lost answer, too.
func (p *push) giveBack(ctx context.Context, run string) {
	can := p.target.can
	if can.Claims == nil || can.Reserver == nil || !p.Config.Append || p.Config.FirstKey.Given {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), preflightTime) // an impatient user leaves none behind either
	defer cancel()
	if _, err := p.target.forget(ctx, run); err != nil {
		p.notes.warnf("keys may still be set aside for run %s, which did not begin: remove its rows from the claim table (%v)", run, err)
	}
}

// proveTransactions sends the run's first row, rolls it back, and settles for less when it survives.
func (p *push) proveTransactions(ctx context.Context, run string, first int64, caps loader.Caps) error {
	if p.target.can.Prober == nil || p.plan.Dedup != loader.DedupTx {
		return nil
	}
	one, free, err := p.probeBatch(ctx, run, first)
	if err != nil {
		return err
	}
	defer free()
	ask := p.target.askSoon
	if p.target.table.HasRows { // where its key has no index, to look for the row takes as long as a scan does
		ask = p.target.ask
	}
	var proof loader.Proof
	err = ask(ctx, "probe", func(ctx context.Context) (err error) {
		proof, err = p.target.can.Prober.Probe(ctx, p.plan.Contract, one)
		return err
	})
	if err != nil {
		return fmt.Errorf("probing for transactions: %w", err)
	}
	if proof.Transactional {
		return nil
	}
	caps.Dedup, caps.Reason = loader.DedupNone, proof.Reason
	return p.plan.negotiate(caps)
}

// probeBatch is the run's first row by itself: with any other key an AUTO_INCREMENT would jump, which InnoDB does not take
// back, and partitions and constraints could refuse what they do not refuse the run. free gives its memory back, unless
// somebody reads it still.
func (p *push) probeBatch(ctx context.Context, run string, key int64) (one *batch.Batch, free func(), err error) {
	e, err := feed.NewEncoder(p.plan.Format, p.plan.data, key, p.plan.rows())
	if err != nil {
		return nil, nil, err
	}
	f, err := feed.New(feed.Config{Dataset: p.plan.data, Encoder: e, Run: run, FirstKey: key, Rows: 1, BatchRows: 1, Buffers: 1})
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
