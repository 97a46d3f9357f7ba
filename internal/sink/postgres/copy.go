package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// copyIn takes in the data of one COPY. before are answers that have not been sent, and have to be before the data is
// asked for.
func (s *session) copyIn(sql string, before *[]pgproto3.BackendMessage) (outcome, error) {
	format, err := formatOf(sql)
	var count sink.RowCounter
	if err == nil {
		count, err = format.counter()
	}
	if err != nil && (!s.conn.Options.NoCount || !fromStdin.MatchString(sql)) {
		return refuse(errUnsupported, "terapush sink: "+err.Error()), nil
	}

	overall := byte(0)
	if format.binary {
		overall = 1
	}
	// A real server lists the columns here. No client depends on it, and the sink has no tables.
	if err := s.send(append(*before, &pgproto3.CopyInResponse{OverallFormat: overall})...); err != nil {
		return outcome{}, err
	}
	*before = nil

	var size, rows int64
	err = s.conn.Wide(s.in, func(in *bufio.Reader) (err error) {
		data := wire{conn: s.conn, in: in}
		size, rows, err = s.conn.Take(&sink.Packets{In: in, Next: data.nextCopy}, count)
		return err
	})
	bad := (*sink.DataError)(nil)
	switch {
	case errors.Is(err, errCopyFailed):
		return refuse(errCanceled, err.Error()), nil
	case errors.Is(err, sink.ErrTold):
		return injected(), nil
	case errors.As(err, &bad):
		return refuse(errBadFormat, err.Error()), nil
	case err != nil:
		return outcome{}, err
	}
	s.conn.Loaded(size, rows)
	return outcome{tag: fmt.Sprintf("COPY %d", rows)}, nil
}

var errCopyFailed = errors.New("COPY from stdin failed")

// nextCopy reads the header of the next message with data, up to the one that ends the COPY.
func (w *wire) nextCopy() (int, error) {
	for {
		kind, n, err := w.header()
		if err == nil && kind == 'd' {
			return n, nil
		}
		if err == nil {
			_, err = w.in.Discard(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case kind == 'H' || kind == 'S': // clients that pipeline send these; they mean nothing here
		case kind == 'c':
			return 0, io.EOF
		case kind == 'f':
			return 0, errCopyFailed
		default:
			return 0, errMalformed
		}
	}
}

var (
	fromStdin = regexp.MustCompile(`(?is)^COPY\s+\S.*?[\s)]FROM\s+STDIN\b(.*)$`)
	tokens    = regexp.MustCompile(`(?s)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|\S`)
)

// copyFormat is how the rows of a COPY lie in its data.
type copyFormat struct {
	binary, csv, header bool
	quote, escape       string
}

// counter makes the counter for it.
func (f copyFormat) counter() (sink.RowCounter, error) {
	if f.binary {
		return &binaryRows{}, nil
	}
	t := sink.Text{Marker: true, Escape: '\\', Bare: true}
	if f.csv {
		if len(f.quote) != 1 || len(f.escape) > 1 {
			return nil, errors.New("COPY quote and escape are one byte each")
		}
		t = sink.Text{Marker: true, Quote: f.quote[0], Escape: (f.escape + f.quote)[0], Anywhere: true}
	}
	if f.header {
		t.Skip = 1
	}
	return sink.NewDelimited(t)
}

// formatOf reads the options of a COPY (PostgreSQL manual, "COPY"), in parentheses or behind WITH.
func formatOf(sql string) (copyFormat, error) {
	f := copyFormat{quote: `"`}
	m := fromStdin.FindStringSubmatch(sql)
	if m == nil {
		return f, errors.New("only COPY table FROM STDIN")
	}
	words := tokens.FindAllString(m[1], -1)
	next := func() (word string) {
		if len(words) > 0 {
			word, words = words[0], words[1:]
		}
		return word
	}
	for len(words) > 0 {
		switch option := strings.ToUpper(sink.Unquote(next(), sink.Standard)); option {
		case "WITH", "(", ")", ",", "FORMAT", "TEXT": // what FORMAT stands before says it all
		case "BINARY":
			f.binary = true
		case "CSV":
			f.csv = true
		case "HEADER":
			f.header = true
			if len(words) > 0 && strings.Contains(" FALSE OFF 0 ", " "+strings.ToUpper(words[0])+" ") {
				f.header = false
			}
		case "TRUE", "ON", "1", "FALSE", "OFF", "0", "MATCH": // behind HEADER
		case "QUOTE":
			f.quote = sink.Unquote(next(), sink.Standard)
		case "ESCAPE":
			f.escape = sink.Unquote(next(), sink.Standard)
		case "DELIMITER", "NULL", "ENCODING":
			next()
		default:
			return f, errors.New("it does not know " + option + " of COPY")
		}
	}
	return f, nil
}
