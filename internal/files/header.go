package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// maxHeader is how long a file's first record may be if it is a header.
const maxHeader = 1 << 20

// bom is UTF-8's byte order mark.
var bom = []byte("\xef\xbb\xbf")

// header says where a file's header ends.
type header struct {
	from, to int // without the mark
	lines    int64
}

// readHead reads the beginning of a file, with the header if there is one.
func readHead(in *stream, how dialect, has bool) (head []byte, h header, err error) {
	for ended := false; !ended; {
		from := len(head)
		head = append(head, make([]byte, min(max(from, 4<<10), maxHeader))...)
		var n int
		if n, ended, err = in.fill(head[from:]); err != nil {
			return nil, h, err
		}
		head = head[:from+n]
		if err := utf16(in.file.Name(), head); err != nil {
			return nil, h, err
		}
		if bytes.HasPrefix(head, parquetMagic) {
			return nil, h, fmt.Errorf("%s is a Parquet file: give --format parquet", in.file.Name())
		}

		if bytes.HasPrefix(head, bom) {
			h.from = len(bom)
		}
		h.to = h.from
		if !has {
			return head, h, nil
		}
		length, lines, whole := how.next(head[h.from:])
		if h.to, h.lines = h.from+length, lines; whole {
			return head, h, nil
		}
		_, _, lacksLineEnd := how.next(slices.Concat(head[h.from:], newline))
		if len(head) > maxHeader || ended && !lacksLineEnd {
			return nil, h, endless(in.file, how.format)
		}
	}
	return head, h, nil
}

// endlessError says that a header does not end where it is looked for.
type endlessError struct{ error }

func endless(f File, format Format) error {
	why := "the header does not end: is a quote missing?"
	if format == NDJSON {
		why = "the object does not end within 1 MiB, where the names of columns are read"
	}
	return endlessError{fmt.Errorf("%s, line 1: %s", f.Name(), why)}
}

// utf16 refuses a file in an encoding that no database reads as it is: with a mark, or without if it begins with letters
// of ASCII.
func utf16(path string, head []byte) error {
	encoding := ""
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		encoding = "UTF-16"
	case len(head) < 4:
	case head[0] != 0 && head[1] == 0 && head[3] == 0:
		encoding = "UTF-16LE"
	case head[0] == 0 && head[2] == 0 && head[3] != 0:
		encoding = "UTF-16BE"
	}
	if encoding == "" {
		return nil
	}
	return fmt.Errorf("%s is UTF-16 or UTF-32: write it as UTF-8 first, with iconv -f %s -t UTF-8", path, encoding)
}

// ReadHeaders sets the Header of every file, if the files have headers or name their columns: the names in its first
// record, unquoted and unescaped. An empty file has none, and no records. A name that is empty or there twice is an
// error.
func (s *Spec) ReadHeaders(ctx context.Context) error {
	if err := s.Check(); err != nil || !s.Header && !s.Format.Named() {
		return err
	}
	read := s.readHeader
	if s.Format == Parquet {
		read = readFooter
	}
	for i := range s.Files {
		names, err := read(ctx, s.Files[i])
		if err != nil {
			return err
		}
		s.Files[i].Header = names
	}
	return nil
}

func (s *Spec) readHeader(ctx context.Context, f File) ([]string, error) {
	in, err := f.peek(ctx)
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := s.dialect()
	head, h, err := readHead(in, d, true)
	if err != nil {
		return nil, err
	}
	if h.to == h.from {
		return nil, nil
	}

	names, problem := d.fields(head[h.from:h.to])
	if s.Format == NDJSON {
		names, problem = namesOf(head[h.from:h.to])
	}
	if problem != "" {
		return nil, fmt.Errorf("%s, line 1: %s", f.Name(), problem)
	}
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("%s, line 1: column %d of %s has no name", f.Name(), i+1, s.Format.Naming())
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s, line 1: %s has %q twice", f.Name(), s.Format.Naming(), name)
		}
	}
	return names, nil
}

// First returns the fields of a file's first record, nil if it has none or a long one. Of standard input it is still to
// be read afterwards.
func (s Spec) First(ctx context.Context, f File) ([]string, error) {
	in, err := f.peek(ctx)
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := s.dialect()
	head, h, err := readHead(in, d, true)
	if errors.As(err, new(endlessError)) {
		return nil, nil
	}
	if err != nil || h.to == h.from {
		return nil, err
	}
	fields, problem := d.fields(head[h.from:h.to])
	if problem != "" {
		return nil, fmt.Errorf("%s, line 1: %s", f.Name(), problem)
	}
	return fields, nil
}

// peek opens the file at its beginning. What is read of standard input is still to be read afterwards.
func (f File) peek(ctx context.Context) (*stream, error) {
	if f.Path != Stdin {
		return f.open(ctx, 0, nil, 0)
	}
	return f.decompress(new(peeked), stdin().until(ctx), 0, nil, 0)
}
