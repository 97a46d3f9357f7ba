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

// twoDigits has the digits of 0 … 99, the first one in the lower byte.
var twoDigits = func() (digits [100]uint16) {
	for v := range uint16(100) {
		digits[v] = v/10 | v%10<<8
	}
	return digits
}()

// run writes the text of the first values, up to one outside of base … base+span−1, to buf[at[0]], buf[at[stride]],
// buf[at[2·stride]] … and returns how many it wrote. span is 10 or 100, as one or two digits change. Two words overlap if
// the length is not a multiple of 8.
//
// Stamps write to buf[p:p+8] and not to buf[p:]: to check the former takes two instructions, to slice the latter seven.
func (r *rolling) run(buf []byte, at []uint32, stride int, values []int64, base int64, span uint64) int {
	n, first, last := r.bytes, r.first, r.last
	for i, v := range values {
		offset := uint64(v - base)
		if offset >= span {
			return i
		}
		digits, p := uint64(twoDigits[offset]), int(at[i*stride])
		switch {
		case n >= 8:
			binary.LittleEndian.PutUint64(buf[p:p+8], first)
			if n > 16 {
				binary.LittleEndian.PutUint64(buf[p+8:p+16], r.second)
				if n > 24 {
					binary.LittleEndian.PutUint64(buf[p+16:p+24], r.third)
				}
			}
			binary.LittleEndian.PutUint64(buf[p+n-8:p+n], last+digits<<48)
		case n >= 4:
			binary.LittleEndian.PutUint32(buf[p:p+4], uint32(first))
			binary.LittleEndian.PutUint32(buf[p+n-4:p+n], uint32(last+digits<<16))
		default:
			word := first + digits<<(8*n)>>16
			for k := range n {
				buf[p+k] = byte(word)
				word >>= 8
			}
		}
	}
	return len(values)
}
