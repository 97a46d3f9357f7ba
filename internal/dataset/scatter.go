package dataset

import "github.com/terapush/terapush/pkg/rows"

// SpecScatter makes a derived number that is different in every row and jumps: rows are divided into blocks of stride²,
// and within a block neighbors are stride apart. It is the row's number with its last two digits to base stride exchanged,
// which SQL can undo.
type SpecScatter struct {
	Start  string `json:"start"`
	Stride int64  `json:"stride"`
}

const maxStride = 1 << 31 // its square is an int64

func (s *SpecScatter) plan(p *columnPlanner) (plan columnPlan) {
	start := p.number(&s.Start, 1, "scatter", "start")
	if p.hasProblem() {
		return plan
	}
	if start < 0 {
		return p.refuse([]string{"scatter", "start"}, "scatter: numbers start at 0 or above, not at %s", s.Start)
	}
	if s.Stride < 2 || s.Stride > maxStride {
		return p.refuse([]string{"scatter"}, "scatter needs stride, as stride: 1000 for neighbors that are 1,000 apart, "+
			"in blocks of 1,000 × 1,000 rows: from 2 to %d", int64(maxStride))
	}

	_, most := p.t.bounds()
	block := s.Stride * s.Stride
	values := uint64(most) - uint64(start) + 1
	if values < uint64(block) {
		return p.refuse([]string{"scatter", "stride"},
			"scatter: stride %d makes blocks of %d numbers, which do not fit %s from %s on",
			s.Stride, block, p.t, s.Start)
	}
	p.endAt(int64(values/uint64(block)*uint64(block) - 1)) // of the last whole block
	plan.derived, plan.numbering = &scattered{start, s.Stride}, numbering{every: 1}
	plan.term = &rows.Term{Minus: start, Times: 1, Stride: s.Stride}
	return plan
}

// scattered derives numbers.
type scattered struct{ start, stride int64 }

func (s *scattered) of(row int64) int64 { return s.start + rows.Scatter(row, s.stride) }

func (s *scattered) put(v *rows.Vector, i int, row int64) { v.Ints[i] = s.of(row) }

func (s *scattered) derive(v *rows.Vector, first int64, n int) {
	// Within a run of stride rows each value is stride more than the one before.
	for i := 0; i < n; {
		row := first + int64(i)
		value := s.of(row)
		until := min(n, i+int(s.stride-row%s.stride))
		for ; i < until; i++ {
			v.Ints[i] = value
			value += s.stride
		}
	}
}

// largest is in the last block: of its last column, if any row is in it, the lowest row, else the last row itself.
func (s *scattered) largest(last int64) int64 {
	within := last % (s.stride * s.stride)
	if within < s.stride-1 {
		largest := s.of(last)
		if last != within { // the block before is whole
			largest = max(largest, s.start+last-within-1)
		}
		return largest
	}
	return s.of(last - (within+1)%s.stride)
}
