package mysql

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

const (
	str  = `(?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")`
	name = "(?:`(?:[^`]|``)*`|[^\\s(`])+"
)

var (
	infile = regexp.MustCompile(`(?is)^LOAD\s+DATA\s+(LOCAL\s+)?INFILE\s+(` + str + `)(.*)$`)
	// clauses are those behind the name of the file, in their order (MySQL manual, "LOAD DATA Statement"): of fields, of
	// lines, how many to ignore. Behind them comes nothing that changes what a row is.
	clauses = regexp.MustCompile(`(?is)^(?:\s+(?:REPLACE|IGNORE))?\s+INTO\s+TABLE\s+` + name +
		`(?:\s+CHARACTER\s+SET\s+\S+)?` +
		`(?:\s+(?:FIELDS|COLUMNS)((?:\s+(?:TERMINATED|(?:OPTIONALLY\s+)?ENCLOSED|ESCAPED)\s+BY\s*` + str + `)+))?` +
		`(?:\s+LINES((?:\s+(?:STARTING|TERMINATED)\s+BY\s*` + str + `)+))?` +
		`(?:\s+IGNORE\s+(\d+)\s+(?:LINES|ROWS))?\s*(?:\(.*|SET\s.*)?$`)
	clause = regexp.MustCompile(`(?is)(TERMINATED|ENCLOSED|ESCAPED|STARTING)\s+BY\s*(` + str + `)`)
)

// load asks for the file and takes it in.
func (s *session) load(sql string) error {
	m := infile.FindStringSubmatch(sql)
	switch {
	case m == nil:
		return s.fail(errParse, "terapush sink: it knows LOAD DATA LOCAL INFILE 'name' INTO TABLE …")
	case m[1] == "":
		return s.fail(errNotAllowed, "terapush sink: only LOAD DATA LOCAL INFILE, there are no files here")
	}
	var count sink.RowCounter
	if !s.conn.Options.NoCount {
		text, err := textOf(m[3])
		if err == nil {
			count, err = sink.NewDelimited(text)
		}
		if err != nil {
			return s.fail(errNotSupported, "terapush sink: "+err.Error())
		}
	}
	if err := s.send(append([]byte{0xfb}, sink.Unquote(m[2], sink.Backslash)...)); err != nil {
		return err
	}
	var bytes, rows int64
	err := s.conn.Wide(s.in, func(in *bufio.Reader) (err error) {
		file := wire{conn: s.conn, in: in}
		bytes, rows, err = s.conn.Take(&sink.Packets{In: in, Next: file.next()}, count)
		s.seq = file.seq
		return err
	})
	bad := (*sink.DataError)(nil)
	switch {
	case errors.Is(err, sink.ErrTold):
		return s.injected()
	case errors.As(err, &bad):
		return s.fail(errBadData, "terapush sink: "+err.Error())
	case err != nil:
		return err
	}
	s.conn.Loaded(bytes, rows)
	return s.ok(rows, fmt.Sprintf("Records: %d  Deleted: 0  Skipped: 0  Warnings: 0", rows))
}

// next returns a function that reads the headers of a file's packets, up to an empty one. An empty packet after a full
// one only says that the full one is complete.
func (w *wire) next() func() (int, error) {
	full := false
	return func() (int, error) {
		n, err := w.header()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err == nil && n == 0 && !full {
			err = io.EOF
		}
		full = n == maxPacket
		return n, err
	}
}

var (
	errClauses  = errors.New("what stands behind INFILE cannot be read, so its rows cannot be counted")
	errStarting = errors.New("it does not count lines by what they start with (LINES STARTING BY)")
	errFixed    = errors.New("it does not count rows of a fixed size: give FIELDS TERMINATED BY and LINES TERMINATED BY")
	errOneByte  = errors.New("ENCLOSED BY and ESCAPED BY are one byte, or none")
)

// textOf reads the format of rows from a LOAD DATA. Without it a tab ends a value, a line feed a row, and a backslash
// escapes either.
func textOf(behind string) (sink.Text, error) {
	t := sink.Text{End: "\n", Separator: "\t", Escape: '\\', Bare: true}
	m := clauses.FindStringSubmatch(behind)
	if m == nil {
		return t, errClauses
	}
	for _, c := range clause.FindAllStringSubmatch(m[1], -1) {
		text := sink.Unquote(c[2], sink.Backslash)
		switch strings.ToUpper(c[1]) {
		case "TERMINATED":
			t.Separator = text
		case "ENCLOSED":
			t.Quote = (text + "\x00")[0]
		case "ESCAPED":
			t.Escape = (text + "\x00")[0]
		}
		if len(text) > 1 && !strings.EqualFold(c[1], "TERMINATED") {
			return t, errOneByte
		}
	}
	for _, c := range clause.FindAllStringSubmatch(m[2], -1) {
		text := sink.Unquote(c[2], sink.Backslash)
		if strings.EqualFold(c[1], "TERMINATED") {
			t.End = text
		} else if text != "" {
			return t, errStarting
		}
	}
	if t.End == "" || t.Separator == "" && t.Quote == 0 {
		return t, errFixed
	}
	if m[3] != "" {
		var err error
		if t.Skip, err = strconv.ParseInt(m[3], 10, 64); err != nil {
			return t, errClauses
		}
	}
	return t, nil
}
