package sweep

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// factKeys are published figures. Points are a table as text: a line of names, of axes and quantities, then a line for
// each case, with - for what was not published.
type factKeys struct{ Source, Machine, Note, Points value }

func (p *planner) facts(keys *factKeys) *results.Facts {
	if keys == nil {
		return nil
	}
	f := &results.Facts{Source: p.expand(keys.Source), Machine: p.expand(keys.Machine), Note: p.expand(keys.Note)}
	if f.Source == "" {
		p.add(0, "facts: say where they were published, as source")
	}
	var names []string
	for line := range strings.Lines(p.expand(keys.Points)) {
		fields := strings.Fields(line)
		switch {
		case names == nil:
			names = fields
		case len(fields) != len(names):
			p.add(keys.Points.line, "facts.points: %d values stand below %d names (%s); one for each, or -, belongs here",
				len(fields), len(names), strings.TrimSpace(line))
		default:
			f.Points = append(f.Points, p.fact(names, fields, keys.Points.line))
		}
	}
	return f
}

// fact reads one line of points, and writes the names of axes with dashes.
func (p *planner) fact(names, fields []string, line int) results.Fact {
	fact := results.Fact{At: map[string]string{}, Figures: map[string]float64{}}
	for i, name := range names {
		if fields[i] == "-" {
			continue
		}
		if slices.Contains(results.Quantities(), name) {
			v, _, ok := units.Parse(fields[i])
			if !ok || v <= 0 {
				p.add(line, "facts: %s: write a number above 0, a size as 9.8MiB or a time as 18m21s", name)
			}
			fact.Figures[name] = v
			continue
		}
		valid := append(results.Quantities(), p.names...)
		if name != targetName && !isEntry(name) && !slices.Contains(valid, normal(name)) {
			p.add(line, "facts: %v", config.Unknown("flag or quantity", name, valid))
		}
		fact.At[normal(name)] = fields[i]
	}
	return fact
}
