package chart

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// radius of the glyphs.
const radius = 3

// glyph is the shape of series number n: colour alone is not seen by everybody.
func glyph(n int) draw.GlyphDrawer {
	shapes := []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{},
		polygon{{X: 0, Y: 1.4}, {X: 1.4, Y: 0}, {X: 0, Y: -1.4}, {X: -1.4, Y: 0}},
		polygon{{X: -1.2, Y: 1}, {X: 1.2, Y: 1}, {X: 0, Y: -1.2}},
		polygon{{X: -1.3, Y: .6}, {X: 1.3, Y: .6}, {X: 1.3, Y: -.6}, {X: -1.3, Y: -.6}},
		polygon{{X: -.6, Y: 1.3}, {X: .6, Y: 1.3}, {X: .6, Y: -1.3}, {X: -.6, Y: -1.3}},
	}
	return shapes[n%len(shapes)]
}

// polygon is a filled shape; its corners are in radii.
type polygon []vg.Point

// DrawGlyph makes polygon a draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for n, corner := range g {
		to := at.Add(corner.Scale(s.Radius))
		if n == 0 {
			p.Move(to)
		} else {
			p.Line(to)
		}
	}
	p.Close()
	c.SetColor(s.Color)
	c.Fill(p)
}

// mark is a ring around a glyph.
type mark struct{}

// DrawGlyph makes mark a draw.GlyphDrawer.
func (mark) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(stroke(plain, 1.5))
	var p vg.Path
	r := s.Radius + 3.5
	p.Move(vg.Point{X: at.X + r, Y: at.Y})
	p.Arc(at, r, 0, 2*math.Pi)
	p.Close()
	c.Stroke(p)
}

// upright is a stroke as high as a line.
type upright struct{}

// DrawGlyph makes upright a draw.GlyphDrawer.
func (upright) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.StrokeLine2(stroke(plain, 2), at.X, at.Y-2*s.Radius, at.X, at.Y+2*s.Radius)
}

func stroke(i ink, width vg.Length) draw.LineStyle { return draw.LineStyle{Color: i, Width: width} }

// dashes are for what others have published.
func dashes(i ink) draw.LineStyle {
	return draw.LineStyle{Color: i, Width: 1.5, Dashes: []vg.Length{4, 3}}
}
