package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Read reads a record, or the report of one push as push --json prints it, which becomes a record of one entry. Nothing
// is locked or changed: a sweep may be adding to the record, and a last line that is not whole is passed over.
//
// A push that was skipped and done later is there once, as it was done.
func Read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var r Record
	switch schema := schemaOf(text); schema {
	case report.Schema:
		r, err = single(text)
	case Schema:
		_, err = parse(text, &r)
		r.Entries = latest(r.Entries)
	default:
		err = strange(text, schema)
	}
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	r.File = path
	return r, nil
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

// single makes a record of one report. It has no head to speak of: nobody wrote down the machine or the flags.
func single(text []byte) (Record, error) {
	in := json.NewDecoder(bytes.NewReader(text))
	var r report.Report
	if err := in.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("reading the report: %w", err)
	}
	if in.More() {
		return Record{}, errors.New("there is something behind the report: give every report a file of its own")
	}
	e := Entry{Status: Measured, Error: r.Result.Error, Started: r.Run.Started, Seconds: seconds(r.Phases), Report: &r}
	switch r.Result.Outcome {
	case report.OK:
	case report.Interrupted:
		e.Status = Limited // what was acknowledged by then is measured
	default:
		e.Status, e.Error = Failed, cmp.Or(e.Error, string(r.Result.Outcome))
	}
	return Record{Head: Head{Parts: []Part{{Cells: 1}}}, Entries: []Entry{e}}, nil
}

// seconds is how long the push took, as far as its phases tell.
func seconds(p report.Phases) float64 {
	return p.Prepare + p.Fill + p.Load + p.Stage + p.Commit + p.Finish + p.Verify
}

// begins is how a record begins, whatever is in it.
const begins = `{"schema":"` + Schema + `"`

// parse reads a record's lines and returns the bytes of the whole ones. A line that is not whole at the end is what a
// kill leaves behind; anywhere else, it is damage that nobody may pass over.
func parse(text []byte, r *Record) (whole int, err error) {
	if len(text) < len(begins) && strings.HasPrefix(begins, string(text)) {
		return 0, nil // the head was being written
	}
	if schema := schemaOf(text); schema != Schema && !bytes.HasPrefix(text, []byte(begins)) {
		return 0, strange(text, schema)
	}
	for number := 1; whole < len(text); number++ {
		end := bytes.IndexByte(text[whole:], '\n')
		if end < 0 {
			return whole, nil
		}
		line := text[whole : whole+end]
		if err := r.add(line, number == 1); err != nil {
			// After a power failure a last line may have its line feed and lack its beginning.
			if last := whole+end+1 == len(text); last && !json.Valid(line) {
				return whole, nil
			}
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		whole += end + 1
	}
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
		r.Head = h
		return nil
	}
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.Part < 0 || e.Part >= len(r.Head.Parts) || e.Cell < 0 || e.Cell >= r.Head.Parts[e.Part].Cells {
		return fmt.Errorf("cell %d of part %d is none of this sweep's", e.Cell, e.Part)
	}
	if !slices.Contains([]Status{Measured, Limited, Failed, Skipped}, e.Status) {
		return fmt.Errorf("the status is %q: a newer terapush may have written it", e.Status)
	}
	r.Entries = append(r.Entries, e)
	return nil
}

// Push names one push of a sweep.
type Push struct {
	Part, Cell, Repeat int
	WarmUp             bool
}

// Push is which push the entry is of.
func (e Entry) Push() Push {
	return Push{Part: e.Part, Cell: e.Cell, Repeat: e.Repeat, WarmUp: e.WarmUp}
}

// latest leaves out what was skipped and done later.
func latest(all []Entry) []Entry {
	done := map[Push]bool{}
	for _, e := range all {
		done[e.Push()] = done[e.Push()] || e.Status != Skipped
	}
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Status == Skipped && done[e.Push()] })
}
