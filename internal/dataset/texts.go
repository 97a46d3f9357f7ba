package dataset

import (
	"slices"

	"github.com/terapush/terapush/pkg/rows"
)

// texts writes the values of a variable column, which are of several lengths, one behind another. There is room for the
// longest of all of them from the start, so that nothing has to be asked for while they are written.
type texts struct {
	vector *rows.Vector
	data   []byte
	used   int
}

// longTexts is room for n values of at most longest bytes.
func longTexts(v *rows.Vector, n, longest int) texts {
	v.Data = slices.Grow(v.Data[:0], n*longest)[:n*longest]
	v.Ends = slices.Grow(v.Ends[:0], n)[:n]
	return texts{vector: v, data: v.Data}
}

// append adds to the value that is being written.
func (t *texts) append(s string) { t.used += copy(t.data[t.used:], s) }

// end ends value i.
func (t *texts) end(i int) { t.vector.Ends[i] = uint32(t.used) }

// done cuts the unused space off the vector.
func (t *texts) done() { t.vector.Data = t.data[:t.used] }
