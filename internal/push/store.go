package push

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

// findStored finds the batches that earlier processes had put into the store and that need no second upload: those that
// the journal knows and the store still has with the same length. Everything else is uploaded again.
func (s *state) findStored(ctx context.Context) error {
	inventory := s.target.can.Inventory
	if inventory == nil || !s.plan.Staged() || len(s.history.stored) == 0 {
		return nil
	}
	found := make(map[int64]bool)
	err := inventory.Objects(ctx, s.run(), func(_ string, number, bytes int64) error {
		e, stored := s.history.stored[number]
		found[number] = stored && e.Encoded == bytes
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for what run %s has in the store: %w", s.run(), err)
	}
	for _, number := range slices.Sorted(maps.Keys(s.history.stored)) {
		e := s.history.stored[number]
		if found[number] && !s.done.Has(number) && number < s.plan.Batches() {
			s.stored = append(s.stored, engine.Stored{Ref: s.ref(number), Payload: e.Payload, Encoded: e.Encoded})
			s.inStore.Add(number)
		}
	}
	return nil
}

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

func (o *objects) add(name string, bytes int64) {
	const someNames = 3
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

func (s *state) list(ctx context.Context, inventory loader.Inventory, moved func()) (leftovers, error) {
	var l leftovers
	err := inventory.Objects(ctx, s.run(), func(name string, number, bytes int64) error {
		moved()
		if number < 0 {
			l.foreign.add(name, bytes)
			return nil
		}
		l.own.add(name, bytes)
		if s.done.Has(number) || s.acked.Has(number) {
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
func (s *state) tidy(ctx context.Context, ended bool) {
	inventory := s.target.can.Inventory
	if inventory == nil || !s.plan.Staged() || ctx.Err() != nil {
		return
	}
	ctx, moved, stop := whileMoving(ctx)
	defer stop()
	l, err := s.list(ctx, inventory, moved)
	if err == nil && l.done.Len() > 0 && s.discard(ctx, &l.done, moved) {
		l, err = s.list(ctx, inventory, moved)
	}
	if err != nil {
		s.notes.warnf("what the run left in the object store is not known: %v", err)
		return
	}
	if l.own.count > 0 {
		why := "nothing needs them any more, remove them"
		if !ended {
			why = "a resume goes on with them"
		}
		s.notes.warnf("%s left in the object store (%s): %s", l.own.size(), l.own.named(), why)
	}
	if l.foreign.count > 0 {
		s.notes.warnf("%s in the run's folder of the object store are none of its batches, and are left alone (%s)",
			l.foreign.size(), l.foreign.named())
	}
}

// discard removes the objects of the groups that hold the batches, and reports whether it could.
func (s *state) discard(ctx context.Context, batches *runlog.Done, moved func()) bool {
	committer := s.target.can.Committer
	if committer == nil {
		return false
	}
	for number := int64(0); number*s.plan.GroupBatches <= batches.Last(); number++ {
		g := s.group(number)
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

// warnOfObjects says where the objects of a run are that is about to be forgotten: nothing leads to them afterwards.
func (s *state) warnOfObjects(ctx context.Context) {
	inventory := s.target.can.Inventory
	if inventory == nil || !s.plan.Staged() {
		return // a back-end can of all its methods what one of them needs
	}
	ctx, moved, stop := whileMoving(ctx)
	defer stop()
	l, err := s.list(ctx, inventory, moved)
	if err != nil {
		s.notes.warnf("whether objects of the run are left in the object store is not known: %v", err)
		return
	}
	for _, o := range []objects{l.own, l.foreign} {
		if o.count > 0 {
			s.notes.warnf("%s of run %s stay in the object store under %s: nothing else leads to them when the run is forgotten",
				o.size(), s.run(), folderOf(o.names[0], s.run()))
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
