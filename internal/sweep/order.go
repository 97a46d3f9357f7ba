package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/experiment"
	"github.com/terapush/terapush/internal/record"
)

// step is one push of a sweep.
type step struct {
	cell   experiment.Cell
	repeat int
	warmUp bool
	row    string // names the cells that differ along the knee's axis only; "" where no row ends early
}

func (s step) push() record.Push {
	return record.Push{Part: s.cell.Part, Cell: s.cell.Number, Repeat: s.repeat, WarmUp: s.warmUp}
}

// place names the cell.
func (s step) place() [2]int { return [2]int{s.cell.Part, s.cell.Number} }

// order lists all pushes of a sweep: part by part, warm-ups before the part's first repeat. In the first repeat the rows
// go up the knee's axis side by side, so that each can be ended where it stops paying, and a drift of the server falls on
// all of them alike; the repeats behind it are shuffled as a whole. It is a function of its arguments: a sweep that is
// gone on with takes the order it had, and one repeat more changes nothing about those before.
func order(p experiment.Plan, cells []experiment.Cell, digest string) []step {
	var all []step
	for part := range p.Parts {
		own := slices.DeleteFunc(slices.Clone(cells), func(c experiment.Cell) bool { return c.Part != part })
		if len(own) == 0 {
			continue
		}
		for i := range p.WarmUp {
			all = append(all, step{cell: own[0], repeat: i, warmUp: true})
		}
		for repeat := range p.Repeats {
			dice := seeded(digest, p.Parts[part].Name, repeat)
			for _, c := range arrange(p, own, repeat, dice) {
				all = append(all, step{cell: c, repeat: repeat, row: row(c, p.Knee)})
			}
		}
	}
	return all
}

func seeded(digest, part string, repeat int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", digest, part, repeat))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// arrange is the order of one repeat of a part's cells.
func arrange(p experiment.Plan, cells []experiment.Cell, repeat int, dice *rand.Rand) []experiment.Cell {
	if !p.Interleaved {
		return cells
	}
	cells = slices.Clone(cells)
	dice.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	if values := along(p, cells); repeat == 0 && len(values) > 0 {
		slices.SortStableFunc(cells, func(a, b experiment.Cell) int {
			return slices.Index(values, value(a, p.Knee)) - slices.Index(values, value(b, p.Knee))
		})
	}
	return cells
}

// along lists the values of the knee's axis in the cells' part, none where the part has no such axis.
func along(p experiment.Plan, cells []experiment.Cell) []string {
	for _, a := range p.Parts[cells[0].Part].Axes {
		if a.Name == p.Knee {
			return a.Values
		}
	}
	return nil
}

// value is what the axis is in the cell, "" where there is no such axis.
func value(c experiment.Cell, axis string) string {
	for _, s := range c.Settings {
		if s.Axis == axis {
			return s.Value
		}
	}
	return ""
}

// row names the cells that differ from this one along the axis only.
func row(c experiment.Cell, axis string) string {
	if value(c, axis) == "" {
		return ""
	}
	name := fmt.Sprint(c.Part)
	for _, s := range c.Settings {
		if s.Axis != axis {
			name += fmt.Sprintf(" %s=%q", s.Axis, s.Value)
		}
	}
	return name
}

// The knee: so many values in succession that bring less than this over the best before them.
const (
	gain     = 1.05
	flatStop = 2
)

// climb is how far a row has come.
type climb struct {
	best float64
	flat int
}

// add takes the rate of the row's next value. One that failed says nothing about the knee.
func (c *climb) add(rate float64) {
	switch {
	case rate <= 0:
		return
	case rate < c.best*gain:
		c.flat++
	default:
		c.flat = 0
	}
	c.best = max(c.best, rate)
}

func (c *climb) over() bool { return c.flat >= flatStop }

// pastKnee says why a cell was skipped.
func pastKnee(axis string) string {
	return fmt.Sprintf("past the knee: two values of %s in succession brought less than 5 %% over the best before them", axis)
}

// Describe is a cell's settings in one line.
func Describe(settings []record.Setting) string {
	words := make([]string, len(settings))
	for i, s := range settings {
		words[i] = s.Axis + " " + s.Value
	}
	return strings.Join(words, ", ")
}
