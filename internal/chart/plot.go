package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plot is one without a frame: a line below, and labels left of a grid.
func (d *drawing) plot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding = 0
		axis.LineStyle = stroke(quiet, 1)
		axis.Tick.LineStyle = stroke(quiet, 1)
		axis.Tick.Length = 4
		axis.Label.Padding = 4
		ticks, label := d.style(quiet), d.style(quiet)
		ticks.XAlign, ticks.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		label.XAlign, label.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		axis.Tick.Label, axis.Label.TextStyle = ticks, label
	}
	p.Y.Width, p.Y.Tick.Length = 0, 0
	return p
}

// across sets the horizontal axis. A single value stands in its middle.
func (d *drawing) across(p *plot.Plot, a Axis, low, high float64) {
	p.X.Label.Text = fit(a.Label, d.width-2*margin)
	if a.Log {
		p.X.Scale = plot.LogScale{}
	}
	if low == high {
		low, high = low/2, high*1.5
		if low == 0 {
			low, high = -1, 1
		}
	}
	p.X.Min, p.X.Max = low, high
}

func horizontalGrid() plot.Plotter { return &plotter.Grid{Horizontal: stroke(faint, 1)} }

func verticalGrid() plot.Plotter { return &plotter.Grid{Vertical: stroke(faint, 1)} }

// drawn is a plotter made of a function.
type drawn func(c draw.Canvas, p *plot.Plot)

// Plot makes drawn a plot.Plotter.
func (f drawn) Plot(c draw.Canvas, p *plot.Plot) { f(c, p) }

// rectangle fills one.
func rectangle(c draw.Canvas, i color.Color, left, bottom, right, top vg.Length) {
	c.SetColor(i)
	c.Fill(vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}.Path())
}
