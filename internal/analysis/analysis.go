// Package analysis makes tables of records: medians with their spread, knees, what differs and what must not be
// believed. It is pure: the same records give the same tables.
package analysis

import (
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

// Table is one part of a sweep, or several single runs beside each other.
type Table struct {
	Name, Title string
	Scale       string
	Axes        []record.Axis // all of the part; one value means that it does not vary
	Points      []Point       // one for each cell, in the cells' order
	Facts       *record.Facts
	// Inputs are what all points share: server, settings that decide durability, dataset, sizes, machine, version.
	Inputs   []Input
	Knees    []Knee
	Warnings []string
}

// Input is one thing that a result depends on.
type Input struct{ Name, Value string }

// Point is one cell, measured once or several times.
type Point struct {
	Settings []record.Setting
	Status   record.Status // Measured if any of its pushes was
	Error    string        // of the first that failed
	Failed   int           // pushes that failed

	RowsPerSecond        Sample // of the load, until the rows were visible
	OverallRowsPerSecond Sample // with the time for filling buffers
	BytesPerSecond       Sample // of column data
	Seconds              Sample // of the load, until the rows were visible
	StageSeconds         Sample // uploading, of staged methods
	CommitSeconds        Sample
	VisibleSeconds       Sample // from the last ack until the rows were visible
	P50, P90, P99, Max   Sample // seconds a batch
	CPUPerGiB            Sample // client CPU seconds while rows moved, for a GiB of column data
	BytesPerRow          Sample // stored
	Retries              int64  // of all its pushes

	Fact *record.Fact // what was published about this cell
	// Typical is the report of the push with the median rate; nil if none was measured.
	Typical *report.Report
}

// Sample is one quantity of a point's pushes.
type Sample struct {
	N         int // 0: not measured
	Median    float64
	Low, High float64 // the smallest and the largest
}

// Knee is where more of an axis stops paying, in one row of cells: the first value within 5 % of the row's best.
type Knee struct {
	Axis string
	Row  []record.Setting // the other axes
	At   string           // the axis's value
	Best string
}
