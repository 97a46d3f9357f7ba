// Package experiment reads the plan of a sweep and lists its cells. It opens no connection and decides nothing about a
// server: a cell is a set of push's own flags.
package experiment

import (
	"time"

	"github.com/terapush/terapush/internal/record"
)

// Plan is a sweep to be done, at one scale and for one kind of target.
type Plan struct {
	Name, Title, Scale string
	// Repeats is how often every cell is measured, at least 1. WarmUp is how many pushes of a part's first cell go before
	// it and count for nothing.
	Repeats, WarmUp int
	Settle          time.Duration // between two pushes
	Limit           time.Duration // of one push; 0 is none
	Budget          time.Duration // of the whole sweep; 0 is none: what has not begun by then is skipped
	// Knee is the axis along which a row of cells ends when two values in a row bring less than 5 % over the best
	// before them; "" ends none.
	Knee string
	// Interleaved shuffles the cells of every repeat, by a seed of its own, so that a drift of the server or the machine
	// does not look like an effect. False takes them in their order.
	Interleaved bool
	Parts       []Part
}

// Part is one table of the sweep.
type Part struct {
	Name, Title string
	Push        map[string][]string // flags of every cell, by name
	Axes        []record.Axis
	Facts       *record.Facts
}

// Cell is one point of a part.
type Cell struct {
	Part, Number int
	Settings     []record.Setting    // one for each axis of the part
	Push         map[string][]string // all flags, those of the axes included; the key target is the URL
}
