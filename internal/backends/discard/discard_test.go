package discard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// What is measured here is what other back-ends are measured against: a batch counts once all of it was read.
func TestReadsBatchesToTheirEnd(t *testing.T) {
	freed := 0
	b := &batch.Batch{Rows: 1, Encoded: make([]byte, 1<<20), Free: func() { freed++ }}
	b.Hold()
	s, err := opened{}.Session(t.Context(), loader.Contract{})
	require.NoError(t, err)
	ack, err := s.Load(t.Context(), b)
	require.NoError(t, err)
	require.EqualValues(t, 1, ack.Rows)
	require.EqualValues(t, 1<<20, b.Sent())
	b.Release()
	require.Equal(t, 1, freed)
}
