package dataset

import (
	"math"
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

// derived makes the values of a derived column.
type derived interface {
	// derive overwrites a column by the values of rows first … first+n−1.
	derive(v *rows.Vector, first int64, n int)
	// largest returns the largest number of rows 0 … last, of a column of numbers.
	largest(last int64) int64
}

// numbering is what a derived column tells of a row's number n: (n / every) mod cycle.
type numbering struct {
	every int64 // 0: nothing
	cycle int64 // 0: the column does not start over
}

// sequence is a derived column: row i has the number start + (i / every) mod cycle × step.
type sequence struct {
	start, step  int64
	every, cycle int64 // cycle 0: the sequence does not start over

	// Of a text: what is around the number.
	before, after string
	digits        int
}

// largestRow returns the last row whose number is at most a value, which start is.
func (s *sequence) largestRow(most int64) int64 {
	if s.cycle > 0 {
		return math.MaxInt64
	}
	steps := (uint64(most) - uint64(s.start)) / uint64(s.step)
	high, row := bits.Mul64(steps, uint64(s.every))
	row, carry := bits.Add64(row, uint64(s.every-1), 0)
	if high+carry > 0 || row > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(row)
}

// place is where a row stands in a sequence.
type place struct{ value, repeats, steps int64 }

func (s *sequence) place(row int64) place {
	steps := row / s.every
	if s.cycle > 0 {
		steps %= s.cycle
	}
	return place{s.start + steps*s.step, row % s.every, steps}
}

// largest returns the largest number of rows 0 … last.
func (s *sequence) largest(last int64) int64 {
	steps := last / s.every
	if s.cycle > 0 {
		steps = min(steps, s.cycle-1)
	}
	return s.start + steps*s.step
}

// next moves to the next row, and reports whether it has another number.
func (s *sequence) next(p *place) bool {
	if p.repeats++; p.repeats < s.every {
		return false
	}
	p.repeats = 0
	p.steps++
	p.value += s.step
	if p.steps == s.cycle {
		p.steps, p.value = 0, s.start
	}
	return true
}

// derive overwrites a column by the values of rows from first on.
func (s *sequence) derive(v *rows.Vector, first int64, n int) {
	switch {
	case v.Type.Variable():
		s.write(sized(v, n, len(s.before)+s.digits+len(s.after)), first)
	case s.every == 1 && s.cycle == 0:
		value := s.start + first*s.step
		for i := range v.Ints[:n] {
			v.Ints[i] = value
			value += s.step
		}
	default:
		p := s.place(first)
		for i := range v.Ints[:n] {
			v.Ints[i] = p.value
			s.next(&p)
		}
	}
}

// write fills data with texts: each is the one before with as many other digits as change.
func (s *sequence) write(data []byte, first int64) {
	if len(data) == 0 {
		return
	}
	p, size := s.place(first), len(s.before)+s.digits+len(s.after)
	copy(data, s.before)
	copy(data[len(s.before)+s.digits:], s.after)
	putDigits(data[len(s.before):][:s.digits], uint64(p.value))

	for from := size; from < len(data); from += size {
		copy(data[from:from+size], data[from-size:from])
		if !s.next(&p) {
			continue
		}
		number := data[from+len(s.before):][:s.digits]
		if p.steps == 0 {
			putDigits(number, uint64(p.value))
		} else {
			addDigits(number, s.step)
		}
	}
}

// put writes the value of a row: value i of a vector of numbers, the next one of texts.
func (s *sequence) put(v *rows.Vector, i int, row int64) {
	value := s.place(row).value
	if !v.Type.Variable() {
		v.Ints[i] = value
		return
	}

	v.Data = append(v.Data, s.before...)
	from := len(v.Data)
	v.Data = append(v.Data, zeros[:s.digits]...)
	putDigits(v.Data[from:], uint64(value))
	v.Data = append(v.Data, s.after...)
	v.Ends = append(v.Ends, uint32(len(v.Data)))
}

var zeros [maxDigits]byte

// putDigits fills text with the last digits of v.
func putDigits(text []byte, v uint64) {
	for k := len(text) - 1; k >= 0; k-- {
		text[k] = '0' + byte(v%10)
		v /= 10
	}
}

// addDigits adds step > 0 to a number in digits, which has room for the sum.
func addDigits(text []byte, step int64) {
	for k := len(text) - 1; k >= 0 && step > 0; k-- {
		digit := int64(text[k]-'0') + step%10
		step /= 10
		if digit >= 10 {
			digit -= 10
			step++
		}
		text[k] = '0' + byte(digit)
	}
}
