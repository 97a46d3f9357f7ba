package push

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/target"
)

// A probe has the run's first row and its last, and is cut at 1,000 rows, at so many bytes, and where a count would move.
func TestSampleIsCut(t *testing.T) {
	sample := func(column string, rows, encoded, maxBytes int64, moved bool) []int64 {
		s, err := dataset.ParseSpec("t", []byte("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+
			"  c: {type: text, "+column+"}\n"), nil)
		require.NoError(t, err)
		data, err := s.Compile(1)
		require.NoError(t, err)
		p := &push{target: &target.Target{}}
		p.plan.Data, p.plan.Rows, p.plan.EncodedRowBytes, p.caps.MaxBytes = data, rows, encoded, maxBytes
		p.target.Found.Moved = moved
		return p.sample()
	}
	const short = "constant: x"

	all := sample(short, 1, 10, 0, false)
	assert.Equal(t, []int64{0}, all)

	all = sample(short, 1_000_000_000, 10, 0, false)
	assert.Len(t, all, sampleRows)
	assert.True(t, slices.IsSorted(all))
	assert.Equal(t, []int64{0, 999_999_999}, []int64{all[0], all[len(all)-1]})
	assert.Greater(t, all[len(all)/2], int64(400_000_000), "they are from all over the run")

	assert.Len(t, sample("text: {length: 1000000}", 1_000_000, 10, 0, false), sampleBytes/1_000_008)
	assert.Len(t, sample(short, 1_000_000, 100, 10_000, false), 50, "of a message of 10,000 bytes, half")
	assert.Less(t, slices.Max(sample(short, 1_000_000, 10, 0, true)), int64(sampleRows))
}
