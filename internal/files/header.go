package files

import (
	"bytes"
	"fmt"
	"slices"
)

// maxHeader is how long a file's first record may be if it is a header.
const maxHeader = 1 << 20

// ReadHeaders sets the Header of every file, if the files have headers: the names in its first record, unquoted and
// unescaped. A file without any record, or with a name that is empty or there twice, is an error.
func (s *Spec) ReadHeaders() error {
	if err := s.Check(); err != nil || !s.Header {
		return err
	}
	for i := range s.Files {
		header, err := s.readHeader(s.Files[i])
		if err != nil {
			return err
		}
		s.Files[i].Header = header
	}
	return nil
}

func (s *Spec) readHeader(f File) ([]string, error) {
	in, err := f.open(0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	p := make([]byte, maxHeader)
	n, _, err := in.fill(p)
	if err != nil {
		return nil, err
	}
	p = bytes.TrimPrefix(p[:n], bom)
	if len(p) == 0 {
		return nil, fmt.Errorf("%s is empty: it has no header", f.Path)
	}
	d := s.dialect()
	end, _ := d.next(p)
	if end == maxHeader {
		return nil, fmt.Errorf("%s, line 1: the header has more than 1 MiB: is a quote missing?", f.Path)
	}
	names := d.fields(p[:end])
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%s, line 1: column %d of the header has no name", f.Path, i+1)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s, line 1: the header has %q twice", f.Path, name)
		}
	}
	return names, nil
}

// bom is UTF-8's byte order mark.
var bom = []byte("\xef\xbb\xbf")

// start returns the empty range before a file's first record: behind the mark and the header.
func (s *Spec) start(file int) (Range, error) {
	r := Range{File: file, FirstLine: 1}
	in, err := s.Files[file].open(0)
	if err != nil {
		return r, err
	}
	defer in.Close()
	p := make([]byte, maxHeader)
	n, _, err := in.fill(p)
	if err != nil {
		return r, err
	}
	if rest := bytes.TrimPrefix(p[:n], bom); len(rest) < n {
		r.From = int64(len(bom))
	}
	if s.Header {
		end, lines := s.dialect().next(p[r.From:n])
		r.From += int64(end)
		r.FirstLine += lines
	}
	r.To = r.From
	return r, nil
}
