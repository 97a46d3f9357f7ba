package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// makeDraft keeps the run in the state folder before the database knows it, and frees what killed processes have left.
// A named run needs none of that: it is begun again by its name.
func (p *push) makeDraft(ctx context.Context) (err error) {
	if p.progress.Continued() || p.named() {
		return nil
	}
	p.freeKilled(ctx)
	p.draft, err = runlog.NewDraft(p.Config.State, p.newRecord())
	return err
}

// begin makes the table of a run that nobody has begun, reserves the keys, and proves the transactions. A named run is
// announced then, and others build upon it; until then a process that fails frees the table.
func (p *push) begin(ctx context.Context) error {
	if err := p.makeTable(ctx); err != nil {
		return err
	}
	err := p.chooseRows(ctx)
	if err != nil {
		p.giveBack(ctx)
	} else if p.named() {
		err = p.announce(ctx)
	}
	if p.named() && errors.As(err, new(*loader.TakenOverError)) {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	return err
}

// makeTable makes or empties the table, if the checks find nothing that would stop the push. Even CREATE TABLE may
// never end where commits wait for a standby that is not there, and a table that was made is in the replication.
func (p *push) makeTable(ctx context.Context) error {
	stops := p.checkServer(ctx)
	if stops != nil && !p.target.Says(loader.SinkMark) { // in a sink nothing can be made, and Prepare says so
		return stops
	}
	if err := p.keepOthersOff(); err != nil {
		return err
	}
	if err := p.target.Prepare(ctx, p.preparationOfNew()); err != nil {
		return errors.Join(err, p.letOthersIn(err))
	}
	p.progress.Own(p.target.Found.Row)
	if stops != nil {
		p.giveBack(ctx)
		return stops
	}
	return p.announcedMeanwhile()
}

// empties reports whether the run begins by removing the rows of the table.
func (p *push) empties() bool { return target.Removes(loader.CreateMode(p.Config.Create)) }

// chooseRows chooses the rows of the run by what the table holds, and its guarantee by what the table does.
func (p *push) chooseRows(ctx context.Context) error {
	if err := p.refuseRows(); err != nil {
		return err
	}
	spec, err := p.input.choose(ctx)
	if err != nil {
		return err
	}
	if err := p.replanAs(spec); err != nil {
		return err
	}
	if err := p.probe(ctx); err != nil {
		return err
	}
	if err := p.canSyncSequences(ctx); err != nil {
		return err
	}
	if p.named() && p.store.shared == nil && !p.claimsBatches() {
		return failed(Usage, fmt.Errorf("--run-id: table %s does not roll back, so claims say nothing of its batches: "+
			"give --delivery at-least-once and --state-dir s3://bucket/prefix", p.target.Found.Name))
	}
	return nil
}

// preparation returns what the back-end is to make or check.
func (p *push) preparation(mode loader.CreateMode) loader.Preparation {
	made := preparation(&p.Config, p.progress.ID(), &p.plan, mode)
	made.Began, made.Resume, made.Silent = p.runStarted(), p.progress.Continued(), p.silent
	return made
}

// preparation returns what follows from the flags and a plan.
func preparation(c *config.Push, id string, plan *run.Plan, mode loader.CreateMode) loader.Preparation {
	shard := ""
	if c.RunID != "" {
		shard = cmp.Or(c.Shard.String(), "0/1")
	}
	schema := plan.Schema()
	if c.PrimaryKey.Given && !c.PrimaryKey.On {
		schema.Primary, schema.Unique = nil, nil
	}
	made := loader.Preparation{
		Run: id, Shard: shard, Owner: owner(), Schema: schema, Contract: plan.Contract,
		Create: mode, MayDrop: c.AllowDrop, PrimaryKey: c.PrimaryKey.On, Like: c.LikeTable, Records: plan.Files != nil,
	}
	if plan.Files == nil {
		made.UUID = dataset.UUIDOf(plan.Data)
	}
	return made
}

// runStarted is when the first process of the run began.
func (p *push) runStarted() time.Time {
	if log := p.progress.Log(); log != nil {
		return log.Record().Started
	}
	return p.started
}

// asNew adds to a preparation that the run begins.
func asNew(c *config.Push, p loader.Preparation) loader.Preparation {
	if c.FillsLike() && p.Create == loader.CreateIfMissing { // it has just been read
		p.Create = loader.CreateNever
	}
	if !p.Silent {
		p.Begin = &loader.Beginning{Appends: c.Append, Shards: int(max(shardOf(c).Count, 1))}
	}
	return p
}

// preparationOfNew is preparation for a run that begins as the user says.
func (p *push) preparationOfNew() loader.Preparation {
	return asNew(&p.Config, p.preparation(loader.CreateMode(p.Config.Create)))
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

// asksNothing reports whether the user asked for nothing but the load, of a method that can do what caps say. It does
// not depend on what a probe finds: the same is true of every process of the run.
func asksNothing(c *config.Push, caps loader.Caps) bool {
	atLeastOnce := c.Delivery == string(loader.AtLeastOnce) || caps.Delivery() == loader.AtLeastOnce
	asksForKeys := c.Append && !c.FirstKey.Given
	return c.Create == string(loader.CreateNever) && atLeastOnce && !asksForKeys
}

// refuseRows returns an error if the table holds rows and the user did not ask to append.
func (p *push) refuseRows() error {
	if !p.target.Found.HasRows || p.Config.Append {
		return nil
	}
	hint := "choose --append to add to it, another --table, or --create recreate or truncate for one that terapush made"
	if _, _, isPart := config.ParentOf(cmp.Or(p.Config.RunID, p.ID)); isPart { // of a run that takes neither --append nor --table
		hint = "empty it, or leave it out of the file; --create truncate is for tables that terapush made"
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: fmt.Errorf("table %s holds rows", p.target.Found.Name), Hint: hint,
	}
}

func (p *push) reserve(ctx context.Context, behind bool) (first int64, err error) {
	from := p.Config.FirstKey.Key
	if behind {
		from = -1
	}
	if behind && p.target.Found.LongScan {
		defer p.notes.During("scanning table " + p.target.Found.Name + " for its largest key, which has no " +
			"index; with --first-key it is not scanned")()
	}
	first, err = target.Ask(ctx, p.target, "first key", func(ctx context.Context) (int64, error) {
		return p.target.Can.Claims.Reserve(ctx, from, p.plan.Rows, run.LargestKey(p.plan.Data.Schema().MaxNumber()))
	})
	if errors.As(err, new(*loader.RangeError)) {
		return 0, fmt.Errorf("--append to table %s: %w; choose another --table, fewer --rows, "+
			"or a --first-key with room after it",
			p.target.Found.Name, err)
	}
	return first, err
}

// keysUnused returns an error if a row has one of the run's keys: neither a lost answer nor verification could tell it
// from the run's own. The run's row keeps other runs off them.
func (p *push) keysUnused(ctx context.Context, first int64) error {
	if p.target.Can.Counter == nil || p.silent {
		p.notes.Warnf("it was not checked that the keys from %d on are free in table %s", first, p.target.Found.Name)
		return nil
	}
	if p.target.Found.LongScan {
		p.notes.Warnf("it was not checked that the keys from %d on are free: table %s is large and has no index that would "+
			"find them; a row that has one of them will fail the proof", first, p.target.Found.Name)
		return nil
	}
	keys := loader.KeyRange{First: first, Last: first + p.plan.Rows - 1}
	counted, err := p.target.RowsIn(ctx, "keys", keys, p.plan.BatchRows)
	if err != nil {
		return fmt.Errorf("looking for keys from %d to %d: %w", keys.First, keys.Last, err)
	}
	var used int64
	for _, rows := range counted {
		used += rows
	}
	if used > 0 {
		return fmt.Errorf("%d rows of table %s have keys from %d to %d, which the run needs: choose a larger --first-key",
			used, p.target.Found.Name, keys.First, keys.Last)
	}
	return nil
}

// giveBack removes the row of a run without a record: the table is free again. It does so after a lost answer too, and
// even if a second interrupt arrived.
func (p *push) giveBack(ctx context.Context) {
	if p.target.Can.Claims == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), target.PreflightTime)
	defer cancel()
	if err := p.target.Can.Claims.GiveBack(ctx); err != nil {
		p.unfreed = true
		p.notes.Warnf("the table may still belong to run %s, which did not begin: terapush forget frees it (%v)",
			p.progress.Name(), err)
	}
	p.progress.Own(loader.RunRow{})
}

// place is what a fingerprint says of where the rows go.
func (p *push) place() string {
	if p.target.Can.OnlyObjects() { // their folder has the run's name, which has an id only when it is announced
		return path.Join(p.target.Hosts[0], p.target.Database)
	}
	return p.target.Found.Name
}
