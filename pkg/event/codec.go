package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// JournalSchema names the journal's form. Fields may be added under the same name, readers pass over those they do not
// know; a field that changes its meaning needs a new name.
const JournalSchema = "terapush.journal/v1"

// Header is the journal's first line. Every line behind it is an Event.
type Header struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
}

// NewHeader returns the first line of the journal of a run.
func NewHeader(run string) Header { return Header{Schema: JournalSchema, Run: run} }

// AppendLine appends v, a Header or an Event, as one line. On an error dst comes back as it was.
func AppendLine(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	line := json.NewEncoder(b)
	line.SetEscapeHTML(false) // servers' messages stay readable with grep
	if err := line.Encode(v); err != nil {
		return dst, fmt.Errorf("event: encode a journal line: %w", err)
	}
	return b.Bytes(), nil
}

// TornError reports that the journal's last line is not whole: the process or the machine stopped while it was being
// written. Everything before Offset is good, and a writer truncates there before it appends.
//
// A last line without its line feed is torn even where its JSON is complete, since the next line would be glued to it.
type TornError struct {
	Offset int64 // bytes from the journal's start to the torn line; 0 when the header itself is torn or missing
}

// Error returns where the torn line begins.
func (e *TornError) Error() string {
	return fmt.Sprintf("the journal's last line, at byte %d, was not written to its end", e.Offset)
}

// Reader reads a journal line by line.
type Reader struct {
	in     *bufio.Reader
	header Header
	line   int   // of the last line read, 1 for the header
	offset int64 // bytes of the lines read so far
	failed error // the first error, which all later calls repeat
}

// NewReader reads the header. It fails with a TornError on a journal that ends before the header does, which the
// empty one does, and with another error on what is not a journal of this schema.
func NewReader(r io.Reader) (*Reader, error) {
	j := &Reader{in: bufio.NewReaderSize(r, 1<<16)}
	err := j.next(func(line []byte) error {
		if err := json.Unmarshal(line, &j.header); err != nil {
			return err
		}
		if j.header.Schema != JournalSchema {
			return fmt.Errorf("the schema is %q, and this version reads %q", j.header.Schema, JournalSchema)
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		err = &TornError{}
	}
	if err != nil {
		return nil, err
	}
	return j, nil
}

// Header returns the journal's first line.
func (j *Reader) Header() Header { return j.header }

// Offset returns the length in bytes of everything read so far: after io.EOF, of the journal.
func (j *Reader) Offset() int64 { return j.offset }

// Next reads one event. At the end it returns io.EOF, or a *TornError where the last line is not whole. A damaged line
// with others behind it is an error that names the line, and so is every later call.
func (j *Reader) Next() (Event, error) {
	var e Event
	err := j.next(func(line []byte) error {
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Outcome != Started && !slices.Contains(Outcomes(), e.Outcome) {
			return fmt.Errorf("the outcome is %q, which %s has no meaning for in this version of terapush: a newer one may have written it",
				e.Outcome, JournalSchema)
		}
		return nil
	})
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// next hands one line to parse. Once a line could not be read, none behind it is: they would hide the gap.
func (j *Reader) next(parse func(line []byte) error) error {
	if j.failed == nil {
		j.failed = j.readLine(parse)
	}
	return j.failed
}

func (j *Reader) readLine(parse func(line []byte) error) error {
	line, err := j.in.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return io.EOF
	case errors.Is(err, io.EOF):
		return &TornError{Offset: j.offset}
	case err != nil:
		return fmt.Errorf("event: read journal line %d: %w", j.line+1, err)
	}
	if err := parse(line); err != nil {
		// After a power failure the pages of the tail need not have reached the disk in order: the last line may have
		// its line feed and lack its beginning. Then it is not valid JSON; a valid line was written whole, perhaps by
		// a version with more fields. The header is no tail, and a file with another first line is no journal.
		if _, end := j.in.Peek(1); errors.Is(end, io.EOF) && j.line > 0 && !json.Valid(line) {
			return &TornError{Offset: j.offset}
		}
		return fmt.Errorf("event: journal line %d, at byte %d: %w", j.line+1, j.offset, err)
	}
	j.line++
	j.offset += int64(len(line))
	return nil
}
