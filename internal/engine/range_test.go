package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// pieces is a table that keeps the front of a batch when its load is cut, as a COPY in several transactions does.
type pieces struct {
	*bench
	rows []int64 // their numbers, in the order in which they came
}

func newPieces(t *testing.T, batches int64) *pieces {
	p := &pieces{bench: newBench(t, batches, &loadertest.Memory{Caps: &loader.Caps{Dedup: loader.DedupRange}})}
	p.config.Workers = 1
	p.loader.load = func(_ context.Context, b *batch.Batch, _ loader.Session) (loader.Ack, error) {
		return p.put(b, b.Rows)
	}
	p.loader.resolve = p.look
	return p
}

// put keeps the first rows of a batch, and then loses the connection if there are more.
func (p *pieces) put(b *batch.Batch, keep int64) (loader.Ack, error) {
	body := b.Open()
	defer body.Close()
	ack := loader.Ack{}
	for row := make([]byte, encodedRow); ; ack.Rows++ {
		if _, err := body.Read(row); errors.Is(err, io.EOF) {
			return ack, nil
		}
		number := int64(binary.BigEndian.Uint64(row))
		if number >= b.First+keep {
			return loader.Ack{}, loadertest.ErrConnection
		}
		p.rows = append(p.rows, number)
	}
}

func (p *pieces) look(_ context.Context, ref loader.Ref, _ loader.Resolver) (loader.Resolution, error) {
	found := loader.Resolution{Applied: loader.No}
	for _, number := range p.rows {
		if ref.First <= number && number < ref.First+ref.Rows {
			found.Rows++
		}
	}
	if found.Rows == ref.Rows {
		found.Applied = loader.Yes
	}
	return found, nil
}

func (p *pieces) exact() {
	p.Helper()
	rows := (p.source.batches-1)*batchRows + lastRows
	require.Len(p, p.rows, int(rows))
	for i, number := range p.rows {
		require.EqualValues(p, i, number)
	}
}

func TestKeyRangeContinuesAfterTheLastRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPieces(t, 3)
		attempts := int64(0)
		p.loader.load = func(_ context.Context, b *batch.Batch, _ loader.Session) (loader.Ack, error) {
			require.Contains(t, p.journal.outcomes(b.ID.Number), event.Started, "announced before the first row")
			if attempts++; b.ID.Number == 1 && attempts < 5 {
				return p.put(b, 3*(attempts-1)) // attempts 2, 3 and 4 of the run: 3, 6, 9 rows
			}
			return p.put(b, b.Rows)
		}
		_, s, err := p.run(t.Context())
		require.NoError(t, err)
		p.exact()
		require.EqualValues(t, 2*batchRows+lastRows, s.Rows)
		require.Equal(t, []event.Outcome{event.Started, event.Unknown, event.Unknown, event.Unknown, event.Applied}, p.journal.outcomes(1))
	})
}

func TestKeyRangeResumesBegunBatch(t *testing.T) {
	for _, there := range []int64{0, 4, batchRows} {
		p := newPieces(t, 2)
		p.config.Begun = func(number int64) engine.Begun { return engine.Begun{Attempt: map[int64]int{0: 2}[number]} }
		for row := range there {
			p.rows = append(p.rows, row)
		}
		_, s, err := p.run(t.Context())
		require.NoError(t, err)
		p.exact()
		require.EqualValues(t, batchRows+lastRows, s.Rows)
	}
}

func TestKeyRangeThatCannotBeLookedUpIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPieces(t, 2)
		p.config.Begun = func(number int64) engine.Begun { return engine.Begun{Attempt: map[int64]int{0: 2}[number]} }
		p.loader.resolve = func(context.Context, loader.Ref, loader.Resolver) (loader.Resolution, error) {
			return loader.Resolution{}, errors.New("not the front of the batch")
		}
		result, _, err := p.run(t.Context())
		require.ErrorContains(t, err, "not the front of the batch")
		require.Equal(t, []int64{0}, result.Unknown)
		require.Empty(t, p.rows, "nothing was sent")
	})
}
