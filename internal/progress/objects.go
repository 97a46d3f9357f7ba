package progress

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// FindStored finds the batches that need no second upload: those that the journal has as stored, and the store with the
// same length.
func (p *Progress) FindStored(ctx context.Context) error {
	inventory := p.target.Can.Inventory
	if inventory == nil || !p.plan.Staged() || len(p.history.stored) == 0 {
		return nil
	}
	whole := make(map[int64]bool)
	err := inventory.Objects(ctx, p.id, func(_ string, number, bytes int64) error {
		e, stored := p.history.stored[number]
		whole[number] = stored && e.Encoded == bytes
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for what run %s has in the store: %w", p.id, p.target.Judged(err))
	}
	for _, number := range slices.Sorted(maps.Keys(p.history.stored)) {
		e := p.history.stored[number]
		if whole[number] && !p.done.Has(number) && number < p.plan.Batches() {
			p.stored = append(p.stored, engine.Stored{Ref: p.ref(number), Payload: e.Payload, Encoded: e.Encoded})
			p.inStore.Add(number)
		}
	}
	return nil
}

// leftovers are the objects in a run's folder of the store.
type leftovers struct {
	own, foreign objects     // foreign ones have names that no batch has
	done         runlog.Done // batches that have an object and are in the table
}

type objects struct {
	count, bytes int64
	names        []string // of the first few
}

func (o *objects) add(name string, bytes int64) {
	o.count++
	o.bytes += bytes
	if len(o.names) < 3 {
		o.names = append(o.names, name)
	}
}

func (o *objects) size() string {
	return fmt.Sprintf("%s of %s", english.Plural(int(o.count), "object", ""), humanize.IBytes(uint64(o.bytes)))
}

func (o *objects) named() string {
	text := strings.Join(o.names, ", ")
	if o.count > int64(len(o.names)) {
		text += " …"
	}
	return text
}

func (p *Progress) list(ctx context.Context, run string, progress func()) (leftovers, error) {
	var l leftovers
	err := p.target.Can.Inventory.Objects(ctx, run, func(name string, number, bytes int64) error {
		progress()
		if number >= 0 && !p.plan.Shard.Whole() && !p.ours(number) { // another shard's
			return nil
		}
		if number < 0 {
			l.foreign.add(name, bytes)
			return nil
		}
		l.own.add(name, bytes)
		if p.done.Has(number) || p.acked.Has(number) {
			l.done.Add(number)
		}
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return l, p.target.Judged(err)
}

// storeTimeout bounds the time without progress. The whole has no bound: there may be hundreds of thousands of objects.
const storeTimeout = 2 * time.Minute

// whileProgress returns a context that ends when progress is not called for storeTimeout.
func whileProgress(ctx context.Context) (bound context.Context, progress, stop func()) {
	bound, cancel := context.WithCancelCause(ctx)
	clock := time.AfterFunc(storeTimeout, func() {
		cancel(fmt.Errorf("the object store has not answered for %s", storeTimeout))
	})
	return bound, func() { clock.Reset(storeTimeout) }, func() {
		clock.Stop()
		cancel(nil)
	}
}

// Tidy removes objects of groups that are in the table, which a process may have left when it died, and warns of the
// objects that remain. It does so however the run ended, unless the user is in a hurry.
func (p *Progress) Tidy(ctx context.Context, over bool) {
	if p.target.Can.Inventory == nil || !p.plan.Staged() || ctx.Err() != nil {
		return
	}
	ctx, progress, stop := whileProgress(ctx)
	defer stop()
	l, err := p.list(ctx, p.id, progress)
	if err == nil && l.done.Len() > 0 && p.discard(ctx, &l.done, progress) {
		l, err = p.list(ctx, p.id, progress)
	}
	if err != nil {
		p.notes.Warnf("what the run left in the object store is not known: %v", err)
		return
	}
	if l.own.count > 0 {
		why := "nothing needs them any more, remove them"
		if !over {
			why = "a resume uses them"
		}
		p.notes.Warnf("%s left in the object store (%s): %s", l.own.size(), l.own.named(), why)
	}
	if l.foreign.count > 0 {
		p.notes.Warnf("%s in the run's folder of the object store belong to no batch, and are left alone (%s)",
			l.foreign.size(), l.foreign.named())
	}
}

// discard removes the objects of the groups that hold the batches, and reports whether it could.
func (p *Progress) discard(ctx context.Context, batches *runlog.Done, progress func()) bool {
	committer := p.target.Can.Committer
	if committer == nil {
		return false
	}
	for number := int64(0); number*p.plan.GroupBatches <= batches.Last(); number++ {
		g := p.group(number)
		holds := slices.ContainsFunc(g.Members, func(m loader.Ref) bool { return batches.Has(m.ID.Number) })
		if holds && committer.Discard(ctx, g) != nil {
			return false
		}
		progress()
	}
	return true
}

// WarnOfObjects names the place of a run's objects before the run is forgotten: nothing leads to them afterwards.
func (p *Progress) WarnOfObjects(ctx context.Context, run string) {
	if p.target.Can.Inventory == nil || !p.plan.Staged() {
		return
	}
	ctx, progress, stop := whileProgress(ctx)
	defer stop()
	l, err := p.list(ctx, run, progress)
	if err != nil {
		p.notes.Warnf("whether objects of the run are left in the object store is not known: %v", err)
		return
	}
	for _, o := range []objects{l.own, l.foreign} {
		if o.count == 0 {
			continue
		}
		folder := path.Dir(o.names[0]) + "/"
		if before, _, found := strings.Cut(o.names[0], run+"/"); found {
			folder = before + run + "/"
		}
		p.notes.Warnf("%s of run %s stay in the object store under %s: nothing records them once the run is forgotten",
			o.size(), run, folder)
	}
}
