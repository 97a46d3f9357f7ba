package dataset

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecSample is a column of a user's file, of which whole rows are drawn: the columns of one file have values of one
// row.
type SpecSample struct {
	File   string `json:"file"`   // its absolute path: a process that resumes finds it there
	Column string `json:"column"` // of the file
	// Hash is the SHA-256 of the file's bytes, in hex. Other bytes are other rows, and are refused.
	Hash string `json:"sha256"`
}

// readSampleColumn reads sample: FILE, or sample: {file, column}. A path is that of the spec's folder.
func readSampleColumn(r *specReader, c *SpecColumn, e entry, where string) Generator {
	s := new(SpecSample)
	if _, is := e.value.(*ast.MappingNode); is {
		f := r.fields(c, e, where, "file", "column", "columns")
		if all, is := f.all["columns"]; is {
			f.add(all.line, "%s: write each column of the file as one of its own, as name: {type: text(80), sample: {file: …}}", where)
		}
		s.File, s.Column = f.text("file"), f.text("column")
	} else {
		s.File = r.scalar(e.value, where)
	}
	s.Column = cmp.Or(s.Column, c.Name)
	if s.File == "" || filepath.IsAbs(s.File) {
		return s
	}
	path, err := filepath.Abs(filepath.Join(filepath.Dir(r.file), s.File))
	if err != nil {
		r.add(e.line, "%s: %v", where, err)
	}
	s.File = path
	return s
}

func (s *SpecSample) plan(p *columnPlanner) (plan columnPlan) {
	at := []string{"sample"}
	switch {
	case p.inside:
		return p.refuse(at, "sample is for a column of its own, and not for a part of a document")
	case s.File == "":
		return p.refuse(at, "sample needs file, as in {file: customers.csv, column: name}")
	case p.c.Nulls != "" && !p.c.takesNull() || p.c.Distinct != 0 || p.c.Common != nil:
		return p.refuse(at, "sample: NULLs and values are those of the file: leave nulls, distinct and common out")
	}
	file, err := s.read()
	if err != nil {
		p.wrongSample(err)
		return plan
	}
	s.Hash = file.hash
	of := file.column(s.Column)
	if of == nil {
		return p.refuse(append(at, "column"), "sample: %s: %s", s.File, unknown("column", s.Column, file.names))
	}

	if err := p.sampled(&plan, file, of); err != nil {
		p.wrong(at, "sample: %v", err)
		return columnPlan{}
	}
	plan.stream = "sample " + file.hash // one for all columns, which have one row then
	plan.sampled = file.memory()
	return plan
}

// read reads the file, and refuses other bytes than those of the hash.
func (s *SpecSample) read() (*sampleFile, error) {
	file, err := readSample(s.File)
	if err != nil && s.Hash != "" { // of a run that was begun: also its proof, and forget, make its rows again
		return nil, fmt.Errorf("%w: the run's rows are of this file, whose SHA-256 is %.16s…: put it back until the run is forgotten", err, s.Hash)
	}
	if err == nil && s.Hash != "" && s.Hash != file.hash {
		return nil, fmt.Errorf("%s has changed: the SHA-256 of its bytes was %.16s…, and is %.16s…: put the file back that the run began with",
			s.File, s.Hash, file.hash)
	}
	return file, err
}

// wrongSample adds what is wrong with a file, once for all columns of it.
func (p *columnPlanner) wrongSample(err error) {
	p.failed = true
	text := "sample: " + err.Error()
	if !slices.ContainsFunc(p.problems, func(one problem) bool { return strings.HasSuffix(one.text, text) }) {
		p.wrong([]string{"sample"}, "%s", text)
	}
}

// sampled plans the values of a column of a file.
func (p *columnPlanner) sampled(plan *columnPlan, file *sampleFile, of *sampleColumn) error {
	count := len(file.lines)
	drawn := &sampled{nulls: make([]bool, count), nullable: slices.Contains(of.nulls, true)}
	plan.column.Nullable = drawn.nullable
	if !p.t.Variable() && !p.t.InBytes() {
		drawn.numbers = make([]int64, count)
	}
	labels := map[string]bool{}
	plan.column.Plain, plan.column.ASCII = true, true
	plan.column.MaxBytes = 1 // where all texts are empty
	known := false           // some value is
	for i := range count {
		if of.nulls[i] {
			drawn.nulls[i] = true
			drawn.end()
			continue
		}
		number, value, err := p.t.value(string(of.text(i)))
		if err == nil && p.t.Variable() && p.t.size > 0 && len(value) > p.t.size {
			err = fmt.Errorf("%s has %d bytes, more than %s", quoted(string(of.text(i))), len(value), p.t)
		}
		if err != nil {
			return fmt.Errorf("%s, %s %d: %w", file.path, file.unit, file.lines[i], err)
		}
		if drawn.numbers != nil {
			drawn.numbers[i] = number
			if !known {
				plan.least, plan.most = number, number
			}
			plan.least, plan.most = min(plan.least, number), max(plan.most, number)
		}
		if drawn.numbers == nil && !p.isFileText() {
			drawn.data = append(drawn.data, value...)
			drawn.end()
		}
		known = true
		hold(&plan.column, value)
		if p.t.Type == rows.Enum && !labels[string(value)] {
			labels[string(value)] = true
			plan.column.Labels = append(plan.column.Labels, string(value))
		}
	}
	if len(labels) > maxValues {
		return fmt.Errorf("%s: its column has %d values, and an enum %d at most: make it text", file.path, len(labels), maxValues)
	}
	if !known {
		return fmt.Errorf("%s: all values of the column are NULL: leave it out", file.path)
	}
	if p.isFileText() {
		drawn.data, drawn.ends = of.texts, of.ends
	}
	slices.Sort(plan.column.Labels)
	if !p.t.Variable() {
		plan.column.Plain, plan.column.ASCII, plan.column.MaxBytes = false, false, 0
	}
	plan.drawn = func(uint64) generator { return drawn }
	return nil
}

// isFileText reports whether the column's values are the bytes of the file, which are not copied.
func (p *columnPlanner) isFileText() bool {
	return p.t.Type == rows.Text || p.t.Type == rows.Char || p.t.Type == rows.Enum
}

// exact implements exact.
func (s *SpecSample) exact() (all []string) {
	file, err := readSample(s.File)
	if err != nil { // which plan says
		return nil
	}
	of := file.column(s.Column)
	if of == nil {
		return nil
	}
	for i := range file.lines {
		if !of.nulls[i] {
			all = append(all, string(of.text(i)))
		}
	}
	return all
}

// sampled draws rows of a file, all equally often. A row takes one word.
type sampled struct {
	nulls    []bool
	nullable bool    // one of them is
	numbers  []int64 // nil of texts, UUIDs and wide decimals
	data     []byte  // of these
	ends     []uint32
}

func (g *sampled) end() { g.ends = append(g.ends, uint32(len(g.data))) }

func (g *sampled) value(row uint64) []byte {
	from := uint32(0)
	if row > 0 {
		from = g.ends[row-1]
	}
	return g.data[from:g.ends[row]]
}

func (g *sampled) fill(v *rows.Vector, start uint64, first int64, n int) {
	if g.nullable && len(v.Nulls) == 0 {
		v.SetNulls(n)
	}
	state, count := at(start, first, 1), uint64(len(g.nulls))
	for i := range n {
		state += gamma
		row, _ := bits.Mul64(mix(state), count)
		null := g.nulls[row]
		if null {
			v.Nulls[i/64] |= 1 << (i % 64)
		}
		switch {
		case g.numbers != nil:
			v.Ints[i] = g.numbers[row]
		case !v.Type.InBytes():
			v.Data = append(v.Data, g.value(row)...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		case null:
			clear(v.UUID(i))
		default:
			copy(v.UUID(i), g.value(row))
		}
	}
}

// parseUUID reads a UUID in hex, with dashes or without.
func parseUUID(text string) ([]byte, error) {
	value, err := hex.DecodeString(strings.ReplaceAll(strings.Trim(text, "{}"), "-", ""))
	if err != nil || len(value) != rows.UUIDBytes {
		return nil, fmt.Errorf("%s is no UUID: write it as %s", quoted(text), UUIDText(make([]byte, rows.UUIDBytes)))
	}
	return value, nil
}

// Portable returns the spec without the folders of its samples' files, which may differ between machines: their hashes
// say what they are.
func (s *Spec) Portable() *Spec {
	if s == nil || !slices.ContainsFunc(s.Columns, func(c SpecColumn) bool { return isSample(c.Generator) }) {
		return s
	}
	other := *s
	other.Columns = slices.Clone(s.Columns)
	for i, c := range other.Columns {
		if of, is := c.Generator.(*SpecSample); is {
			bare := *of
			bare.File = filepath.Base(of.File)
			other.Columns[i].Generator = &bare
		}
	}
	return &other
}

func isSample(g Generator) bool {
	_, is := g.(*SpecSample)
	return is
}
