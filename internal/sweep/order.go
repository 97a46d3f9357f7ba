package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/terapush/terapush/internal/record"
)

// step is one push of a sweep.
type step struct {
	cell   Case
	repeat int
	warmUp bool
	row    string // names the cells that differ along the knee's axis only; "" where no row ends early
}

func (s step) push() record.Push {
	return record.Push{Part: s.cell.Part, Cell: s.cell.Number, Repeat: s.repeat, WarmUp: s.warmUp}
}

// order lists all pushes of a sweep: part by part, warm-ups before the part's first cell, then all repeats, each shuffled.
// Where the part has the knee's axis, its rows go up side by side: all repeats of one value of all rows come before the
// next value, so that a row is ended by medians and not by the luck of one push, and a drift of the server falls on all
// rows alike. It is a function of its arguments: a sweep that is gone on with takes the order it had, and one repeat more
// changes nothing about the order of those before.
func order(p Plan, cells []Case, digest string) []step {
	var all []step
	for part := range p.Parts {
		own := slices.DeleteFunc(slices.Clone(cells), func(c Case) bool { return c.Part != part })
		if len(own) == 0 {
			continue
		}
		for i := range p.WarmUp {
			all = append(all, step{cell: own[0], repeat: i, warmUp: true})
		}
		for rung, group := range rungs(p, own) {
			for repeat := range p.Repeats {
				if p.Interleaved {
					group = slices.Clone(group)
					dice := seeded(digest, p.Parts[part].Name, repeat, rung)
					dice.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
				}
				for _, c := range group {
					all = append(all, step{cell: c, repeat: repeat, row: row(c, p.Knee)})
				}
			}
		}
	}
	return all
}

func seeded(digest, part string, repeat, rung int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", digest, part, repeat, rung))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// rungs are a part's cells as they are done: what is in one has all its repeats before the next begins. A part whose rows
// do not end has one. In order, every cell is one: its repeats follow each other, and the cells stay as they stand.
func rungs(p Plan, cells []Case) [][]Case {
	values := along(p, cells)
	if len(values) == 0 {
		return [][]Case{cells}
	}
	var all [][]Case
	if !p.Interleaved {
		for _, c := range cells {
			all = append(all, []Case{c})
		}
		return all
	}
	for _, v := range values {
		all = append(all, slices.DeleteFunc(slices.Clone(cells), func(c Case) bool { return value(c, p.Knee) != v }))
	}
	return all
}

// along lists the values of the knee's axis in the cells' part, none where the part has no such axis.
func along(p Plan, cells []Case) []string {
	for _, a := range p.Parts[cells[0].Part].Axes {
		if a.Name == p.Knee {
			return a.Values
		}
	}
	return nil
}

// value is what the axis is in the cell, "" where there is no such axis.
func value(c Case, axis string) string { return record.Settings(c.Settings).Value(axis) }

// row names the cells that differ from this one along the axis only.
func row(c Case, axis string) string {
	if value(c, axis) == "" {
		return ""
	}
	return fmt.Sprintf("%d %q", c.Part, record.Settings(c.Settings).Without(axis))
}
