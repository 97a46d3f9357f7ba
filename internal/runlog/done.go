package runlog

import "math/bits"

// Done is the set of batches that are in. The zero value is empty.
type Done struct {
	bits  []uint64
	count int64
}

// Add puts a batch into the set and reports whether it was new.
func (d *Done) Add(number int64) bool {
	word, bit := number/64, uint64(1)<<(number%64)
	for int64(len(d.bits)) <= word {
		d.bits = append(d.bits, 0)
	}
	if d.bits[word]&bit != 0 {
		return false
	}
	d.bits[word] |= bit
	d.count++
	return true
}

// Has reports whether a batch is in the set.
func (d *Done) Has(number int64) bool {
	word := number / 64
	return word < int64(len(d.bits)) && d.bits[word]&(1<<(number%64)) != 0
}

// Len returns the number of batches in the set.
func (d *Done) Len() int64 { return d.count }

// Last returns the largest number in the set, -1 when it is empty.
func (d *Done) Last() int64 {
	for word := len(d.bits) - 1; word >= 0; word-- {
		if d.bits[word] != 0 {
			return int64(word*64 + bits.Len64(d.bits[word]) - 1)
		}
	}
	return -1
}

// Without returns the set of the batches of d that are not in other.
func (d *Done) Without(other *Done) Done {
	var left Done
	for i, word := range d.bits {
		if i < len(other.bits) {
			word &^= other.bits[i]
		}
		left.bits = append(left.bits, word)
		left.count += int64(bits.OnesCount64(word))
	}
	return left
}

// Merge adds the batches of other.
func (d *Done) Merge(other *Done) {
	for word, set := range other.bits {
		for ; set != 0; set &= set - 1 {
			d.Add(int64(word*64 + bits.TrailingZeros64(set)))
		}
	}
}
