package engine

import (
	"context"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// commitGroups commits full groups until there are no more. A failure of the run ends it after the group it has: what
// is stored stays for the resume. A run that is asked to stop commits the full ones.
func (r *run) commitGroups(ctx context.Context) {
	m := &mover{run: r, index: -1, enter: func(event.State) {}, hangUp: func() {}, deadline: &r.groupDeadline}
	m.load = m.layers(m.committed)
	for {
		g, ok := r.groups.next(ctx, r.isBroken)
		if !ok {
			return
		}
		err := m.commit(ctx, g)
		switch {
		case err != nil && othersGoOn(err):
			r.Log.Error("a commit group is given up, the others go on", "error", err)
			r.note(err)
		default:
			r.fail(err)
		}
		r.groups.finished()
	}
}

// commit brings a group into the table and then removes its objects, which are the only copy until the journal has it.
func (m *mover) commit(ctx context.Context, g *group) error {
	t := tryOfGroup(g, m.BegunGroup(g.number))
	_, err := m.load(ctx, t)
	if err == nil && t.unkept == nil {
		m.discard(ctx, t)
	}
	return err
}

func tryOfGroup(g *group, begun Begun) *try {
	first := g.batches[0]
	t := &try{open: begun.Unknown, Ref: loader.Ref{
		ID: batch.ID{Run: first.ID.Run, Number: g.number}, First: first.First, Attempt: begun.Attempt,
	}}
	for _, b := range g.batches {
		t.members = append(t.members, b.Ref)
		t.Rows += b.Rows
		t.payload += b.Payload
		t.encoded += b.Encoded
	}
	return t
}

// committed is the innermost layer of a group.
func (m *mover) committed(ctx context.Context, t *try) (loader.Ack, error) {
	return m.Features.Committer.Commit(ctx, t.group())
}

// discardTime bounds the removal of a group's objects, which nothing depends on.
const discardTime = 2 * time.Minute

func (m *mover) discard(ctx context.Context, t *try) {
	bound, cancel := context.WithTimeout(ctx, discardTime)
	defer cancel()
	err := m.Features.Committer.Discard(bound, t.group())
	if err == nil {
		return
	}
	m.Log.Warn("the objects of a commit group that is in the table stay in the store", "what", t.String(), "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept++; m.keptWhy == nil {
		m.keptWhy = err
	}
}
