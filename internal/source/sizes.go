package source

import (
	"math"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/recent"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Sizes are the encoded lengths of a dataset's first rows, in bytes.
type Sizes struct {
	Mean      int64 // rounded up; at least 1
	deviation float64
	longest   int64 // that the format can make; rows of all lengths below it are possible
	known     bool  // false: rows have the longest length, or the format does not tell where one ends
}

// What is encoded to know the lengths of rows, at most. It takes some ten milliseconds.
const (
	sizedRows  = 10_000
	sizedBytes = 16 << 20 // of the longest rows
)

// measured are the last sizes, since a push asks for those of one dataset and format ten times. A choice between
// formats asks for a few of each dataset.
var measured = recent.Results[measuredOf, Sizes]{Most: 8}

// measuredOf says what was measured. Encoders of one dataset and format differ in the digits of derived columns only,
// and so in the longest row.
type measuredOf struct {
	dataset dataset.Dataset
	format  batch.Format
	longest int
}

// SizesOf measures the rows of a dataset. Its first column that is derived tells where a row begins, so it measures
// formats of rows, and only those.
func SizesOf(d dataset.Dataset, e encode.Encoder) Sizes {
	if dataset.SampleMemory(d) > 0 { // its files would stay in memory with it
		return measure(d, e)
	}
	of := measuredOf{d, e.Format(), e.MaxRow()}
	sizes, _ := measured.Get(of, func() (Sizes, error) { return measure(d, e), nil })
	return sizes
}

func measure(d dataset.Dataset, e encode.Encoder) Sizes {
	longest := int64(e.MaxRow())
	s := Sizes{Mean: max(longest, 1), longest: longest}
	_, perBatch := e.(encode.PerBatch)
	_, stamps := e.(encode.Stamper)
	stride := int(derivedColumns(d.Schema()))
	n := int(max(min(sizedRows, sizedBytes/max(longest, 1)), 2))
	if perBatch || !stamps || stride == 0 || int64(n) > d.Schema().MaxNumber() {
		return s
	}

	piece := int(max(min(pieceRows, pieceBytes/d.Schema().MaxRowBytes()), 1))
	block, sum, squares := rows.NewBlock(d.Schema()), int64(0), 0.0
	var out []byte
	var at encode.Offsets
	for first := 0; first < n; first += piece {
		m := min(piece, n-first)
		d.Fill(block, int64(first), m)
		derive(d, block)
		at.Reset()
		out = e.AppendRows(e.AppendHead(out[:0]), block, &at)
		end := len(out)
		for i := m - 1; i >= 0; i-- { // a row, and what leads to the next one
			begin := int(at.Fields[i*stride])
			if i == 0 {
				begin = len(e.AppendHead(nil))
			}
			length := int64(end - begin)
			sum, squares, end = sum+length, squares+float64(length)*float64(length), begin
		}
		if done := first + m; done >= n/10 && sum == int64(done)*longest { // as rows of one length are; no mean is larger
			n = done
		}
	}
	mean := float64(sum) / float64(n)
	s.Mean, s.known = max((sum+int64(n)-1)/int64(n), 1), true
	s.deviation = math.Sqrt(max(squares/float64(n)-mean*mean, 0))
	return s
}

// derive makes derived columns of any run: a short one has no digits for the numbers of 10,000 rows.
func derive(d dataset.Dataset, block *rows.Block) {
	d.Derive(block, 0)
	for i, c := range d.Schema().Columns {
		if c.Derived && !c.Type.Variable() && c.Type != rows.UUID {
			clear(block.Columns[i].Ints)
		}
	}
}

// bytes returns how many bytes n rows may take: that of the mean, eight standard deviations of their sum, and one
// longest row for lengths too rare to be among those that were measured. It is never more than n longest rows.
func (s Sizes) bytes(n int64) int64 {
	most := n * s.longest
	if !s.known {
		return most
	}
	const deviations = 8
	spread := deviations * s.deviation * math.Sqrt(float64(n))
	return min(most, n*s.Mean+int64(spread)+s.longest)
}
