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

// JournalSchema names the journal's format. Fields may be added under the same name, since readers skip unknown ones; a
// field that changes its meaning needs a new name.
const JournalSchema = "terapush.journal/v1"

// Header is the journal's first line. Every line after it is an Event.
type Header struct {
	Schema string `json:"schema"`
	Run    string `json:"run"`
}

// NewHeader returns the first line of the journal of a run.
func NewHeader(run string) Header { return Header{Schema: JournalSchema, Run: run} }

// AppendLine appends v, a Header or an Event, as one line. On an error it returns dst unchanged.
func AppendLine(dst []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	line := json.NewEncoder(b)
	line.SetEscapeHTML(false) // servers' messages stay readable with grep
	if err := line.Encode(v); err != nil {
		return dst, fmt.Errorf("event: encode a journal line: %w", err)
	}
	return b.Bytes(), nil
}

// TornError reports that the journal's last line is incomplete, since the process or the machine stopped while it was
// written. Everything before Offset is valid, and a writer truncates there before it appends.
//
// A last line without line feed is torn even if its JSON is complete, since the next line would be appended to it.
type TornError struct {
	Offset int64 // of the torn line; 0 if the header is torn or missing
}

// Error returns where the torn line begins.
func (e *TornError) Error() string {
	return fmt.Sprintf("the journal's last line, at byte %d, is incomplete", e.Offset)
}

// Reader reads a journal line by line.
type Reader struct {
	in     *bufio.Reader
	header Header
	line   int   // of the last line read, 1 for the header
	offset int64 // bytes of the lines read so far
	failed error // the first error, which later calls return
}

// NewReader reads the header. It returns a TornError if the header is incomplete or missing, and another error if the
// journal has another schema.
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

// Offset returns the length of the lines read so far.
func (j *Reader) Offset() int64 { return j.offset }

// Next reads one event. At the end it returns io.EOF, or a *TornError if the last line is incomplete. After an error
// about a damaged line within the journal, later calls return the same error.
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

// next passes one line to parse. It reads no line after a damaged one.
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
		// After a power failure the last line may have its line feed but lack its beginning, since pages reach the disk in
		// any order. Then it is not valid JSON; a valid line was written by a version with more fields.
		if _, end := j.in.Peek(1); errors.Is(end, io.EOF) && j.line > 0 && !json.Valid(line) {
			return &TornError{Offset: j.offset}
		}
		return fmt.Errorf("event: journal line %d, at byte %d: %w", j.line+1, j.offset, err)
	}
	j.line++
	j.offset += int64(len(line))
	return nil
}
