package source

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

func ownDataset(t *testing.T, note string) dataset.Dataset {
	s, err := dataset.ParseSpec("t.yaml",
		[]byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {start: 0}}\n  note: "+note+"\n  n: {type: int, uniform: {min: 1, max: 99}}\n"), nil)
	require.NoError(t, err)
	d, err := s.Compile(3)
	require.NoError(t, err)
	return d
}

// A buffer has room for what the rows take, and not for as many of the longest.
func TestBuffersHaveRoomForTheMean(t *testing.T) {
	d := ownDataset(t, "{type: text(8000), values: {short: 99%, "+string(bytes.Repeat([]byte("long"), 2000))+": 1%}}")
	e, err := NewEncoder(batch.TSV, d, 0, 1_000_000)
	require.NoError(t, err)
	sizes := SizesOf(d, e)
	assert.InDelta(t, 6+1+0.99*5+0.01*8000+1+2+1, sizes.Mean, 25)
	assert.Less(t, BufferBytes(d, e, 100_000), int64(16<<20))

	all := Config{Spans: Spans{Rows: 400_000, BatchRows: 10_000}, Dataset: d, Encoder: e, Buffers: 3}
	r := newRing(t, all)
	for number := range r.layout.Batches() {
		b, err := r.Batch(t.Context(), number)
		require.NoError(t, err)
		b.Release()
	}
	for _, one := range r.stock.chains {
		assert.True(t, one == nil || one.own == nil, "none needed more")
	}
}

// late has long texts from a row on that nobody looks at in advance.
type late struct{ dataset.Dataset }

func (d late) Fill(dst *rows.Block, first int64, n int) {
	d.Dataset.Fill(dst, first, n)
	v := &dst.Columns[1]
	v.Data, v.Ends = v.Data[:0], v.Ends[:0]
	for i := range n {
		v.Data = append(v.Data, bytes.Repeat([]byte{'x'}, 1+int((first+int64(i))/100_000)*499)...)
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	}
}

// A batch that its place has no room for is whole, and can be stamped, and the next one in its buffer is in the ring again.
func TestABatchThatIsTooLong(t *testing.T) {
	d := late{ownDataset(t, "{type: text(500), text: {length: 1..500}}")}
	e, err := NewEncoder(batch.TSV, d, 0, 800_000)
	require.NoError(t, err)
	r := newRing(t, Config{Spans: Spans{Rows: 800_000, BatchRows: 50_000}, Dataset: d, Encoder: e, Buffers: 1, Distinct: 200_000})
	for _, number := range []int64{0, 2, 3, 7, 11, 3, 0} {
		b, err := r.Batch(t.Context(), number)
		require.NoError(t, err)
		first, n := r.Span(number)
		block, want, at := rows.NewBlock(d.Schema()), []byte(nil), encode.Offsets{}
		for from := int64(0); from < n; from += 1000 {
			d.Fill(block, first%200_000+from, 1000)
			d.Derive(block, first+from)
			want = e.AppendRows(want, block, &at)
		}
		require.True(t, bytes.Equal(want, b.Encoded), "batch %d", number)
		require.Equal(t, number%4 >= 2, int64(len(b.Encoded)) > r.layout.bufferBytes, "batch %d", number)
		b.Release()
	}
}
