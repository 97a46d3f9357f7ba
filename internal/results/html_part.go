package results

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/results/chart"
)

// part is one table on the page.
type part struct {
	ID, Title, Name string
	Where           string // server and machine
	About           string // name, scale and settings of durability
	Tiles           []tile
	Figures         []figure
	Cells, All      htmlTable
	Knees           []Input
	Failures        []Input // cells, and why
	Warnings        []string
	Facts           *Facts
	Besides, Inputs []Input
}

// tile is one figure of the headline.
type tile struct{ Name, Value, Unit, Note string }

// figure is one chart with its words. Wide is the same chart for a wide page; "" if there is one only.
type figure struct {
	Title, Caption string
	Narrow, Wide   template.HTML
}

func newPart(n int, t Table, page string) part {
	p := part{
		ID: "p" + strconv.Itoa(n+1), Title: strings.TrimPrefix(strings.TrimPrefix(title(t), page), ": "), Name: t.Name,
		Where: Joined(" · ", input(t, "server"), input(t, "machine")), About: about(t),
		Tiles: tiles(t), Cells: cellTable(t), All: measurements(t),
		Warnings: t.Warnings, Facts: t.Facts,
	}
	for _, c := range conclusions(t) {
		if c.Name == "knee" {
			p.Knees = append(p.Knees, c)
		}
	}
	for _, b := range besides(t) {
		if t.Facts != nil && b.Value != Joined("; ", t.Facts.Source, t.Facts.Machine, t.Facts.Note) {
			p.Besides = append(p.Besides, b)
		}
	}
	for _, point := range t.Points {
		if point.Error != "" {
			p.Failures = append(p.Failures, Input{Name: cellName(t, point.Settings), Value: string(point.Status) + ": " + point.Error})
		}
	}
	for _, s := range fixed(t) {
		p.Inputs = append(p.Inputs, Input{Name: s.Axis, Value: s.Value})
	}
	p.Inputs = append(p.Inputs, t.Inputs...)
	for i, s := range sketches(t) {
		p.Figures = append(p.Figures, s.figure(fmt.Sprintf("%s-c%d", p.ID, i+1)))
	}
	return p
}

// about is the line below the heading: where the figures are from.
func about(t Table) string {
	var scale, durability string
	if t.Scale != "" {
		scale = "scale " + t.Scale
	}
	if settings := input(t, "durability"); settings != "" {
		durability = "durability " + settings
	}
	return Joined(" · ", t.Name, scale, durability)
}

func (s sketch) figure(id string) figure {
	frame := chart.Frame{ID: id, Title: s.Title, Desc: s.Caption, Width: chart.Narrow}
	f := figure{Title: s.Title, Caption: s.Caption, Narrow: template.HTML(s.draw(frame))}
	if s.Wide {
		frame.ID, frame.Width = id+"w", chart.Wide
		f.Wide = template.HTML(s.draw(frame))
	}
	return f
}

// tiles are the headline: the best cell, the smallest that is nearly as good, and how much was measured.
func tiles(t Table) []tile {
	var list []tile
	if best, ok := pointAt(t, t.Best); ok {
		list = append(list, tile{"Best", amount(best.RowsPerSecond.Median), "rows/s",
			Joined(" · ", cellName(t, best.Settings), amount(best.BytesPerSecond.Median/mib)+" MiB/s")})
		if small, ok := pointAt(t, t.Smallest); ok && t.Smallest != t.Best {
			list = append(list, tile{"Smallest within " + near() + " of it", amount(small.RowsPerSecond.Median), "rows/s", cellName(t, small.Settings)})
		} else if len(t.Points) > 1 {
			list = append(list, tile{"Smallest within " + near() + " of it", "itself", "", "no smaller setting comes as near"})
		}
		if best.P99.N > 0 {
			list = append(list, tile{"Batch latency there, p99", seconds(best.P99.Median), "", "half of the batches within " + seconds(best.P50.Median)})
		}
		if best.BytesPerRow.N > 0 {
			list = append(list, tile{"Stored there", amount(best.BytesPerRow.Median), "bytes a row", "with indexes, as the server counts"})
		}
	}
	count := map[Status]int{}
	for _, p := range t.Points {
		count[p.Status]++
	}
	note := ""
	for _, s := range []Status{Limited, Failed, Skipped} {
		if count[s] > 0 {
			note = Joined(", ", note, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	return append(list, tile{"Cells measured", strconv.Itoa(count[Measured] + count[Limited]), "of " + strconv.Itoa(len(t.Points)), note})
}
