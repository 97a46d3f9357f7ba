// Package results keeps what a sweep measured, makes tables and comparisons of it, and writes them in several formats.
//
// A record is one file of JSON lines: a head, then an entry for every push that ended or was skipped. A sweep that
// continues with more repeats, on another machine or with another version adds a head; the last head counts. Every line
// is on disk before the next push begins, and a line that a kill cut off is dropped. Records hold no secrets: config
// has removed them from the flags of a head, and reports never have any.
//
// Tables depend on records alone. They hold medians with their spread, knees, differing inputs and warnings; the output
// formats only show them.
package results

import (
	"slices"
	"time"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
)

// Schema names the form of a record. Fields may be added under the same name.
const Schema = "terapush.sweep/v1"

// Record is a sweep as far as it has come.
type Record struct {
	File    string // the path it was read from
	Head    Head
	Entries []Entry // in the order in which they ended, one for each push; see Latest
	// Torn is true if an incomplete last line was left out: it was cut by a kill or a power failure, or is being
	// written.
	Torn bool
}

// MaxCells bounds the cases of a sweep, and so the memory that a table of a forged record may take. At a minute each
// they take a week.
const MaxCells = 10_000

// Head is the first line of a record: what is to be done, and on which machine. A later head has the same digest.
type Head struct {
	Schema  string       `json:"schema"`
	Name    string       `json:"name"`    // of the plan
	Title   string       `json:"title"`   // one line for people
	Scale   string       `json:"scale"`   // cloud, laptop or ci; "" for a plan without scales
	Digest  string       `json:"digest"`  // see Digest; only a sweep with the same digest may continue the record
	Started time.Time    `json:"started"` // when the sweep first started
	Version string       `json:"version"` // of terapush
	Machine host.Machine `json:"machine"` // that runs terapush
	Repeats int          `json:"repeats"`
	// Precision ends the repeats of a case once the interval of its median reaches no further; 0 if all are made.
	Precision float64 `json:"precision,omitempty"`
	Limit     float64 `json:"limit_seconds,omitempty"` // of one push; 0 is none
	Parts     []Part  `json:"parts"`
}

// Part is one table of a sweep. Its cases differ in their axes only.
type Part struct {
	Name  string              `json:"name"` // "" if the plan has one part only
	Title string              `json:"title"`
	Push  map[string][]string `json:"push"` // the flags of all cases by name; targets without secrets
	// Methods are the flags of all cases of one method, by the method's name.
	Methods map[string]map[string][]string `json:"methods,omitempty"`
	Axes    []Axis                         `json:"axes"`
	Cells   int                            `json:"cells"` // the product of the axes' numbers of values
	// Excluded are the cells that the plan leaves out, rising.
	Excluded []int `json:"excluded,omitempty"`
	// Knee is the axis along which a row of cases ended once more brought nothing; "" if rows were not ended.
	Knee string `json:"knee,omitempty"`
	// Thresholds are what the cases are judged by; all have to be met.
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// Sparse parts have only the cases that entries belong to: a search never pushes the others.
	Sparse bool   `json:"sparse,omitempty"`
	Facts  *Facts `json:"facts,omitempty"` // of the article that the part reproduces
}

// Axis is one thing that changes from case to case.
type Axis struct {
	// Name is a flag's name, as in batch-rows, or set.NAME for a session variable, or target.
	Name   string   `json:"name"`
	Values []string `json:"values"` // distinct, in the order of tables and charts
	// Settings are the flags that a value brings, by the value and without secrets. Such a value may be a name only: the
	// axis need be no flag, or is among them.
	Settings map[string]map[string][]string `json:"settings,omitempty"`
}

// Setting is the value of one axis in a case.
type Setting struct {
	Axis  string `json:"axis"`
	Value string `json:"value"`
}

// Facts are published measurements of others. They are shown beside the measurements of a record and never mixed with
// them.
type Facts struct {
	Source  string `json:"source"`  // where and when it was published
	Machine string `json:"machine"` // client, server and version, as far as published
	Note    string `json:"note"`    // what was measured otherwise than here
	Points  []Fact `json:"points"`
}

// Fact is what was published about one case.
type Fact struct {
	// At names the case by axis and value, in the figures of the article; other axes are as in Facts.Machine.
	At map[string]string `json:"at"`
	// Figures are by the name of their quantity, and none is 0: what is missing was not published.
	Figures map[string]float64 `json:"figures"`
}

// Combinations returns how many combinations the values of the axes have, or more than MaxCells if they are too many.
func Combinations(axes []Axis) int {
	n := 1
	for _, a := range axes {
		n = min(n*len(a.Values), MaxCells+1) // the product may overflow
	}
	return n
}

// Combination returns combination number n of the values of the axes, from 0, the last axis fastest.
func Combination(axes []Axis, n int) Settings {
	settings := make(Settings, len(axes))
	for i, a := range slices.Backward(axes) {
		settings[i] = Setting{Axis: a.Name, Value: a.Values[n%len(a.Values)]}
		n /= len(a.Values)
	}
	return settings
}

// Status is how a push of a sweep ended.
type Status string

// The statuses.
const (
	Measured Status = "measured"
	// Limited was stopped by the time limit of a push; the rows acknowledged by then are measured.
	Limited Status = "limited"
	Failed  Status = "failed"
	// Skipped was not started: its row was past the knee, or the sweep's time was up.
	Skipped Status = "skipped"
)

// Entry is one push of a sweep.
type Entry struct {
	Part     int       `json:"part"` // an index into Head.Parts
	Cell     int       `json:"cell"` // within the part, from 0, the last axis fastest
	Repeat   int       `json:"repeat"`
	WarmUp   bool      `json:"warm_up,omitempty"` // not counted
	Settings Settings  `json:"settings"`          // one for each axis of the part
	Status   Status    `json:"status"`
	Error    string    `json:"error"` // why it failed or was skipped
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"` // of the whole push, with its preparation and proof
	// Speed is of the machine that runs terapush, as host.MeasureSpeed finds it just before and after the push, in bytes a
	// second; 0 if it was not measured. It tells a change of the machine from one of what is pushed.
	Speed  float64        `json:"machine_speed,omitempty"`
	Report *report.Report `json:"report,omitempty"` // nil if the push was not started or was refused
}

// Push identifies one push of a sweep.
type Push struct {
	Part, Cell, Repeat int
	WarmUp             bool
}

// Push returns the push that the entry belongs to.
func (e Entry) Push() Push {
	return Push{Part: e.Part, Cell: e.Cell, Repeat: e.Repeat, WarmUp: e.WarmUp}
}

// Latest returns the entry that counts for each push, in the order in which they ended: the first that was measured or
// limited, else the last that failed (--retry-failed repeats those), else the last that was skipped. Read and Open have
// applied it.
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
