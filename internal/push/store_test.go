package push_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// shelf holds the objects of a store without a table, by batch.
type shelf struct {
	mu      sync.Mutex
	objects map[batch.ID]int64
	strange []string // names of objects of no batch
}

// shelved is a back-end whose only optional interface is the inventory.
type shelved struct {
	loader.Loader
	shelf *shelf
}

func (l shelved) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.Loader.Session(ctx, c)
	return shelvedSession{s, l.shelf}, err
}

func (l shelved) Objects(_ context.Context, run string, f func(name string, number, bytes int64) error) error {
	l.shelf.mu.Lock()
	defer l.shelf.mu.Unlock()
	for id, bytes := range l.shelf.objects {
		if err := f(fmt.Sprintf("%s/%012d.tsv", run, id.Number), id.Number, bytes); err != nil || id.Run != run {
			return err
		}
	}
	for _, name := range l.shelf.strange {
		if err := f(name, -1, 1); err != nil {
			return err
		}
	}
	return nil
}

type shelvedSession struct {
	loader.Session
	shelf *shelf
}

// Load puts the object. An object of the same name replaces it, so that a lost answer costs an upload and nothing else.
func (s shelvedSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	ack, err := s.Session.Load(ctx, b)
	if err == nil {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		s.shelf.objects[b.ID] = int64(len(b.Encoded))
	}
	return ack, err
}

func newStore(t *testing.T) (*fixture, *shelf) {
	p, s := newLabelled(t), &shelf{objects: make(map[batch.ID]int64)}
	p.wrap = func(h hooked) loader.Loader { return shelved{h, s} }
	return p, s
}

func TestObjectStoreIsVerifiedByItsObjects(t *testing.T) {
	p, store := newStore(t)
	r := p.succeeds(small)
	require.True(t, r.Verify.OK)
	require.Equal(t, "count", r.Verify.Mode)
	require.EqualValues(t, 195, r.Verify.FoundRows)
	require.Empty(t, r.Warnings)
	require.Len(t, store.objects, 20, "an object store keeps its objects")
	require.EqualValues(t, 195, p.verifies(r.Run.ID).Verify.FoundRows)
	require.EqualValues(t, 195, p.succeeds("--resume "+r.Run.ID).Verify.FoundRows)

	delete(store.objects, batch.ID{Run: r.Run.ID, Number: 3})
	store.objects[batch.ID{Run: r.Run.ID, Number: 19}]--
	store.strange = []string{"x/notes.txt"}
	again, err := push.Verify(t.Context(), p.job("--resume "+r.Run.ID))
	require.Equal(t, report.VerificationFailed, push.OutcomeOf(err))
	require.EqualValues(t, 180, again.Verify.FoundRows)
	require.EqualValues(t, 2, again.Verify.BadCount)
	require.Equal(t, []string{"objects under the run's prefix that are none of its batches, among them x/notes.txt"}, again.Warnings)
	for i, prepared := range p.prepared {
		require.Equal(t, i > 0, prepared.Resume, "objects of the run may lie in its folder")
	}

	p, _ = newStore(t)
	r = p.succeeds(small + " --verify full --delivery at-least-once")
	require.Equal(t, "count", r.Verify.Mode)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "verify full is not possible")
}

// What the journal knows is not sent again; what was begun is, and the object of the same name takes its place. A run by
// duration has keys wide enough for any length of time: they are not narrower where it ends early, so that the objects
// of both processes have one length.
func TestResumeOfAnObjectStore(t *testing.T) {
	t.Parallel()
	for _, args := range []string{small, timed + "1h"} {
		p, store := newStore(t)
		run := p.killOnTheWay(args, 7)
		p.hook = nil
		before := p.record().Plan
		r := p.succeeds("--resume " + run)
		require.True(t, p.prepared[1].Resume)
		require.EqualValues(t, r.Result.Rows, r.Verify.FoundRows)
		require.EqualValues(t, 70, r.Run.ResumedRows)
		require.Equal(t, 1, p.memory.Attempts(6))
		require.Equal(t, 2, p.memory.Attempts(7))
		require.Equal(t, before.KeyRows, p.record().Plan.KeyRows)
		lengths := map[int64]bool{}
		for id, bytes := range store.objects {
			if id.Number < 19 { // the last one is short
				lengths[bytes] = true
			}
		}
		require.Len(t, lengths, 1)
		p.verifies(run)
	}
}
