package results

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Read reads a record, or the report of one push as push --json prints it, which becomes a record of one entry. Nothing
// is locked or changed: a sweep may be adding to the record, and a last line that is not whole is passed over, as
// Record.Torn says. A record that claims what no sweep writes is refused with the line that does.
func Read(path string) (Record, error) {
	in, err := os.Open(path)
	if err != nil {
		return Record{}, err
	}
	defer in.Close()
	r, err := read(in)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	r.File = path
	return r, nil
}

func read(in io.Reader) (r Record, err error) {
	start, in, err := peek(in)
	if err != nil {
		return r, err
	}
	switch schema := schemaOf(start); schema {
	case report.Schema:
		return single(start)
	case Schema:
		_, err = parseLines(in, &r)
		return r, err
	default:
		if len(start) > maxLine {
			return r, errTooLong
		}
		return r, strange(start, schema)
	}
}

// maxLine is the most bytes of a line, and of a report. One of 600 moments has 100 KB: what has more is no record,
// and must not use up the memory.
const maxLine = 16 << 20

var errTooLong = fmt.Errorf("longer than %d MiB, which no report is", maxLine>>20)

// peek reads how a file starts, at least as much as a line may have, and returns a reader of the whole.
func peek(in io.Reader) (start []byte, whole io.Reader, err error) {
	start, err = io.ReadAll(io.LimitReader(in, maxLine+1))
	return start, io.MultiReader(bytes.NewReader(start), in), err
}

// readLine reads a line with its line feed, if it has one. Its error is io.EOF at the end.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// schemaOf is the schema that the first JSON object of the text names, "" without one.
func schemaOf(text []byte) string {
	var first struct {
		Schema string `json:"schema"`
	}
	if json.NewDecoder(bytes.NewReader(text)).Decode(&first) != nil {
		return ""
	}
	return first.Schema
}

// strange says what a file is that is no record.
func strange(text []byte, schema string) error {
	const wanted = "this terapush reads " + Schema + ", which sweep writes, and " + report.Schema +
		", which push --json prints"
	kind, _, _ := strings.Cut(schema, "/")
	for _, own := range []string{Schema, report.Schema} {
		if is, _, _ := strings.Cut(own, "/"); is == kind && kind != "" {
			return fmt.Errorf("its schema is %q: another version of terapush wrote it; %s", schema, wanted)
		}
	}
	switch {
	case schema != "":
		return fmt.Errorf("its schema is %q; %s", schema, wanted)
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the file is empty; " + wanted)
	case json.Valid(text):
		return errors.New("it is JSON that names no schema; " + wanted)
	default:
		return errors.New("it is neither a record nor a report; " + wanted)
	}
}

func single(text []byte) (Record, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	var r report.Report
	if err := in.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("reading the report: %w", err)
	}
	if in.More() {
		return Record{}, errors.New("there is something behind the report: give every report a file of its own")
	}
	return Of(r), checkReport(&r)
}

// Of returns the record of one report. It has no head to speak of: nobody wrote down the machine or the flags.
func Of(r report.Report) Record {
	p := r.Phases
	took := p.Prepare + p.Fill + p.Load + p.Stage + p.Commit + p.Finish + p.Verify
	e := Entry{Status: Measured, Error: r.Result.Error, Started: r.Run.Started, Seconds: took, Report: &r}
	switch r.Result.Outcome {
	case report.OK:
	case report.Interrupted:
		e.Status = Limited // what was acknowledged by then is measured
	default:
		e.Status, e.Error = Failed, cmp.Or(e.Error, string(r.Result.Outcome))
	}
	return Record{Head: Head{Parts: []Part{{Cells: 1}}}, Entries: []Entry{e}}
}

// begins is how a record begins, whatever is in it.
const begins = `{"schema":"` + Schema + `"`

// parseLines reads a record's lines and returns the bytes of the whole ones. A line that is not whole at the end is
// what a kill leaves behind; anywhere else, it is damage that nobody may pass over. A last line that lacks its line
// feed alone is whole.
func parseLines(in io.Reader, r *Record) (whole int64, err error) {
	start, in, err := peek(in)
	if err != nil {
		return 0, err
	}
	if len(start) < len(begins) && strings.HasPrefix(begins, string(start)) {
		r.Torn = len(start) > 0
		return 0, nil // the head was being written
	}
	if schema := schemaOf(start); schema != Schema && !bytes.HasPrefix(start, []byte(begins)) {
		return 0, strange(start, schema)
	}
	lines := bufio.NewReader(in)
	for number := 1; !r.Torn; number++ {
		text, err := readLine(lines)
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		_, behind := lines.Peek(1)
		line := bytes.TrimSuffix(text, []byte("\n"))
		err = r.add(line, number == 1)
		switch {
		case err == nil:
			whole += int64(len(text))
		// After a power failure it may have its line feed and lack its beginning.
		case errors.Is(behind, io.EOF) && !json.Valid(line):
			r.Torn = true
		default:
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
	}
	r.Entries = r.Latest()
	return whole, nil
}

// add takes one line.
func (r *Record) add(line []byte, first bool) error {
	if first || bytes.HasPrefix(line, []byte(`{"schema":`)) {
		var h Head
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		if h.Schema != Schema {
			return strange(line, h.Schema)
		}
		return r.begin(h)
	}
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if err := r.check(e); err != nil {
		return err
	}
	e.Version, e.Machine = r.Head.Version, r.Head.Machine
	r.Entries = append(r.Entries, e)
	return nil
}
