package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// preflight opens the target, negotiates the contract, makes or checks the table, probes the transactions and writes
// the run's record. After it nothing about the rows changes.
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
	if err := p.waiting(ctx, func() error { return p.target.open(ctx) }); err != nil {
		return err
	}
	caps := p.target.loader.Caps()
	p.plan.adjustWorkers(caps)
	if err := p.plan.negotiate(caps); err != nil {
		return err
	}
	// An impossible plan is refused before a table is made. Its warnings come with the final plan.
	draft, _, _, err := p.plan.from(p.Config.FirstKey.Key)
	if err != nil {
		return failed(Usage, err)
	}
	if p.Config.RunID != "" {
		p.plan.Plan = draft
		return p.join(ctx, caps)
	}
	run := runlog.NewID(p.started)
	p.forgetKilled(ctx)
	end, err := runlog.Begin(p.Config.State, runlog.Record{Run: run, Started: p.started, Target: p.target.String(), Flags: p.Given})
	if err != nil {
		return err
	}
	defer end()
	if err := p.checkAndPrepare(ctx, run, draft); err != nil {
		return err
	}
	if err := p.begin(ctx, run, caps); err != nil {
		p.giveBack(ctx)
		return err
	}
	return nil
}

// forgetKilled frees the tables of runs that processes with this state folder had begun, and of which they had no record yet when
// they were killed.
func (p *push) forgetKilled(ctx context.Context) {
	if p.target.can.Claims == nil {
		return
	}
	for _, r := range runlog.Killed(p.Config.State) {
		if r.Target != p.target.String() {
			continue
		}
		err := within(ctx, func(bound context.Context) error {
			if err := p.prepareToForget(bound, r.Run); err != nil {
				return err
			}
			_, _, err := p.target.can.Claims.Forget(bound, r.Run)
			return err
		})
		if err == nil || errors.Is(err, loader.ErrUnknownRun) { // of one that was killed before it had a row
			err = runlog.RemoveBegun(p.Config.State, r.Run)
		}
		if err != nil {
			p.notes.warnf("run %s was killed before it sent anything, and may still have the table: %v", r.Run, err)
		}
	}
}

// configure finds driver, method and dataset, and returns every mistake of the command line: these are reported before
// a server is asked.
func (p *push) configure() error {
	valid := p.Config.Validate()
	caps, err := p.target.configure(p.Drivers)
	if err := errors.Join(valid, err); err != nil {
		return err
	}
	return p.plan.configure(p.target.Method, caps, func() int64 { return p.target.link.Bits(destination(p.target.Target)) })
}

// checkAndPrepare makes the table if the checks find nothing that would stop the push. Even CREATE TABLE may never end
// where commits wait for a standby that is not there, and a table that was made is in the replication.
func (p *push) checkAndPrepare(ctx context.Context, run string, draft config.Plan) error {
	stops := p.check(ctx, run, draft)
	if stops != nil && !p.target.says(loader.SinkMark) { // in a sink nothing can be made, and Prepare says so
		return stops
	}
	if err := p.target.prepare(ctx, p.beginning(run, loader.CreateMode(p.Config.Create))); err != nil {
		return err
	}
	p.state.row = p.target.table.Row
	if stops != nil {
		p.giveBack(ctx)
	}
	return stops
}

// preparation returns what the back-end is to make or check.
func (p *push) preparation(run string, mode loader.CreateMode) loader.Preparation {
	shard := ""
	if p.Config.RunID != "" {
		shard = cmp.Or(p.Config.Shard.String(), "0/1")
	}
	return loader.Preparation{
		Run: run, Shard: shard, Owner: owner(), Schema: p.plan.data.Schema(), Contract: p.plan.Contract,
		Create: mode, MayDrop: p.Config.AllowDrop, PrimaryKey: p.Config.PrimaryKey,
		Resume: p.state.resumed,
		Silent: p.silent(),
	}
}

// beginning is preparation for a run that begins.
func (p *push) beginning(run string, mode loader.CreateMode) loader.Preparation {
	begins := p.preparation(run, mode)
	if !begins.Silent {
		begins.Begin = &loader.Beginning{Appends: p.Config.Append, Shards: int(max(p.Config.Shard.Count, 1))}
	}
	return begins
}

// owner names this process to others.
func owner() string {
	host, _ := os.Hostname()
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("%s@%s, process %d", name, host, os.Getpid())
}

// silent reports whether the user asked for nothing but the load.
func (p *push) silent() bool {
	asksForKeys := p.Config.Append && !p.Config.FirstKey.Given
	return p.Config.Create == string(loader.CreateNever) && p.plan.Delivery == loader.AtLeastOnce && !asksForKeys
}

// refuseRows returns an error if the table holds rows and the user did not ask to append.
func (p *push) refuseRows() error {
	if !p.target.table.HasRows || p.Config.Append {
		return nil
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: fmt.Errorf("table %s holds rows", p.target.table.Name),
		Hint: "choose --append to add to it, another --table, or --create recreate or truncate for one that terapush made",
	}
}

// begin finds the first key, probes the transactions with it, fixes the plan and writes the run's record.
func (p *push) begin(ctx context.Context, run string, caps loader.Caps) error {
	if err := p.refuseRows(); err != nil {
		return err
	}
	first, err := p.firstKey(ctx)
	if err != nil {
		return err
	}
	if err := p.probe(ctx, run, first, caps); err != nil {
		return err
	}
	if err := p.plan.fix(first); err != nil {
		return err
	}
	return p.createLog(run)
}

// createLog makes the run's folder.
func (p *push) createLog(run string) (err error) {
	p.state.log, err = runlog.Create(p.Config.State, p.newRecord(run))
	return err
}

func (p *push) newRecord(run string) runlog.Record {
	return runlog.Record{
		Run: run, Started: p.started, Stage: runlog.Loading,
		Target: p.target.String(), Via: p.Config.Staging.String(), Table: p.target.table.Name, Identity: p.target.table.Identity,
		Plan: p.plan.Plan, Flags: p.Given,
	}
}

// firstKey returns the user's first key, or the first one behind those of a table that is appended to. From then on no other
// run gets these keys.
func (p *push) firstKey(ctx context.Context) (int64, error) {
	given := p.Config.FirstKey
	claims := p.target.can.Claims
	behind := p.Config.Append && !given.Given
	if behind && claims == nil {
		return 0, fmt.Errorf("%s cannot find the free keys: give --first-key with --append, behind the table's largest key",
			p.target.driver.Name())
	}
	first := given.Key
	if claims != nil && !p.silent() {
		var err error
		if first, err = p.reserve(ctx, behind); err != nil {
			return 0, err
		}
	}
	if p.Config.Append && !behind {
		return first, p.keysUnused(ctx, first)
	}
	return first, nil
}

func (p *push) reserve(ctx context.Context, behind bool) (first int64, err error) {
	from := p.Config.FirstKey.Key
	if behind {
		from = -1
	}
	if behind && p.target.table.LongScan {
		defer p.notes.during("scanning table " + p.target.table.Name + " for its largest key, which has no index; with --first-key it is not scanned")()
	}
	err = p.target.ask(ctx, "first key", func(ctx context.Context) (err error) {
		first, err = p.target.can.Claims.Reserve(ctx, from, p.plan.rows(), config.LargestKey(p.plan.data.Schema().MaxNumber()))
		return err
	})
	if errors.As(err, new(*loader.RangeError)) {
		return 0, fmt.Errorf("--append to table %s: %w; choose another --table, fewer --rows, or a --first-key with room after it",
			p.target.table.Name, err)
	}
	return first, err
}

// keysUnused returns an error if a row has one of the run's keys: neither a lost answer nor verification could tell it
// from the run's own. The run's row keeps other runs off them.
func (p *push) keysUnused(ctx context.Context, first int64) error {
	if p.target.can.Counter == nil || p.silent() {
		p.notes.warnf("it was not checked that the keys from %d on are free in table %s", first, p.target.table.Name)
		return nil
	}
	if p.target.table.LongScan {
		p.notes.warnf("it was not checked that the keys from %d on are free: table %s is large and has no index that would find them; "+
			"a row that has one of them will fail the proof", first, p.target.table.Name)
		return nil
	}
	keys := loader.KeyRange{First: first, Last: first + p.plan.rows() - 1}
	counted, err := p.target.rowsIn(ctx, "keys", keys, p.plan.BatchRows)
	if err != nil {
		return fmt.Errorf("looking for keys from %d to %d: %w", keys.First, keys.Last, err)
	}
	var used int64
	for _, rows := range counted {
		used += rows
	}
	if used > 0 {
		return fmt.Errorf("%d rows of table %s have keys from %d to %d, which the run needs: choose a larger --first-key",
			used, p.target.table.Name, keys.First, keys.Last)
	}
	return nil
}

// giveBack removes the row of a run without a record: the table is free again. It does so after a lost answer too, and even
// if a second interrupt arrived.
func (p *push) giveBack(ctx context.Context) {
	if p.target.can.Claims == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), preflightTime)
	defer cancel()
	if err := p.target.can.Claims.GiveBack(ctx); err != nil {
		p.notes.warnf("the table may still belong to run %s, which did not begin: terapush forget frees it (%v)", p.state.row.Name, err)
	}
}

// probe sends the run's first row, rolls it back, and negotiates a weaker guarantee if the row survives.
func (p *push) probe(ctx context.Context, run string, first int64, caps loader.Caps) error {
	if p.target.can.Prober == nil || p.plan.Dedup != loader.DedupTx {
		return nil
	}
	one, free, err := p.probeBatch(ctx, run, first)
	if err != nil {
		return err
	}
	defer free()
	ask := p.target.askSoon
	if p.target.table.HasRows { // without an index on the key, looking for the row may take a scan
		ask = p.target.ask
	}
	var proof loader.Proof
	err = ask(ctx, "probe", func(ctx context.Context) (err error) {
		proof, err = p.target.can.Prober.Probe(ctx, p.plan.Contract, one)
		return err
	})
	if err != nil {
		return fmt.Errorf("probing for transactions: %w", p.blameTable(err))
	}
	if proof.Transactional {
		return nil
	}
	caps.Dedup, caps.Reason = loader.DedupNone, proof.Reason
	return p.plan.negotiate(caps)
}

// probeBatch makes a batch of the run's first row. Another key would move an AUTO_INCREMENT, which InnoDB does not roll
// back, and partitions and constraints might refuse it. free releases the memory once no driver reads it.
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
	one.ID.Number = math.MaxInt64 // no run has so many batches
	return one, func() {
		one.Release()
		_ = f.Close() // it fails while a driver that was cut off still reads the row
	}, nil
}
