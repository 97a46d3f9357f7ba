package chart

import (
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is parts of wholes, or plain quantities: a bar for each row, its name above it.
type Bars struct {
	Parts []string // names of the parts, for the legend, which leaves out those too short to be seen; none has no legend
	Rows  []Bar
}

// Bar is one row.
type Bar struct {
	Name  string
	Note  string    // at the right end of the name's line: the figure
	Parts []float64 // one for each of Bars.Parts; what is not positive has no length
	// Published is where somebody else's figure lies on the same scale; 0 is none.
	Published float64
	// Ceiling is a value on the same scale that the bar cannot exceed; 0 is none. One far above all bars is not drawn.
	Ceiling float64
}

const (
	barHeight = 12.0
	barRow    = line + barHeight + margin
)

// Draw draws the bars. The longest is as wide as the drawing.
func (b Bars) Draw(f Frame) []byte {
	longest := b.longest()
	if longest == 0 {
		return f.start(2*line, "", nil).nothing()
	}
	d := f.start(float64(len(b.Rows))*barRow, "", b.legend())
	y := d.body.Max.Y
	for _, row := range b.Rows {
		right := d.style(plain)
		right.XAlign = draw.XRight
		base := y - fontSize - 1
		d.body.FillText(right, vg.Point{X: d.body.Max.X, Y: base}, row.Note)
		name := fit(row.Name, d.width-width(row.Note)-2*margin)
		d.body.FillText(d.style(plain), vg.Point{X: d.body.Min.X, Y: base}, name)
		b.bar(d, row, y-vg.Length(line), float64(d.body.Max.X-d.body.Min.X)/longest)
		y -= vg.Length(barRow)
	}
	return d.finish()
}

// bar is drawn over a bed of the whole width, so that a short one is seen as short.
func (b Bars) bar(d *drawing, row Bar, top vg.Length, scale float64) {
	bottom := top - barHeight
	rectangle(d.body, faint, d.body.Min.X, bottom, d.body.Max.X, top)
	x := d.body.Min.X
	for n, part := range row.Parts {
		if long := vg.Length(part * scale); drawable(part, true) && long >= 0.1 {
			rectangle(d.body, hue(n), x, bottom, x+long, top)
			x += long
		}
	}
	if drawable(row.Published, true) {
		x := d.body.Min.X + vg.Length(row.Published*scale)
		d.body.StrokeLine2(stroke(plain, 2), x, bottom-3, x, top+3)
	}
	if over := placed(row.ceilings(), b.highest(), false); len(over.drawn) > 0 {
		x := d.body.Min.X + vg.Length(row.Ceiling*scale)
		d.body.StrokeLine2(dashes(plain), x, bottom-3, x, top+3)
	}
}

func (row Bar) ceilings() []Ceiling { return []Ceiling{{Y: row.Ceiling}} }

// longest is what the width of the drawing stands for.
func (b Bars) longest() float64 {
	highest := b.highest()
	longest := highest
	for _, row := range b.Rows {
		longest = placed(row.ceilings(), highest, false).top(longest)
	}
	return longest
}

// highest is the largest figure of all bars.
func (b Bars) highest() (highest float64) {
	for _, row := range b.Rows {
		sum := 0.0
		for _, part := range row.Parts {
			if drawable(part, true) {
				sum += part
			}
		}
		if drawable(sum, true) {
			highest = max(highest, sum)
		}
		if drawable(row.Published, true) {
			highest = max(highest, row.Published)
		}
	}
	return highest
}

func (b Bars) legend() (entries []entry) {
	longest := b.longest()
	for n, name := range b.Parts {
		seen := slices.ContainsFunc(b.Rows, func(row Bar) bool { return n < len(row.Parts) && row.Parts[n] >= longest/200 })
		if len(b.Parts) > 1 && seen {
			entries = append(entries, entry{name: name, ink: hue(n), box: true})
		}
	}
	if slices.ContainsFunc(b.Rows, func(row Bar) bool { return drawable(row.Published, true) }) {
		entries = append(entries, entry{name: "published", ink: plain, glyph: upright{}})
	}
	if slices.ContainsFunc(b.Rows, func(row Bar) bool { return len(placed(row.ceilings(), b.highest(), false).drawn) > 0 }) {
		entries = append(entries, entry{name: "what this client can do", ink: plain, line: true, dashed: true})
	}
	return entries
}
