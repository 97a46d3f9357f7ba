// Package analysis makes tables of records: medians with their spread, knees, what differs and what must not be
// believed. It is pure: the same records give the same tables.
package results

import (
	"github.com/terapush/terapush/internal/report"
)

// Table is one part of a sweep, or several single runs beside each other. Its lists are never nil.
type Table struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Scale  string  `json:"scale"`
	Axes   []Axis  `json:"axes"`   // all of the part; one value means that it does not vary
	Points []Point `json:"points"` // one for each cell, in the cells' order
	Facts  *Facts  `json:"facts,omitempty"`
	// Inputs are what all points share: server, settings that decide durability, dataset, sizes, machine, version.
	Inputs []Input `json:"inputs"`
	Knees  []Knee  `json:"knees"`
	// Best is the point with the highest median rate, and Smallest the one with the smallest settings within Near
	// of it: indexes into Points, -1 when none was measured.
	Best     int      `json:"best"`
	Smallest int      `json:"smallest"`
	Warnings []string `json:"warnings"`

	allInputs []Input // those that differ included
	planned   string  // the axis along which the plan wants knees; "" is none
}

// Input is one thing that a result depends on.
type Input struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Point is one cell, measured once or several times.
type Point struct {
	Settings Settings `json:"settings"`
	Status   Status   `json:"status"`  // Measured if any of its pushes was
	Error    string   `json:"error"`   // of the first that failed or was skipped
	Limited  int      `json:"limited"` // pushes that were cut by the cell's time limit, and count
	Failed   int      `json:"failed"`  // pushes that failed, and do not count

	RowsPerSecond        Sample `json:"rows_per_second"`         // of the load, until the rows were visible
	OverallRowsPerSecond Sample `json:"overall_rows_per_second"` // with the time for filling buffers
	BytesPerSecond       Sample `json:"bytes_per_second"`        // of column data
	Seconds              Sample `json:"seconds"`                 // of the load, until the rows were visible
	StageSeconds         Sample `json:"stage_seconds"`           // uploading, of staged methods
	CommitSeconds        Sample `json:"commit_seconds"`
	VisibleSeconds       Sample `json:"visible_seconds"` // from the last ack until the rows were visible
	P50                  Sample `json:"batch_p50_seconds"`
	P90                  Sample `json:"batch_p90_seconds"`
	P99                  Sample `json:"batch_p99_seconds"`
	Max                  Sample `json:"batch_max_seconds"`
	CPUPerGiB            Sample `json:"cpu_seconds_per_gib"`  // client CPU seconds while rows moved, for a GiB of column data
	BytesPerRow          Sample `json:"stored_bytes_per_row"` // stored
	Retries              int64  `json:"retries"`              // of all its pushes

	Fact *Fact `json:"fact,omitempty"` // what was published about this cell
	// Typical is the report of the push with the median rate; nil if none was measured.
	Typical *report.Report `json:"-"`
	// Pushes are those that count, in the order of their repeats.
	Pushes []*report.Report `json:"-"`

	unproven bool // a push's proof of arrival failed
}

// Sample is one quantity of a point's pushes.
type Sample struct {
	N      int       `json:"n"` // 0: not measured
	Median float64   `json:"median"`
	Low    float64   `json:"low"` // the smallest
	High   float64   `json:"high"`
	Values []float64 `json:"values"` // of the pushes that have it, in the order of their repeats
}

// Knee is where more of an axis stops paying, in one row of cells: the first value within Near of the row's best.
type Knee struct {
	Axis string   `json:"axis"`
	Row  Settings `json:"row"`  // the other axes
	At   string   `json:"at"`   // the axis's value
	Best string   `json:"best"` // where the row is fastest
	// Reached is false where At is the last value that was measured: more may still pay.
	Reached bool `json:"reached"`
}
