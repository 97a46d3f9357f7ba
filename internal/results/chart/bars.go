package chart

import "slices"

// Bars shows quantities, or the parts of wholes: a bar for each row, below its name.
type Bars struct {
	Parts []string // for the legend, which omits parts too short to be seen
	Rows  []Bar
}

// Bar is one row.
type Bar struct {
	Name      string
	Note      string    // the figure, at the right
	Parts     []float64 // one for each of Bars.Parts
	Published float64   // a figure of others on the same scale; 0 is none
	Ceiling   float64   // what the bar cannot exceed; 0 is none. One far above all bars is not drawn.
}

const (
	barHeight = 12.0
	barRow    = line + barHeight + margin
	gap       = 1.0 // between parts, which colours alone may not tell apart
)

// Draw returns the drawing. The longest bar has its width.
func (b Bars) Draw(f Frame) []byte {
	rows, longest := b.drawable()
	if longest == 0 {
		return f.start(2*line, "", nil).nothing()
	}
	d := f.start(float64(len(rows))*barRow, "", b.legend(rows, longest))
	x := scale{high: longest, from: 1, to: f.Width - 1}
	for n, row := range rows {
		top := d.top + float64(n)*barRow
		d.text(plain+" end", x.to, top+fontSize+1, row.Note)
		d.text(plain, x.from, top+fontSize+1, fit(row.Name, f.Width-width(row.Note)-2*margin))
		row.draw(d, x, top+line)
	}
	return d.finish()
}

// drawable returns the rows with 0 for what is not on the scale, and the end of the scale: the longest figure or
// ceiling.
func (b Bars) drawable() (rows []Bar, longest float64) {
	orZero := func(v float64) float64 {
		if drawable(v, true) {
			return v
		}
		return 0
	}
	for _, row := range b.Rows {
		sum := 0.0
		row.Parts = slices.Clone(row.Parts)
		for n, part := range row.Parts {
			row.Parts[n] = orZero(part)
			sum += row.Parts[n]
		}
		row.Published, row.Ceiling = orZero(row.Published), orZero(row.Ceiling)
		longest = max(longest, sum, row.Published)
		rows = append(rows, row)
	}
	highest := longest
	for n, row := range rows {
		if row.Ceiling > farAbove*highest {
			rows[n].Ceiling = 0
		}
		longest = max(longest, rows[n].Ceiling)
	}
	return rows, longest
}

// draw draws a bar on a ground of the whole width.
func (row Bar) draw(d *drawing, x scale, top float64) {
	bottom := top + barHeight
	d.rectangle(faint, x.from, top, x.to, bottom)
	sum := 0.0
	for n, part := range row.Parts {
		if from, to := x.at(sum), x.at(sum+part); to-from >= 0.1 {
			d.rectangle(hue(n), from, top, max(to-gap, from+0.1), bottom)
			sum += part
		}
	}
	upright := func(look stroke, v float64) {
		if v > 0 {
			d.line(look, point{x.at(v), top - 3}, point{x.at(v), bottom + 3})
		}
	}
	upright(solid(plain, 2), row.Published)
	upright(dashes(plain), row.Ceiling)
}

func (b Bars) legend(rows []Bar, longest float64) (entries []entry) {
	for n, name := range b.Parts {
		seen := func(row Bar) bool { return n < len(row.Parts) && row.Parts[n] >= longest/200 }
		if len(b.Parts) > 1 && slices.ContainsFunc(rows, seen) {
			entries = append(entries, entry{name: name, ink: hue(n), glyph: box})
		}
	}
	if slices.ContainsFunc(rows, func(row Bar) bool { return row.Published > 0 }) {
		entries = append(entries, entry{name: "published", ink: plain, glyph: upright})
	}
	if slices.ContainsFunc(rows, func(row Bar) bool { return row.Ceiling > 0 }) {
		entries = append(entries, entry{name: "what this client can do", line: dashes(plain)})
	}
	return entries
}
