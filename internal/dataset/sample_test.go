package dataset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// A row of a sample is that of the run, in every column.
func TestSample(t *testing.T) {
	s, err := ParseSpec("t.yaml", []byte(`version: 1
key: [id]
columns:
  id: {type: bigint, sequence: {start: 5}}
  no: {type: text(8), sequence: {format: "{:08}"}}
  u: {type: uuid, uuid: v4}
  w: {type: text(40), words: {length: 1..40}, nulls: 30%}
  n: {type: int, uniform: {min: 1, max: 1000}, nulls: 30%}
`), nil)
	require.NoError(t, err)
	d, err := s.Compile(1)
	require.NoError(t, err)

	sample := &Sample{Dataset: d, FirstKey: 7, Distinct: 50, Rows: []int64{0, 3, 49, 50, 51, 70, 99, 1000}}
	got, want := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
	sample.Fill(got, 0, len(sample.Rows))
	sample.Derive(got, 7)
	nulls := 0
	for i, row := range sample.Rows {
		Row(want, d, 7, row, 50)
		for c := range want.Columns {
			v, w := &got.Columns[c], &want.Columns[c]
			require.Equal(t, w.IsNull(0), v.IsNull(i), "row %d, column %d", row, c)
			switch {
			case w.IsNull(0):
				nulls++
			case w.Type.Variable():
				require.Equal(t, string(w.Value(0)), string(v.Value(i)))
			case w.Type.InBytes():
				require.Equal(t, w.UUID(0), v.UUID(i))
			default:
				require.Equal(t, w.Ints[0], v.Ints[i])
			}
		}
	}
	require.NotZero(t, nulls)
}
