package sink

import "bytes"

// Sniffed counts the rows of data whose format is not declared: those in a Parquet file's footer, or else lines.
type Sniffed struct {
	// Tail keeps the end of data that does not begin as a Parquet file does: it may be the last part of one.
	Tail bool

	piece   Piece
	head    []byte
	parquet Parquet
}

// Piece is what is known of a piece of an object: enough to know the rows of the whole.
type Piece struct {
	feeds   int64
	begun   bool // there is any data
	open    bool // a line has begun and not ended
	parquet bool // it begins as a Parquet file does
	footer  int64
}

// Write counts in p.
func (s *Sniffed) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	s.piece.feeds += int64(bytes.Count(p, []byte{'\n'}))
	s.piece.begun, s.piece.open = true, p[len(p)-1] != '\n'
	s.head = append(s.head, p[:min(len(p), len(magic)-len(s.head))]...)
	if s.Tail || string(s.head) == magic[:len(s.head)] {
		s.parquet.Write(p)
	}
}

// Piece returns what was written, once all data is there. The end of a Parquet file is let go of: a form has many
// files.
func (s *Sniffed) Piece() Piece {
	s.piece.parquet = string(s.head) == magic
	if n, err := s.parquet.Rows(); err == nil {
		s.piece.footer = n
	}
	s.parquet = Parquet{}
	return s.piece
}

// Parquet reports whether a piece begins as a Parquet file does.
func (p Piece) Parquet() bool { return p.parquet }

// Rows returns the number of rows. Any data has some number of them.
func (s *Sniffed) Rows() (int64, error) { return RowsOf(s.Piece()), nil }

// RowsOf returns the number of rows of an object in pieces. It is 0 for what begins as a Parquet file does and does
// not end as one.
func RowsOf(pieces ...Piece) (n int64) {
	open := false
	for i, p := range pieces {
		if i == 0 && p.parquet {
			return pieces[len(pieces)-1].footer
		}
		n += p.feeds
		if p.begun {
			open = p.open
		}
	}
	if open {
		n++
	}
	return n
}
