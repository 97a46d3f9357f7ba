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
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Read reads a record, or the report of one push as push --json prints it, which becomes a record of one entry. It
// locks and changes nothing. A sweep may be adding to the record, so an incomplete last line is skipped; see
// Record.Torn.
func Read(path string) (Record, error) { return readFile(path, read) }

func readFile(path string, read func(io.Reader) (Record, error)) (Record, error) {
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
	lines := bufio.NewReaderSize(in, maxLine)
	start, _ := lines.Peek(maxLine) // a short file is no error, and any other comes back from the next read
	if schemaOf(start) == report.Schema {
		var one report.Report
		if err := json.Unmarshal(start, &one); err != nil {
			return r, fmt.Errorf("reading the report: %w", err)
		}
		return Of(one), nil
	}
	if _, err = parseLines(lines, &r); err == nil && r.Head.Schema == "" {
		err = otherSchema("")
	}
	return r, err
}

// maxLine bounds a line and a report. A report of 600 moments has 100 KB.
const maxLine = 16 << 20

// schemaOf returns the schema that the first JSON object of the text names, "" without one.
func schemaOf(text []byte) string {
	var first struct {
		Schema string `json:"schema"`
	}
	if json.NewDecoder(bytes.NewReader(text)).Decode(&first) != nil {
		return ""
	}
	return first.Schema
}

// otherSchema is the error for a file that names another schema, or none.
func otherSchema(schema string) error {
	const want = "want " + Schema + ", which sweep writes, or " + report.Schema + ", which push --json prints"
	if schema == "" {
		return errors.New("the file is neither a record nor a report: " + want)
	}
	return fmt.Errorf("the schema of the file is %q: %s", schema, want)
}

// Of returns the record of one report. Its head is empty: the report does not hold the machine or the flags.
func Of(r report.Report) Record {
	p := r.Phases
	took := p.Prepare + p.Fill + p.Load + p.Stage + p.Commit + p.Finish + p.Verify
	e := Entry{Status: Measured, Error: r.Result.Error, Started: r.Run.Started, Seconds: took, Report: &r}
	switch r.Result.Outcome {
	case report.OK:
	case report.Interrupted:
		e.Status = Limited // the rows acknowledged by then are measured
	default:
		e.Status, e.Error = Failed, cmp.Or(e.Error, string(r.Result.Outcome))
	}
	return Record{Head: Head{Parts: []Part{{Cells: 1}}}, Entries: []Entry{e}}
}

// begins is how every record begins.
const begins = `{"schema":"` + Schema + `"`

// parseLines reads a record and returns the length of its complete lines. An incomplete line at the end is what a kill
// leaves behind; anywhere else it is an error.
func parseLines(in io.Reader, r *Record) (complete int64, err error) {
	lines := bufio.NewReaderSize(in, maxLine)
	start, _ := lines.Peek(maxLine)
	// A kill may have cut the head.
	if !strings.HasPrefix(begins, string(start[:min(len(start), len(begins))])) {
		return 0, otherSchema(schemaOf(start))
	}
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			r.Torn = r.Torn || len(line) > 0
			break
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			err = fmt.Errorf("longer than %d MiB", maxLine>>20)
		}
		length := int64(len(line))
		if err == nil {
			err = r.add(line)
		}
		if err != nil {
			// After a power failure the last line may have its line feed and lack its beginning.
			valid := json.Valid(line)
			if _, end := lines.Peek(1); valid || !errors.Is(end, io.EOF) {
				return complete, fmt.Errorf("line %d: %w", number, err)
			}
			r.Torn = true
			break
		}
		complete += length
	}
	r.Entries = r.Latest()
	return complete, nil
}

func (r *Record) add(line []byte) error {
	if bytes.HasPrefix(line, []byte(`{"schema":`)) {
		var h Head
		if err := json.Unmarshal(line, &h); err != nil {
			return err
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
	r.Entries = append(r.Entries, e)
	return nil
}

// begin sets the head. A second head must be of the same sweep, since entries refer to cases by number.
func (r *Record) begin(h Head) error {
	if h.Schema != Schema {
		return otherSchema(h.Schema)
	}
	total := 0
	for i, p := range h.Parts {
		cells := Combinations(p.Axes)
		if total += cells; total > MaxCells {
			return fmt.Errorf("more than %d cases", MaxCells)
		}
		if p.Cells != cells {
			return fmt.Errorf("part %d: its axes make %d cases, not %d", i, cells, p.Cells)
		}
	}
	if r.Head.Schema != "" {
		if d := r.Head.Difference(h); d != "" {
			return fmt.Errorf("this head is of another sweep than the one before it: %s", d)
		}
	}
	r.Head = h
	for _, e := range r.Entries {
		if err := r.check(e); err != nil {
			return err
		}
	}
	return nil
}

// check refuses an entry that does not belong to a case of the head.
func (r *Record) check(e Entry) error {
	if e.Part < 0 || e.Part >= len(r.Head.Parts) || e.Cell < 0 || e.Cell >= r.Head.Parts[e.Part].Cells {
		return fmt.Errorf("the sweep has no case %d of part %d", e.Cell, e.Part)
	}
	if !slices.Contains([]Status{Measured, Limited, Failed, Skipped}, e.Status) {
		return fmt.Errorf("the status is %q: a newer terapush may have written it", e.Status)
	}
	return nil
}
