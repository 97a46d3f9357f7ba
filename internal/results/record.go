// Package results keeps what a sweep measured, makes tables and comparisons of it, and shows them.
//
// A sweep leaves a record behind: one file of JSON lines, a head and then an entry for every push that ended or was
// skipped. Where a sweep went on with more repeats, on another machine or by another version, another head stands
// between the entries: the last one counts for the sweep, and the one above an entry says who pushed it. Every line
// is on disk before the next push begins; a line that a kill cut off is dropped. No secret can get in: a head holds
// flags that config has already taken the secrets out of, and an entry holds a report, which never has any.
//
// Tables are made of records alone, on any machine and at any later time: medians with their spread, knees, what
// differs and what must not be believed. Every output shows tables and decides nothing itself.
package results

import (
	"time"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
)

// Schema names the form of a record. Fields may be added under the same name.
const Schema = "terapush.sweep/v1"

// Record is a whole sweep, or what there is of it.
type Record struct {
	File    string // that it was read from; it tells records apart that stand side by side
	Head    Head
	Entries []Entry // in the order in which they ended, one for each push as Latest has it
	// Torn is true where the last line is not whole and was left out: a kill or a power failure cut it off, or a sweep
	// that is under way is writing it.
	Torn bool
}

// MaxCells is the most that all parts of a sweep may have together. A record is read by anyone, and whoever reads it
// makes tables of all cells: what a few bytes claim must not use up the memory. At a minute each it is a week.
const MaxCells = 10_000

// Head is the first line of a record: what was to be done, and on which machine. One that stands between entries has
// the same digest, and parts of the same shape.
type Head struct {
	Schema  string       `json:"schema"`
	Name    string       `json:"name"`    // of the plan
	Title   string       `json:"title"`   // one line for people
	Scale   string       `json:"scale"`   // cloud, laptop or ci; "" for a plan without scales
	Digest  string       `json:"digest"`  // of all that the cells are told: only a sweep of the same may go on with it
	Started time.Time    `json:"started"` // when the sweep was begun, whoever went on with it later
	Version string       `json:"version"` // of terapush
	Machine host.Machine `json:"machine"` // that the pushes ran on
	Repeats int          `json:"repeats"`
	Limit   float64      `json:"limit_seconds,omitempty"` // of one push; 0 is none
	Parts   []Part       `json:"parts"`
}

// Part is one table of a sweep: cells that differ by their axes and by nothing else.
type Part struct {
	Name  string              `json:"name"` // "" when the plan has one part only
	Title string              `json:"title"`
	Push  map[string][]string `json:"push"` // the flags that all cells share, by name; targets without secrets
	// Methods are flags that all cells of one method share and others do not have so, by the method's name.
	Methods map[string]map[string][]string `json:"methods,omitempty"`
	Axes    []Axis                         `json:"axes"`
	Cells   int                            `json:"cells"` // the product of the axes' numbers of values
	// Knee is the axis along which rows of cells ended where more brought nothing; "" for a part without such rows.
	Knee string `json:"knee,omitempty"`
	// Sparse parts have those cells alone that entries are of: a search was never to push the others.
	Sparse bool   `json:"sparse,omitempty"`
	Facts  *Facts `json:"facts,omitempty"` // of the article that the part reproduces
}

// Axis is one thing that changes from cell to cell.
type Axis struct {
	// Name is a flag's name, as in batch-rows, or set.NAME for a session variable, or target.
	Name   string   `json:"name"`
	Values []string `json:"values"` // at least one, none twice, in the order of tables and charts
}

// Setting is the value that one axis has in a cell.
type Setting struct {
	Axis  string `json:"axis"`
	Value string `json:"value"`
}

// Facts are what somebody else measured and published: they stand beside what is measured here, and are never mixed
// with it.
type Facts struct {
	Source  string `json:"source" yaml:"source"`   // where and when it was published
	Machine string `json:"machine" yaml:"machine"` // client, server and version, as far as they are told
	Note    string `json:"note" yaml:"note"`       // how the figures were come by, where that differs from here
	Points  []Fact `json:"points" yaml:"points"`
}

// Fact is one published figure, or several of one cell; 0 is not published.
type Fact struct {
	// At names the cell by axis and value, in the article's own figures; axes that it does not name are as in
	// Facts.Machine.
	At             map[string]string `json:"at" yaml:"at"`
	RowsPerSecond  float64           `json:"rows_per_second" yaml:"rows_per_second"` // of the load alone
	BytesPerSecond float64           `json:"bytes_per_second" yaml:"bytes_per_second"`
	// OverallRowsPerSecond counts the time for making rows as well.
	OverallRowsPerSecond float64 `json:"overall_rows_per_second" yaml:"overall_rows_per_second"`
	Seconds              float64 `json:"seconds" yaml:"seconds"`
}

// Status is how a cell's push ended, for the tables.
type Status string

// The statuses.
const (
	Measured Status = "measured"
	// Limited was stopped by the cell's time limit: what was acknowledged by then is measured.
	Limited Status = "limited"
	Failed  Status = "failed"
	// Skipped was not begun: its row was past the knee, or the sweep's time was up.
	Skipped Status = "skipped"
)

// Entry is one push of a sweep.
type Entry struct {
	Part     int            `json:"part"` // an index into Head.Parts
	Cell     int            `json:"cell"` // within the part, from 0, the last axis fastest
	Repeat   int            `json:"repeat"`
	WarmUp   bool           `json:"warm_up,omitempty"` // counts for nothing
	Settings []Setting      `json:"settings"`          // one for each axis of the part
	Status   Status         `json:"status"`
	Error    string         `json:"error"` // why it failed or was skipped
	Started  time.Time      `json:"started"`
	Seconds  float64        `json:"seconds"`          // from beginning to end, everything included
	Report   *report.Report `json:"report,omitempty"` // nil when the push was not begun or was refused
	// Version and Machine are those of the head above the entry, filled in by whoever reads the record: of a sweep
	// that was gone on with elsewhere they differ between entries. They are zero for the report of a single push.
	Version string       `json:"-"`
	Machine host.Machine `json:"-"`
}

// Push names one push of a sweep.
type Push struct {
	Part, Cell, Repeat int
	WarmUp             bool
}

// Push returns which push the entry is of.
func (e Entry) Push() Push {
	return Push{Part: e.Part, Cell: e.Cell, Repeat: e.Repeat, WarmUp: e.WarmUp}
}

// Latest returns the entries that count, one for each push, in the order in which they ended. It is the one rule for
// everyone who reads entries:
//
//   - The first that was measured or limited counts. It is never done again, so a second one is not the sweep's own.
//   - Of a push that only failed the last failure counts: one that is done again (--retry-failed) takes the place of the
//     one before.
//   - A push that was only ever skipped counts as it was skipped last: why it is missing is what the last process said.
//
// Records that Read and Open return hold no others.
func (r Record) Latest() []Entry {
	counts := make(map[Push]int, len(r.Entries))
	for i, e := range r.Entries {
		was, known := counts[e.Push()]
		if !known || r.Entries[was].Status == Skipped || r.Entries[was].Status == Failed && e.Status != Skipped {
			counts[e.Push()] = i
		}
	}
	var latest []Entry
	for i, e := range r.Entries {
		if counts[e.Push()] == i {
			latest = append(latest, e)
		}
	}
	return latest
}
