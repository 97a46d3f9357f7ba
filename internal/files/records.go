package files

import (
	"bytes"
	"iter"
)

// Records returns the records of bytes that begin at one, each with its line end, and the number of line ends before it.
// The last one may lack its line end.
func (s Spec) Records(p []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		how := s.dialect()
		for lines := int64(0); len(p) > 0; {
			n, in, _ := how.next(p)
			if !yield(lines, p[:n]) {
				return
			}
			p = p[n:]
			lines += in
		}
	}
}

// fields takes a record apart, and says what is wrong with it.
func (d dialect) fields(record []byte) (all []string, problem string) {
	f := field{how: d}
	record = ended(append(bytes.Clone(record), 0, 0), len(record))
	for !f.ends && f.problem == "" {
		f.read(record)
		all = append(all, string(f.value))
	}
	return all, f.problem
}
