package push

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// leftovers is what lies in a run's folder of the store.
type leftovers struct {
	own, foreign objects     // foreign ones have names that no batch has
	done         runlog.Done // batches of which there is an object, and which are in the table
}

// objects are some in a store.
type objects struct {
	count, bytes int64
	names        []string // the first few
}

// someNames is how many objects a warning names.
const someNames = 3

func (o *objects) add(name string, bytes int64) {
	o.count++
	o.bytes += bytes
	if len(o.names) < someNames {
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

func (p *push) list(ctx context.Context, inventory loader.Inventory, moved func()) (leftovers, error) {
	var l leftovers
	err := inventory.Objects(ctx, p.id(), func(name string, number, bytes int64) error {
		moved()
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
	return l, err
}

// storePatience is how long an object store may stand still. What is listed and removed may be hundreds of thousands of
// objects, so there is no bound on the whole.
const storePatience = 2 * time.Minute

// whileMoving is a context that ends when moved was not called for a while.
func whileMoving(ctx context.Context) (bound context.Context, moved, stop func()) {
	bound, cancel := context.WithCancelCause(ctx)
	clock := time.AfterFunc(storePatience, func() { cancel(fmt.Errorf("the object store has not answered for %s", storePatience)) })
	moved = func() { clock.Reset(storePatience) }
	stop = func() {
		clock.Stop()
		cancel(nil)
	}
	return bound, moved, stop
}

// tidy removes the objects of groups that are in, which a process may have died before, and warns of those that are
// left after that. However the run ended, it is asked for, unless the user is in a hurry.
func (p *push) tidy(ctx context.Context, ended bool) {
	inventory, can := p.loader.(loader.Inventory)
	if !can || !p.contract.Staged() || ctx.Err() != nil {
		return
	}
	ctx, moved, stop := whileMoving(ctx)
	defer stop()
	l, err := p.list(ctx, inventory, moved)
	if err == nil && l.done.Len() > 0 && p.discard(ctx, &l.done, moved) {
		l, err = p.list(ctx, inventory, moved)
	}
	if err != nil {
		p.warn(fmt.Sprintf("what the run left in the object store is not known: %v", err))
		return
	}
	if l.own.count > 0 {
		why := "nothing needs them any more, remove them"
		if !ended {
			why = "a resume goes on with them"
		}
		p.warn(fmt.Sprintf("%s left in the object store (%s): %s", l.own.size(), l.own.named(), why))
	}
	if l.foreign.count > 0 {
		p.warn(fmt.Sprintf("%s in the run's folder of the object store are none of its batches, and are left alone (%s)",
			l.foreign.size(), l.foreign.named()))
	}
}

// discard removes the objects of the groups that hold the batches, and tells whether it could.
func (p *push) discard(ctx context.Context, batches *runlog.Done, moved func()) bool {
	committer, can := p.loader.(loader.Committer)
	if !can {
		return false
	}
	for number := int64(0); number*p.contract.GroupBatches <= batches.Last(); number++ {
		g := p.group(number)
		holds := false
		for _, m := range g.Members {
			holds = holds || batches.Has(m.ID.Number)
		}
		if holds && committer.Discard(ctx, g) != nil {
			return false
		}
		moved()
	}
	return true
}

// warnOfObjects tells where the objects of a run are that is about to be forgotten: nothing leads to them afterwards.
func (p *push) warnOfObjects(ctx context.Context) {
	inventory, can := p.loader.(loader.Inventory)
	if !can || !p.contract.Staged() {
		return // a back-end can of all its methods what one of them needs
	}
	ctx, moved, stop := whileMoving(ctx)
	defer stop()
	l, err := p.list(ctx, inventory, moved)
	if err != nil {
		p.warn(fmt.Sprintf("whether objects of the run are left in the object store is not known: %v", err))
		return
	}
	for _, o := range []objects{l.own, l.foreign} {
		if o.count > 0 {
			p.warn(fmt.Sprintf("%s of run %s stay in the object store under %s: nothing else leads to them when the run is forgotten",
				o.size(), p.id(), folderOf(o.names[0], p.id())))
		}
	}
}

// folderOf is the part of an object's name that all objects of the run have in common.
func folderOf(name, run string) string {
	if at := strings.Index(name, run+"/"); at >= 0 {
		return name[:at+len(run)+1]
	}
	return path.Dir(name) + "/"
}
