package files

import "context"

// First returns the fields of a file's first record, nil if it has none. Of standard input it is still to be read
// afterwards.
func (s Spec) First(ctx context.Context, f File) ([]string, error) {
	in, err := f.peek(ctx)
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := s.dialect()
	head, h, err := readHead(in, d, true)
	if err != nil || h.to == h.from {
		return nil, err
	}
	fields, _ := d.fields(head[h.from:h.to]) // what is wrong with it, the server says
	return fields, nil
}

// Free returns how many buffers hold no batch.
func (s *Source) Free() int { return len(s.free) }
