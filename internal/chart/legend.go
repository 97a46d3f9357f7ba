package chart

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// entry is one line of a legend.
type entry struct {
	name   string
	ink    ink
	dashed bool
	line   bool
	glyph  draw.GlyphDrawer // nil is none
	box    bool

	x float64 // by layOut
}

const (
	swatch = 18.0 // the sample before a name
	apart  = 14.0 // between two entries
)

// layOut puts entries into rows that are not wider than the room. A name that is wider by itself is shortened.
func layOut(entries []entry, room float64) (rows [][]entry) {
	x := room
	for _, e := range entries {
		e.name = fit(e.name, room-swatch-4)
		w := swatch + 4 + width(e.name)
		if x > 0 && x+w > room {
			rows, x = append(rows, nil), 0
		}
		e.x = x
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		x += w + apart
	}
	return rows
}

// draw puts an entry at the height of its middle.
func (e entry) draw(d *drawing, c draw.Canvas, y vg.Length) {
	from, to := vg.Length(e.x+1), vg.Length(e.x+swatch-1)
	if e.line {
		s := stroke(e.ink, 2)
		if e.dashed {
			s = dashes(e.ink)
		}
		c.StrokeLine2(s, from, y, to, y)
	}
	if e.box {
		const half = 5
		c.SetColor(e.ink)
		mid := (from + to) / 2
		c.Fill(vg.Rectangle{Min: vg.Point{X: mid - half, Y: y - half}, Max: vg.Point{X: mid + half, Y: y + half}}.Path())
	}
	if e.glyph != nil {
		c.DrawGlyph(draw.GlyphStyle{Color: e.ink, Radius: radius, Shape: e.glyph}, vg.Point{X: (from + to) / 2, Y: y})
	}
	s := d.style(plain)
	s.YAlign = draw.YCenter
	c.FillText(s, vg.Point{X: vg.Length(e.x + swatch + 4), Y: y + s.FontExtents().Descent}, e.name)
}
