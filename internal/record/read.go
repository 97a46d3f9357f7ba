package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Read reads a record, or the report of one push as push --json prints it, which becomes a record of one entry. Nothing
// is locked or changed: a sweep may be adding to the record, and a last line that is not whole is passed over, which
// Record.Torn tells. A record that claims what no sweep writes is refused with the line that does.
func Read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	r, err := read(text)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	r.File = path
	return r, nil
}

func read(text []byte) (r Record, err error) {
	switch schema := schemaOf(text); schema {
	case report.Schema:
		return single(text)
	case Schema:
		_, err = parse(text, &r)
		return r, err
	default:
		return r, strange(text, schema)
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
	wanted := fmt.Sprintf("this terapush reads %s, which sweep writes, and %s, which push --json prints", Schema, report.Schema)
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
	return Of(r), nil
}

// Of is the record of one report. It has no head to speak of: nobody wrote down the machine or the flags.
func Of(r report.Report) Record {
	e := Entry{Status: Measured, Error: r.Result.Error, Started: r.Run.Started, Seconds: seconds(r.Phases), Report: &r}
	switch r.Result.Outcome {
	case report.OK:
	case report.Interrupted:
		e.Status = Limited // what was acknowledged by then is measured
	default:
		e.Status, e.Error = Failed, cmp.Or(e.Error, string(r.Result.Outcome))
	}
	return Record{Head: Head{Parts: []Part{{Cells: 1}}}, Entries: []Entry{e}}
}

// seconds is how long the push took, as far as its phases tell.
func seconds(p report.Phases) float64 {
	return p.Prepare + p.Fill + p.Load + p.Stage + p.Commit + p.Finish + p.Verify
}

// begins is how a record begins, whatever is in it.
const begins = `{"schema":"` + Schema + `"`

// parse reads a record's lines and returns the bytes of the whole ones. A line that is not whole at the end is what a
// kill leaves behind; anywhere else, it is damage that nobody may pass over. A last line that lacks its line feed alone is
// whole.
func parse(text []byte, r *Record) (whole int, err error) {
	if len(text) < len(begins) && strings.HasPrefix(begins, string(text)) {
		r.Torn = len(text) > 0
		return 0, nil // the head was being written
	}
	if schema := schemaOf(text); schema != Schema && !bytes.HasPrefix(text, []byte(begins)) {
		return 0, strange(text, schema)
	}
	for number := 1; whole < len(text) && !r.Torn; number++ {
		line, _, ended := bytes.Cut(text[whole:], []byte("\n"))
		next := whole + len(line)
		if ended {
			next++
		}
		err := r.add(line, number == 1)
		switch {
		case err == nil:
			whole = next
		case next == len(text) && !json.Valid(line): // after a power failure with its line feed and without its beginning
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
