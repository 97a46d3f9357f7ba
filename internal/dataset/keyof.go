package dataset

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// KeyOf names the row of a number by its key, as a condition of SQL finds it: id = 777, or tick = 3 AND device = 7.
func KeyOf(d Dataset, number int64) string {
	s := d.Schema()
	block := rows.NewBlock(s)
	block.Reset(1)
	d.Derive(block, number)
	all := make([]string, len(s.Number))
	for i, term := range s.Number {
		c := s.Columns[term.Column]
		all[i] = c.Name + " = " + literal(c, &block.Columns[term.Column])
	}
	return strings.Join(all, " AND ")
}

// KeysOf names the rows of a range of numbers by their keys, if a range of these has no other rows of the run's.
// Otherwise it gives their numbers, and the key of the first.
func KeysOf(d Dataset, first, last int64) string {
	if n := d.Schema().Number; len(n) == 1 && n[0].Ordered() {
		name := d.Schema().Columns[n[0].Column].Name
		value := func(number int64) string { return strings.TrimPrefix(KeyOf(d, number), name+" = ") }
		return fmt.Sprintf("%s %s to %s", name, value(first), value(last))
	}
	return fmt.Sprintf("rows %d to %d, from %s", first, last, KeyOf(d, first))
}

// literal writes the only value of a vector as SQL does.
func literal(c rows.Column, v *rows.Vector) string {
	switch {
	case c.Type == rows.UUID:
		return "'" + UUIDText(v.UUID(0)) + "'"
	case c.Type.Variable():
		return "'" + string(v.Value(0)) + "'"
	case c.Type.IsInteger():
		return c.Text(v.Ints[0])
	}
	return "'" + c.Text(v.Ints[0]) + "'"
}
