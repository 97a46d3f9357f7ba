// Package experiment reads the plan of a sweep and lists its cells. It opens no connection and decides nothing about a
// server: a cell is a set of push's own flags.
//
// A plan is a YAML file, described in docs/SWEEPS.md. Parse reads it, lays the overrides of a scale and of the target's
// scheme over it, and says everything that is wrong with it at once. The plans that come with terapush are presets.
package sweep

import (
	"maps"
	"time"

	"github.com/terapush/terapush/internal/record"
)

// Plan is a sweep to be done, at one scale and for one kind of target.
type Plan struct {
	Name, Title string
	Scale       string // DefaultScale where none was asked for; "" where the plan has no scales and none was asked for
	// Repeats is how often every cell is measured, at least 1. WarmUp is how many pushes of a part's first cell go before
	// it and count for nothing.
	Repeats, WarmUp int
	Settle          time.Duration // between two pushes
	Limit           time.Duration // of one push; 0 is none
	Budget          time.Duration // of the whole sweep; 0 is none: what has not begun by then is skipped
	// Knee is the axis along which a row of cells ends when two values in succession are no better than the best
	// before them; "" ends none. Its values are numbers, sizes or durations that rise. Parts without this axis have no rows
	// that end.
	Knee string
	// Interleaved shuffles the cells of every repeat, by a seed of its own, so that a drift of the server or the machine
	// does not look like an effect. A part with the knee's axis is the exception: it goes up that axis, with all repeats of
	// all rows at one value before the next value. A drift falls on all rows alike then, but it looks like an effect of that
	// axis, however many repeats there are. False takes the cells in their order.
	Interleaved bool
	Parts       []Part // at least one
}

// Part is one table of the sweep.
type Part struct {
	Name, Title string // Name is "" when the plan has one table only
	// Push holds the flags of every cell by name, written with dashes. Two kinds of name are no flag: target is the URL as
	// it was given, which may hold a password, and set.NAME is the session variable NAME. A target that is an axis, or
	// that nobody gave, is missing.
	Push map[string][]string
	// Axes have no name that is in Push, and the values of an axis target are without secrets.
	Axes  []record.Axis
	Facts *record.Facts
	// Methods holds flags for the cells of one method alone, by the method's name. They stand for those of Push.
	Methods map[string]map[string][]string

	targets []string // the values of an axis target as they were given
}

// Case is one point of a part.
type Case struct {
	Setup        // its push, once New has made it
	Part, Number int
	Settings     []record.Setting    // one for each axis of the part, fit for a record
	Push         map[string][]string // all flags as in Part.Push, those of the axes included; the cell's own
}

// Count is the number of cells of the part.
func (p *Part) Count() int {
	n := 1
	for _, a := range p.Axes {
		n *= len(a.Values)
	}
	return n
}

// Cells lists the cells of all parts, part by part, each in the order of its axes' values, the last axis fastest.
func (p Plan) Cases() []Case {
	var cells []Case
	for i := range p.Parts {
		for n := range p.Parts[i].Count() {
			cells = append(cells, p.Parts[i].caseAt(i, n))
		}
	}
	return cells
}

func (p *Part) caseAt(part, number int) Case {
	c := Case{Part: part, Number: number, Settings: make([]record.Setting, len(p.Axes)), Push: maps.Clone(p.Push)}
	if c.Push == nil {
		c.Push = make(map[string][]string)
	}
	for i := len(p.Axes) - 1; i >= 0; i-- {
		axis := p.Axes[i]
		at := number % len(axis.Values)
		number /= len(axis.Values)
		value := axis.Values[at]
		c.Settings[i] = record.Setting{Axis: axis.Name, Value: value}
		if axis.Name == targetName && p.targets != nil {
			value = p.targets[at]
		}
		c.Push[axis.Name] = []string{value}
	}
	if method := c.Push[methodFlag]; len(method) == 1 {
		maps.Copy(c.Push, p.Methods[method[0]])
	}
	return c
}
