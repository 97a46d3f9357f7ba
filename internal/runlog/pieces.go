package runlog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/pkg/event"
)

// Header is the first line of a piece of the journal.
type Header struct {
	Schema string  `json:"schema"`
	Owner  string  `json:"owner"` // of the piece, a random text: no two processes have the same
	Record *Record `json:"record"`
}

// journalSchema names the format of pieces. Fields may be added under the same name, since readers skip unknown ones; a
// line that changes its meaning needs a new name.
const journalSchema = "terapush.journal/v3"

// Marks are lines for nearly all events, without what nobody needs to know of them.
const (
	markBegun = "begun " // and the number of a batch whose first attempt is announced
	markIn    = "in "
)

func pieceName(number int64) string { return fmt.Sprintf("journal-%012d.jsonl", number) }

// pieceNumber returns the number in a piece's name, 0 for other names.
func pieceNumber(name string) int64 {
	digits, _ := strings.CutPrefix(name, "journal-")
	number, _ := strconv.ParseInt(strings.TrimSuffix(digits, ".jsonl"), 10, 64)
	if pieceName(number) != name {
		return 0
	}
	return number
}

// pieces are the journal of a run or shard in a folder of files.
type pieces struct {
	files  Files
	folder string // empty, or with a slash at its end
}

func (p pieces) name(number int64) string { return p.folder + pieceName(number) }

// newest returns the number of the newest piece, 0 if there is none.
func (p pieces) newest() (number int64, err error) {
	names, err := p.files.Names(p.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for the journal: %w", err)
	}
	for _, name := range names {
		number = max(number, pieceNumber(strings.TrimPrefix(name, p.folder)))
	}
	return number, nil
}

// record returns the record in the newest of so many pieces that has a first line, nil if there is none. Processes that
// were killed, or had no room on the disk, when they made a piece have done nothing else.
func (p pieces) record(newest int64) (*Record, error) {
	for n := newest; n > 0; n-- {
		head, err := p.header(n)
		if errors.Is(err, errNoHeader) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return head.Record, err
	}
	return nil, nil
}

func (p pieces) header(number int64) (Header, error) {
	in, err := p.files.Open(p.name(number))
	if err != nil {
		return Header{}, fmt.Errorf("reading the journal: %w", err)
	}
	defer in.Close()
	head, err := readHeader(bufio.NewReader(in))
	if err != nil {
		return head, fmt.Errorf("reading the journal %s: %w", p.name(number), err)
	}
	return head, nil
}

// atOnce is how many pieces are opened at once: a bucket may have thousands.
const atOnce = 32

// replay calls f with the events of so many pieces, in the order in which they were written. If some are missing or
// cannot be read, it is called with all others, and a *DamagedError is returned.
func (p pieces) replay(newest int64, f func(event.Event)) error {
	var damage error
	for first := int64(1); first <= newest; first += atOnce {
		open, err := p.open(first, min(first+atOnce-1, newest))
		if err != nil {
			return fmt.Errorf("reading the journal: %w", err)
		}
		for i, in := range open {
			if err == nil {
				err = p.replayOne(first+int64(i), in, f)
			}
			if errors.As(err, new(*DamagedError)) {
				damage, err = cmp.Or(damage, err), nil
			}
			if in != nil {
				_ = in.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return damage
}

// open opens some pieces; one that is missing is nil.
func (p pieces) open(first, last int64) ([]io.ReadCloser, error) {
	open := make([]io.ReadCloser, last-first+1)
	var all errgroup.Group
	for i := range open {
		all.Go(func() error {
			in, err := p.files.Open(p.name(first + int64(i)))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			open[i] = in
			return err
		})
	}
	err := all.Wait()
	if err == nil {
		return open, nil
	}
	for _, in := range open {
		if in != nil {
			_ = in.Close()
		}
	}
	return nil, err
}

func (p pieces) replayOne(number int64, in io.Reader, f func(event.Event)) error {
	if in == nil {
		return &DamagedError{fmt.Errorf("%s is missing: somebody removed a part of the run's journal: put it back", p.name(number))}
	}
	if err := replay(in, f); err != nil {
		return fmt.Errorf("reading the journal %s: %w", p.name(number), err)
	}
	return nil
}

// DamagedError reports that a part of a run's journal is missing or unreadable: not all that was sent is known.
type DamagedError struct{ err error }

func (e *DamagedError) Error() string { return e.err.Error() }
func (e *DamagedError) Unwrap() error { return e.err }

// replay reads a piece. A crash may cut its last line off.
func replay(piece io.Reader, f func(event.Event)) error {
	in := bufio.NewReaderSize(piece, 1<<16)
	if _, err := readHeader(in); err != nil {
		if errors.Is(err, errNoHeader) {
			return nil
		}
		return err
	}
	var text []byte
	mark := event.Event{Attempt: 1}
	for line := 2; ; line++ {
		whole, err := readLine(in, text[:0])
		if err != nil || whole == nil {
			return err
		}
		text = whole
		// A power failure leaves zeros where pages had not reached the disk, which they do in any order. Nothing was
		// done because of such a line: it was not synced.
		if bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		is, err := parseMark(text, &mark)
		if is && err == nil {
			f(mark)
			continue
		}
		e := event.Event{}
		if err == nil {
			e, err = parse(text)
		}
		if err != nil {
			return &DamagedError{fmt.Errorf("line %d: %w", line, err)}
		}
		f(e)
	}
}

// readLine appends the next line to dst, without its end. It returns nil where no whole line is left.
func readLine(in *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		dst = append(dst, part...)
		switch {
		case err == nil:
			return dst[:len(dst)-1], nil
		case errors.Is(err, io.EOF):
			return nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// errNoHeader reports a piece of which nothing was written but a part of its first line.
var errNoHeader = errors.New("the first line is incomplete")

func readHeader(in *bufio.Reader) (h Header, err error) {
	line, err := readLine(in, nil)
	if err != nil {
		return h, err
	}
	if line == nil || bytes.IndexByte(line, 0) >= 0 { // as in other lines
		return h, errNoHeader
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return h, &DamagedError{fmt.Errorf("line 1: %w", err)}
	}
	if h.Schema != journalSchema {
		return h, fmt.Errorf("its schema is %q, this terapush reads %q: take the version that began the run", h.Schema, journalSchema)
	}
	return h, nil
}

// parseMark reads a mark into e, of which only batch and outcome change. Millions are read in a second: no new event
// for each.
func parseMark(line []byte, e *event.Event) (is bool, err error) {
	number, is := bytes.CutPrefix(line, []byte(markIn))
	e.Outcome = event.Applied
	if !is {
		number, is = bytes.CutPrefix(line, []byte(markBegun))
		e.Outcome = event.Started
	}
	if !is {
		return false, nil
	}
	e.Batch, err = strconv.ParseInt(string(number), 10, 64)
	if err == nil && e.Batch < 0 {
		err = fmt.Errorf("batch %d", e.Batch)
	}
	return true, err
}

func parse(line []byte) (e event.Event, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	if e.Outcome != event.Started && !slices.Contains(event.Outcomes(), e.Outcome) {
		return e, fmt.Errorf("the outcome is %q, which this version of terapush does not know: take the one that began the run", e.Outcome)
	}
	return e, nil
}

// appendLine appends v as one line of JSON. On an error it returns dst unchanged.
func appendLine(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	line := json.NewEncoder(b)
	line.SetEscapeHTML(false) // servers' messages stay readable with grep
	if err := line.Encode(v); err != nil {
		return dst, fmt.Errorf("writing a line of the journal: %w", err)
	}
	return b.Bytes(), nil
}
