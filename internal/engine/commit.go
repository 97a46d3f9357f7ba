package engine

import (
	"context"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// commitGroups commits full groups until there are no more. A failure of the run ends it after the current group:
// stored batches stay for the resume. A run that is asked to stop still commits its full groups.
func (r *run) commitGroups(ctx context.Context) {
	d := &deliverer{
		run: r, index: -1, enter: func(event.State) {}, closeSession: func() {},
		deadline: &r.groupDeadline, policy: r.Retry,
	}
	d.load = d.retrying(d.attempts(d.committed))
	for {
		g, ok := r.groups.next(ctx, r.isBroken)
		if !ok {
			return
		}
		err := d.commit(ctx, g)
		if err != nil && onlyThisOne(err) {
			r.Log.Error("a commit group is given up, the others continue", "error", err)
			r.keepError(err)
		} else {
			r.fail(err)
		}
		r.groups.finished()
	}
}

// commit loads a group into the table, and removes its objects when the commit is in the journal.
func (d *deliverer) commit(ctx context.Context, g *group) error {
	t := newGroupDelivery(g, d.Progress.GroupAttempts(g.number))
	_, err := d.load(ctx, t)
	if err == nil && t.unrecorded == nil {
		d.discard(ctx, t)
	}
	return err
}

func newGroupDelivery(g *group, earlier Attempts) *delivery {
	first := g.batches[0]
	t := &delivery{unresolved: earlier.Unknown, Ref: loader.Ref{
		ID: batch.ID{Run: first.ID.Run, Number: g.number}, First: first.First, Attempt: earlier.Attempt,
	}}
	for _, b := range g.batches {
		t.members = append(t.members, b.Ref)
		t.Rows += b.Rows
		t.payload += b.Payload
		t.encoded += b.Encoded
	}
	return t
}

// committed is the innermost layer of a group: it has the database load it.
func (d *deliverer) committed(ctx context.Context, t *delivery) (loader.Ack, error) {
	return d.Features.Committer.Commit(ctx, t.group())
}

// discardTimeout bounds the removal of a group's objects, which nothing depends on.
const discardTimeout = 2 * time.Minute

func (d *deliverer) discard(ctx context.Context, t *delivery) {
	bound, cancel := context.WithTimeout(ctx, discardTimeout)
	defer cancel()
	err := d.Features.Committer.Discard(bound, t.group())
	if err == nil {
		return
	}
	d.Log.Warn("the objects of a committed group stay in the store", "what", t.String(), "error", err)
	d.keepUndeleted(err)
}
