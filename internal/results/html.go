package results

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/results/chart"
	"github.com/terapush/terapush/internal/units"
)

//go:embed *.tmpl
var templates embed.FS

// pages are parsed for who writes one: that takes a millisecond.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(templates, "*.tmpl"))
})

//go:embed page.css
var pageStyle string

func style() template.CSS { return template.CSS(chart.Style + pageStyle) }

func executed(name string, page any) (string, error) {
	var b strings.Builder
	err := pages().ExecuteTemplate(&b, name, page)
	return b.String(), err
}

type part struct {
	ID, Title, Name string
	Where           string  // server and machine
	About           string  // name, scale and settings of durability
	Command         string  // of one run
	Summary         []Input // likewise
	Shards          grid    // of a merged run
	Tiles           []tile
	Figures         []figure
	Cells, All      grid
	Knees           []Input
	Failures        []Input // how pushes ended, in which cases and why
	Warnings        []string
	Facts           *Facts
	Published       []Input
	Inputs          []Input
}

// tile is one figure of the headline.
type tile struct{ Name, Value, Unit, Note string }

// figure is one chart with its words. Wide is its drawing for a wide page, "" without one.
type figure struct {
	Title, Caption string
	Narrow, Wide   template.HTML
}

// asHTML formats tables as one page without scripts, network access or fonts, light or dark as the reader's system, for
// phones and paper. All text of tables is escaped.
func asHTML(tables []Table) (string, error) {
	page := struct {
		Title, When string
		Style       template.CSS
		Parts       []part
	}{Title: pageTitle(tables), When: when(tables), Style: style()}
	for n, table := range tables {
		page.Parts = append(page.Parts, newPart(n, table, page.Title))
	}
	return executed("page.tmpl", page)
}

// pageTitle returns what all titles begin with: that of the sweep precedes that of the part. Several single runs are
// the tables of one push.
func pageTitle(tables []Table) string {
	if run := tables[0].run; run != nil && len(tables) > 1 {
		return titleOfTables(tables)
	} else if run != nil {
		return runTitle(run)
	}
	common := tables[0].title()
	for _, t := range tables[1:] {
		for common != "" && common != t.title() && !strings.HasPrefix(t.title(), common+": ") {
			common = common[:max(strings.LastIndex(common, ": "), 0)]
		}
	}
	return cmp.Or(common, "Sweeps")
}

func (t Table) title() string { return cmp.Or(t.Title, t.Name) }

// when returns the day of the first measurement, or the first and the last.
func when(tables []Table) string {
	var times []time.Time
	for _, t := range tables {
		for _, r := range append(t.reports(), t.run) {
			if r != nil && !r.Run.Started.IsZero() {
				times = append(times, r.Run.Started.UTC())
			}
		}
	}
	if len(times) == 0 {
		return ""
	}
	const day = "2 January 2006"
	first := slices.MinFunc(times, time.Time.Compare).Format(day)
	last := slices.MaxFunc(times, time.Time.Compare).Format(day)
	if first == last {
		return first
	}
	return first + " to " + last
}

func newPart(n int, t Table, page string) part {
	scale, durability := around("scale ", t.Scale, ""), around("durability ", t.input(inputDurability), "")
	p := part{
		ID: "p" + strconv.Itoa(n+1), Title: strings.TrimPrefix(strings.TrimPrefix(t.title(), page), ": "), Name: t.Name,
		Where: units.Join(" · ", t.input(inputServer), t.input(inputMachine), t.oneMachine()),
		About: units.Join(" · ", t.Name, scale, durability),
		Tiles: tiles(t), Cells: caseGrid(t), All: allQuantities(t),
		Warnings: t.Warnings, Facts: t.Facts, Inputs: append(t.fixed(), t.Inputs...),
		Failures: errorsOf(t), Knees: kneesInWords(t),
	}
	if t.Facts != nil {
		p.Published = published(t)[1:] // the page has the source elsewhere
	}
	drawn := sketches(t)
	if r := t.run; r != nil {
		client := "client with " + english.Plural(r.Client.Cores, "core", "")
		p.Where = units.Join(" · ", t.input(inputServer), client, t.oneMachine())
		if p.Title = ""; page != runTitle(r) {
			dataset, _, _ := strings.Cut(r.Plan.Dataset, " ") // behind it is a digest
			p.Title = dataset + ": " + units.Count(r.Result.Rows) + " rows"
		}
		p.Tiles, p.Command, p.Summary, p.Shards, p.Cells = runTiles(r), commandOf(r), summaryOf(r), shardGrid(r), grid{}
		drawn = runSketches(r)
	}
	for i, s := range drawn {
		p.Figures = append(p.Figures, s.figure(fmt.Sprintf("%s-c%d", p.ID, i+1)))
	}
	return p
}

// figure draws a chart. The id is unique on the page.
func (s sketch) figure(id string) figure {
	frame := chart.Frame{ID: id, Title: s.title, Desc: s.caption, Width: chart.Narrow}
	f := figure{Title: s.title, Caption: s.caption, Narrow: template.HTML(s.draw(frame))}
	if s.wide {
		frame.ID, frame.Width = frame.ID+"w", chart.Wide
		f.Wide = template.HTML(s.draw(frame))
	}
	return f
}

// tiles returns the headline: the best case, the smallest that is nearly as good, and how many were measured.
func tiles(t Table) []tile {
	var list []tile
	for _, j := range t.Thresholds {
		word, where := j.verdict()
		list = append(list, tile{j.Threshold.String(), cmp.Or(word, "unknown"), "", where})
	}
	if best, ok := t.at(t.Best); ok {
		list = append(list, tile{"Fastest", units.Amount(best.rate()), "rows/s",
			units.Join(" · ", t.cellName(best.Settings), units.Amount(best.BytesPerSecond.Median/mib)+" MiB/s")})
		name := "Cheapest within " + limitText(Near)
		if small, ok := t.at(t.Smallest); ok && t.Smallest != t.Best {
			list = append(list, tile{name, units.Amount(small.rate()), "rows/s", t.cellName(small.Settings)})
		} else if axis, ok := sizeAxis(t.Axes); ok {
			list = append(list, tile{name, "none cheaper", "", "a smaller value of " + axis.Name + " loses more than that"})
		}
		if best.P99.N > 0 {
			list = append(list, tile{"Batch latency, p99", units.Seconds(best.P99.Median), "",
				"half of the batches within " + units.Seconds(best.P50.Median)})
		}
		list = append(list, storedTile(best.BytesPerRow.Median)...)
	}
	if len(t.Points) == 1 {
		return list
	}
	return append(list, tile{"Cases measured", strconv.Itoa(len(t.measured())), "of " + strconv.Itoa(len(t.Points)), ""})
}

// allQuantities returns every quantity of each measured case, with its range.
func allQuantities(t Table) grid {
	columns := []column[int]{
		{"case", false, func(n int) gridCell { return gridCell{Text: t.cellName(t.Points[n].Settings)} }},
		{"pushes", true, func(n int) gridCell { return gridCell{Text: strconv.Itoa(t.Points[n].RowsPerSecond.N)} }},
	}
	for _, name := range Quantities() {
		columns = append(columns, column[int]{words(name), true, func(n int) (cell gridCell) {
			s := t.Points[n].sample(name)
			if s.N > 0 {
				cell.Text = show(name, s.Median)
			}
			if low, high := show(name, s.Low), show(name, s.High); s.N > 1 && low != high {
				cell.Note = low + " … " + high
			}
			return cell
		}})
	}
	return gridOf(t.measured(), columns)
}

// at returns a point, false if it was not measured.
func (t Table) at(n int) (Point, bool) {
	if n < 0 || n >= len(t.Points) || !t.Points[n].measured() {
		return Point{}, false
	}
	return t.Points[n], true
}

// cellName names a case by the settings that vary.
func (t Table) cellName(settings Settings) string {
	if name := nameBy(t.varying(), settings.Value); name != "" {
		return name
	}
	return settings.String()
}

// nameBy joins the values of some axes, those of ordered ones with the axis.
func nameBy(axes []Axis, value func(axis string) string) string {
	var words []string
	for _, a := range axes {
		switch v := value(a.Name); {
		case v == "":
		case a.ordered():
			words = append(words, a.Name+" "+v)
		default:
			words = append(words, v)
		}
	}
	return strings.Join(words, ", ")
}
