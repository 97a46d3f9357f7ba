package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

type factKeys struct {
	Source, Machine, Note value
	Points                points
}

// points are a table as text: a line of names, of axes and quantities, then a line for each case, with - for what was
// not published.
type points []map[string]value

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *points) UnmarshalYAML(n ast.Node) error {
	table, ok := n.(*ast.LiteralNode)
	if !ok {
		return unexpected(n, "a table as text (points: |) belongs")
	}
	*p = nil
	var head []string
	for line := range strings.Lines(table.Value.Value) {
		fields := strings.Fields(line)
		if head == nil {
			head = fields
			continue
		}
		if len(fields) != len(head) {
			return unexpected(n, fmt.Sprintf("%d values stand below %d names (%s); one for each, or -, belongs",
				len(fields), len(head), strings.TrimSpace(line)))
		}
		point := map[string]value{}
		for i, name := range head {
			if fields[i] != "-" {
				point[name] = value{text: fields[i], line: lineOf(n)}
			}
		}
		*p = append(*p, point)
	}
	return nil
}

// facts expands variables, reads figures, and writes the names of axes with dashes.
func (p *planner) facts(keys *factKeys) *results.Facts {
	if keys == nil {
		return nil
	}
	f := &results.Facts{Source: p.expand(keys.Source), Machine: p.expand(keys.Machine), Note: p.expand(keys.Note)}
	if f.Source == "" {
		p.add(0, "facts: say where they were published, as source")
	}
	for _, point := range keys.Points {
		fact := results.Fact{At: map[string]string{}, Figures: map[string]float64{}}
		for _, name := range slices.Sorted(maps.Keys(point)) {
			value := point[name]
			if !slices.Contains(results.Quantities(), name) {
				if valid := append(results.Quantities(), p.names...); name != targetName && !isEntry(name) &&
					!slices.Contains(valid, normal(name)) {
					p.add(value.line, "facts: %v", config.Unknown("flag or quantity", name, valid))
				}
				fact.At[normal(name)] = p.expand(value)
				continue
			}
			v, _, ok := units.Parse(p.expand(value))
			if !ok || v <= 0 {
				p.add(value.line, "facts: %s: write a number above 0, a size as 9.8MiB or a time as 18m21s", name)
			}
			fact.Figures[name] = v
		}
		f.Points = append(f.Points, fact)
	}
	return f
}
