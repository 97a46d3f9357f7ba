package files

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
)

// Records returns the records of bytes that begin at one, each with its line end, and the number of line ends before
// it. The last one may lack its line end.
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

// Values takes a record apart; nil is NULL. The record must be one that was sent.
func (s Spec) Values(record []byte) (all [][]byte) {
	f := field{how: s.dialect()}
	record = ended(append(bytes.Clone(record), 0, 0), len(record))
	for !f.ends && f.problem == "" {
		f.read(record)
		if f.null {
			all = append(all, nil)
			continue
		}
		all = append(all, append([]byte{}, f.value...))
	}
	return all
}

// Reread calls f for ranges that are read again, in the order of files and offsets, with their bytes, which it must not
// keep. An error is a *ChangedError if they are not what they were.
func (s Spec) Reread(ctx context.Context, ranges []Range, f func(r Range, records []byte) error) error {
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.From, b.From))
	})
	var in *stream
	defer func() {
		if in != nil {
			in.close()
		}
	}()

	for i, r := range ranges {
		file := s.Files[r.File]
		if in != nil && (file.Compression == Plain || r.File != ranges[i-1].File) {
			in.close()
			in = nil
		}
		if in == nil { // what is compressed is read on
			var err error
			if in, err = file.open(ctx, r.From, nil, 0); err != nil {
				return err
			}
		}
		b := buffer{memory: make([]byte, r.To-r.From+slack)}
		if err := b.read(in, r, s.dialect()); err != nil {
			return err
		}
		if err := f(r, b.raw); err != nil {
			return err
		}
	}
	return nil
}
