package dataset

import (
	"fmt"
	"slices"

	"github.com/terapush/terapush/pkg/rows"
)

// texts writes the values of a variable column of different lengths. Room for the longest values is allocated in advance, so
// that the loop that writes them never checks it.
type texts struct {
	vector *rows.Vector
	data   []byte
	used   int
}

// longTexts returns texts with room for n values of at most longest bytes.
func longTexts(v *rows.Vector, n, longest int) texts {
	room := n*longest + longCopy
	v.Data = slices.Grow(v.Data[:0], room)[:room]
	v.Ends = slices.Grow(v.Ends[:0], n)[:n]
	return texts{vector: v, data: v.Data}
}

// text is the first length bytes of a string that has longCopy at least. It is copied with what follows it, always as many
// bytes: where lengths are random, the CPU cannot predict the branches of an exact copy, which takes twice as long.
type text struct {
	padded string
	length int
}

const shortCopy, longCopy = 16, 48

func newTexts(list ...string) []text {
	var texts []text
	for _, s := range list {
		texts = append(texts, text{fmt.Sprintf("%-*s", longCopy, s), len(s)})
	}
	return texts
}

// append adds a text of at most shortCopy bytes to the current value.
func (t *texts) append(s text) {
	copy(t.data[t.used:t.used+shortCopy], s.padded[:shortCopy])
	t.used += s.length
}

// appendLong adds a text of at most longCopy bytes.
func (t *texts) appendLong(s text) {
	for k := 0; k < longCopy; k += shortCopy {
		copy(t.data[t.used+k:t.used+k+shortCopy], s.padded[k:k+shortCopy])
	}
	t.used += s.length
}

// end ends value i.
func (t *texts) end(i int) { t.vector.Ends[i] = uint32(t.used) }

// done sets the vector's length.
func (t *texts) done() { t.vector.Data = t.data[:t.used] }

// sized makes v n values of one length and undefined content, and returns their bytes.
func sized(v *rows.Vector, n, length int) []byte {
	v.Data = slices.Grow(v.Data[:0], n*length)[:n*length]
	v.Ends = slices.Grow(v.Ends[:0], n)[:n]
	for i := range v.Ends {
		v.Ends[i] = uint32((i + 1) * length)
	}
	return v.Data
}

// repeat makes v n equal values.
func repeat(v *rows.Vector, n int, value string) {
	for data := sized(v, n, len(value)); len(data) > 0; data = data[len(value):] {
		copy(data, value)
	}
}

// count fills a column with consecutive numbers.
func count(column []int64, first int64) {
	for i := range column {
		column[i] = first + int64(i)
	}
}
