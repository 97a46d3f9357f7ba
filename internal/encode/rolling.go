package encode

import "encoding/binary"

// rolling is a text of 1 to 32 bytes that is written repeatedly with one or two other last digits. It is kept in words,
// which stay in registers: copying text from memory is a call, and copying it right after changing a digit stalls the CPU,
// since the wide read has to wait for the narrow write.
type rolling struct {
	bytes                int
	first, second, third uint64 // 8 bytes each, from the start
	last                 uint64 // the last 8 bytes, or 4 if there are fewer than 8 in all
}

// set sets the text, with zeros for its last digits, which change.
func (r *rolling) set(text []byte, digits int) {
	var memory [32]byte
	n := copy(memory[:], text)
	for k := n - digits; k < n; k++ {
		memory[k] = '0'
	}
	*r = rolling{
		bytes: n,
		first: binary.LittleEndian.Uint64(memory[:]), second: binary.LittleEndian.Uint64(memory[8:]),
		third: binary.LittleEndian.Uint64(memory[16:]),
	}
	switch {
	case n >= 8:
		r.last = binary.LittleEndian.Uint64(memory[n-8:])
	case n >= 4:
		r.last = uint64(binary.LittleEndian.Uint32(memory[n-4:]))
	}
}

// run writes the text of the first values, up to one outside of base … base+span−1, to buf[at[0]], buf[at[stride]],
// buf[at[2·stride]] … and returns how many it wrote. span is 10 or 100, as one or two digits change. Two words overlap if
// the length is not a multiple of 8.
func (r *rolling) run(buf []byte, at []uint32, stride int, values []int64, base int64, span uint64) int {
	n := r.bytes
	for i, v := range values {
		offset := uint64(v - base)
		if offset >= span {
			return i
		}
		tens := offset * 103 >> 10
		digits := tens | (offset-10*tens)<<8
		to := buf[at[i*stride]:][:n]
		switch {
		case n >= 8:
			binary.LittleEndian.PutUint64(to, r.first)
			if n > 16 {
				binary.LittleEndian.PutUint64(to[8:], r.second)
				if n > 24 {
					binary.LittleEndian.PutUint64(to[16:], r.third)
				}
			}
			binary.LittleEndian.PutUint64(to[n-8:], r.last+digits<<48)
		case n >= 4:
			binary.LittleEndian.PutUint32(to, uint32(r.first))
			binary.LittleEndian.PutUint32(to[n-4:], uint32(r.last+digits<<16))
		default:
			word := r.first + digits<<(8*n)>>16
			for k := range to {
				to[k] = byte(word)
				word >>= 8
			}
		}
	}
	return len(values)
}
