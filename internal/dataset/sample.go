package dataset

import "github.com/terapush/terapush/pkg/rows"

// Sample is some rows of a dataset, one behind the other and then again from the first: row i of it is row Rows[i] of a
// run. Fill fills in the derived columns as well, and Derive leaves them, so that a sample is for one batch.
type Sample struct {
	Dataset
	FirstKey int64   // of the run
	Distinct int64   // as for Row
	Rows     []int64 // in ascending order
}

// Fill implements Dataset.
func (s *Sample) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	one := rows.NewBlock(s.Schema())
	for i := range n {
		row := s.Rows[(first+int64(i))%int64(len(s.Rows))]
		Row(one, s.Dataset, s.FirstKey, row, s.Distinct)
		for c := range dst.Columns {
			set(&dst.Columns[c], &one.Columns[c], i, n)
		}
	}
}

// Derive implements Dataset.
func (*Sample) Derive(*rows.Block, int64) {}

// set makes row i of n rows what the only row of from is. The rows before it are there.
func set(v, from *rows.Vector, i, n int) {
	switch {
	case v.Type.Variable():
		v.Data = append(v.Data, from.Value(0)...)
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	case v.Type.InBytes():
		copy(v.UUID(i), from.UUID(0))
	default:
		v.Ints[i] = from.Ints[0]
	}
	if !from.IsNull(0) {
		return
	}
	if len(v.Nulls) == 0 {
		v.SetNulls(n)
	}
	v.Nulls[i/64] |= 1 << (i % 64)
}
