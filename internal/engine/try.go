package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// try is a batch or a commit group with the attempts at it: what the layers need to know.
type try struct {
	loader.Ref              // Attempt is the newest one, over all processes of the run
	batch      *batch.Batch // nil for a group
	members    []loader.Ref // of a group

	payload, encoded int64
	tried            int       // attempts of this process
	open             bool      // nobody knows what became of one of the attempts of earlier processes
	intended         time.Time // zero without a schedule
	// unkept is why the end of the newest attempt is not in the journal.
	unkept error
}

func tryOf(b *batch.Batch, begun Begun) *try {
	t := &try{Ref: loader.RefOf(b), batch: b, payload: b.Payload, encoded: int64(len(b.Encoded))}
	t.Attempt, t.open = begun.Attempt, begun.Unknown
	return t
}

// first is the number of the batch, or of the first of a group.
func (t *try) first() int64 {
	if t.batch == nil {
		return t.members[0].ID.Number
	}
	return t.ID.Number
}

// batches is how many batches depend on the attempt.
func (t *try) batches() int64 { return max(int64(len(t.members)), 1) }

// skip is how many rows at the front are there already.
func (t *try) skip() int64 {
	if t.batch == nil {
		return 0
	}
	return t.batch.Skip
}

// wanted is how many rows an ack has to count.
func (t *try) wanted() int64 { return t.Rows - t.skip() }

func (t *try) group() loader.Group { return loader.Group{Ref: t.Ref, Members: t.members} }

// String names what is tried in messages.
func (t *try) String() string {
	if t.batch == nil {
		return fmt.Sprintf("commit group %d (batches %d to %d)", t.ID.Number, t.first(), t.first()+t.batches()-1)
	}
	return fmt.Sprintf("batch %d", t.ID.Number)
}

// loadFunc is what every layer is and wraps.
type loadFunc func(context.Context, *try) (loader.Ack, error)
