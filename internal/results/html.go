package results

import (
	_ "embed" // the page and its style
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/terapush/terapush/internal/results/chart"
)

//go:embed page.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

// page is what the template shows.
type page struct {
	Title, When string
	Style       template.CSS
	Parts       []part
}

// HTML writes tables as one file that needs nothing besides: no script, no network, no font. It is light or dark as the
// reader's system is, and fits a phone as well as paper. Everything out of tables is escaped.
func HTML(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	tables = legible(tables)
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("render: the page's template: %w", err)
	}
	p := page{Title: pageTitle(tables), When: when(tables), Style: template.CSS(chart.Style + pageStyle)}
	for n, table := range tables {
		p.Parts = append(p.Parts, newPart(n, table, p.Title))
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("render: write HTML: %w", err)
	}
	return nil
}

// pageTitle is what the titles of all tables begin with: the sweep's stands before the part's.
func pageTitle(tables []Table) string {
	common := strings.Split(title(tables[0]), ": ")
	for _, t := range tables[1:] {
		words := strings.Split(title(t), ": ")
		n := 0
		for n < min(len(common), len(words)) && words[n] == common[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) == 0 {
		return "Sweeps"
	}
	return strings.Join(common, ": ")
}

func title(t Table) string {
	if t.Title == "" {
		return t.Name
	}
	return t.Title
}

// when is the day of the first measurement, or the first and the last.
func when(tables []Table) string {
	const day = "2 January 2006"
	first, last := "", ""
	var low, high int64
	for _, t := range tables {
		for _, p := range t.Points {
			if p.Typical == nil || p.Typical.Run.Started.IsZero() {
				continue
			}
			at := p.Typical.Run.Started.UTC()
			if first == "" || at.Unix() < low {
				first, low = at.Format(day), at.Unix()
			}
			if last == "" || at.Unix() > high {
				last, high = at.Format(day), at.Unix()
			}
		}
	}
	if first == last {
		return first
	}
	return first + " to " + last
}

// Chart writes the first chart of a table as an SVG file of its own: readable on a light and on a dark page, wherever it is
// shown as an image.
func Chart(w io.Writer, t Table) error {
	t = legible([]Table{t})[0]
	draw := throughput(t)[0]
	svg := draw.draw(chart.Frame{ID: "chart", Title: title(t), Desc: draw.Caption, Width: chart.Wide, Alone: true})
	if _, err := w.Write(svg); err != nil {
		return fmt.Errorf("render: write the chart: %w", err)
	}
	return nil
}
