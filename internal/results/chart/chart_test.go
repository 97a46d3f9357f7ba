package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
)

func frame(id string) Frame {
	return Frame{ID: id, Title: "Throughput by batch", Desc: "What it shows.", Width: Narrow}
}

func lines() Lines {
	return Lines{
		X: Axis{Label: "batch-rows", Log: true}, Y: Axis{Label: "rows/s"}, Mark: "knee",
		Series: []Series{
			{Name: "copy", Points: []Point{{X: 2000, Y: 10e3, Low: 9e3, High: 11e3}, {X: 20000, Y: 95e3, Marked: true}, {X: 200000, Y: 99e3}}},
			{Name: "insert", Points: []Point{{X: 2000, Y: 4e3}, {X: 20000, Y: 22e3}, {X: 200000, Y: 57e3}}},
			{Name: "copy", Dashed: true, Points: []Point{{X: 2000, Y: 7e3}, {X: 200000, Y: 80e3}}},
		},
	}
}

func TestGolden(t *testing.T) {
	alone := frame("alone")
	alone.Alone, alone.Width = true, Wide
	log := lines()
	log.Y.Log = true
	under := lines()
	under.Ceilings = []Ceiling{
		{"this client: 8.0 GiB/s (s3 put)", 2e6}, {"this client: 52 MiB/s (postgres copy)", 120e3}, {"this client: 50 MiB/s (mysql load-data)", 115e3},
	}
	for name, svg := range map[string][]byte{
		"alone.svg":    log.Draw(alone),
		"ceilings.svg": under.Draw(frame("ceilings")),
		"bars.svg": Bars{Parts: []string{"sending", "waiting", "never seen"}, Rows: []Bar{
			{Name: "copy", Note: "81 s", Parts: []float64{.25, .75, 0}, Ceiling: 2}, {Name: "insert", Note: "9 s", Parts: []float64{.5, .5, 0}, Published: .6, Ceiling: 20},
		}}.Draw(frame("bars")),
		"changes.svg": Changes{Margin: .05, Rows: []Change{
			{"workers 1", "−7.2 %, slower", -.072, -.073, -.07, Less}, {"workers 4", "+12 %, faster", .12, .1, .3, More},
			{"workers 8", "0.0 %, no difference", 0, -.01, .01, Unchanged}, {"workers 16", "too few", -.04, 0, 0, Open},
		}}.Draw(frame("changes")),
		"timeline.svg": Timeline{Y: Axis{Label: "rows/s"}, Mark: "retries", Marks: []float64{30},
			Ceilings: []Ceiling{{"this client: 3.1 GiB/s (postgres copy)", 6e6}},
			Rates:    []Series{{Points: []Point{{X: 1, Y: 0}, {X: 30, Y: 5e6}, {X: 60, Y: 2e6}}}},
			Phases:   []Phase{{"fill", 0, 1}, {"load", 1, 50}, {"verify", 50, 60}}}.Draw(frame("timeline")),
	} {
		t.Run(name, func(t *testing.T) {
			golden.Equal(t, name, string(svg))
			wellFormed(t, svg)
		})
	}
}

// wellFormed reads a drawing as XML, and refuses numbers that are none.
func wellFormed(t *testing.T, svg []byte) (paths int) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return paths
		}
		require.NoError(t, err, string(svg))
		if e, ok := token.(xml.StartElement); ok {
			for _, a := range e.Attr {
				require.NotContains(t, a.Value, "NaN")
				require.NotContains(t, a.Value, "Inf")
			}
			if e.Name.Local == "path" {
				paths++
			}
			require.NotEqual(t, "script", e.Name.Local)
		}
	}
}

// TestOddNumbers draws what a broken run may hold.
func TestOddNumbers(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), -1, 0, 5e-324, 1e-9, 1, 1e18, math.MaxFloat64}
	for _, a := range odd {
		for _, b := range odd {
			for _, log := range []bool{false, true} {
				for _, unit := range []Unit{Count, Bytes, Seconds} {
					axis := Axis{Label: "x", Unit: unit, Log: log}
					over := []Ceiling{{"<script>", a}, {"b", b}}
					s := []Series{{Name: "<script>", Points: []Point{{X: a, Y: b, Low: b, High: a, Marked: true}, {X: b, Y: a}}}}
					wellFormed(t, Lines{X: axis, Y: axis, Series: s, Ceilings: over}.Draw(frame("a")))
					wellFormed(t, Timeline{Y: axis, Rates: s, Ceilings: over, Phases: []Phase{{"load", 0, 1}}}.Draw(frame("a")))
				}
				if v := a - b; !math.IsNaN(v) && !math.IsInf(v, 0) {
					wellFormed(t, Changes{Margin: .05, Rows: []Change{{"a", "b", a, b, a, Less}, {"b", "a", b, -a, b, Open}}}.Draw(frame("a")))
				}
				wellFormed(t, Bars{Parts: []string{"a", "b"}, Rows: []Bar{{Name: "a", Parts: []float64{a, b}, Published: a, Ceiling: b}}}.Draw(frame("a")))
			}
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, svg := range map[string][]byte{
		"lines": Lines{}.Draw(frame("a")), "bars": Bars{}.Draw(frame("a")),
		"changes":  Changes{}.Draw(frame("a")),
		"timeline": Timeline{}.Draw(frame("a")),
	} {
		require.Zero(t, wellFormed(t, svg), name)
		require.Contains(t, string(svg), "nothing measured", name)
	}
}

// TestManySeries keeps the colours for those that get highest; the others are there, in grey.
func TestManySeries(t *testing.T) {
	var l Lines
	for n := range 20 {
		l.Series = append(l.Series, Series{Name: "series " + strconv.Itoa(n), Points: []Point{{X: 1, Y: float64(n)}, {X: 2, Y: float64(n + 1)}}})
	}
	svg := string(l.Draw(frame("a")))
	require.Contains(t, svg, ">13 more<")
	require.NotContains(t, svg, ">series 12<")
	require.Contains(t, svg, ">series 13<")
	require.Contains(t, svg, `class="line other"`)
}

func TestLongNamesAreShortened(t *testing.T) {
	name := strings.Repeat("a long name of a method ", 4)
	svg := string(Lines{Series: []Series{{Name: name, Points: []Point{{X: 1, Y: 1}}}}}.Draw(frame("a")))
	require.NotContains(t, svg, name)
	require.Contains(t, svg, "…</text>")
	require.Equal(t, "short", fit("short", 100))
	require.LessOrEqual(t, width(fit(name, 100)), 100.0)
}

// A rate is the mean of the interval that ends at X: the first one begins with the run.
func TestTheFirstIntervalIsDrawn(t *testing.T) {
	svg := string(Timeline{Rates: []Series{{Points: []Point{{X: 10, Y: 5}, {X: 20, Y: 7}}}}}.Draw(frame("a")))
	grid := regexp.MustCompile(`class="line faint" d="(M[\d.]+ )`).FindStringSubmatch(svg)
	require.NotNil(t, grid, svg)
	require.Contains(t, svg, `class="line h0" stroke-width="1.5" d="`+grid[1])
}

// What was published at one point alone must not look like what was measured.
func TestOnePublishedPoint(t *testing.T) {
	svg := string(Lines{Series: []Series{{Name: "copy", Dashed: true, Points: []Point{{X: 1, Y: 1}}}}}.Draw(frame("a")))
	_, drawn, _ := strings.Cut(svg, `class="line quiet"`) // after the legend
	require.NotContains(t, drawn, "fill h0")
	require.Contains(t, drawn, `class="line h0" stroke-width="1.5" stroke-dasharray`)
}

func TestUnitText(t *testing.T) {
	for _, c := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Count, 0, "0"}, {Count, 950, "950"}, {Count, 2000, "2k"}, {Count, 1.5e6, "1.5M"}, {Count, 4194304, "4.19M"}, {Count, 2e9, "2G"},
		{Bytes, 512, "512 B"}, {Bytes, 65536, "64 KiB"}, {Bytes, 1.5 * (1 << 20), "1.5 MiB"}, {Bytes, 1 << 40, "1 TiB"},
		{Seconds, .00025, "250 µs"}, {Seconds, .25, "250 ms"}, {Seconds, 1.5, "1.5 s"}, {Seconds, 90, "1.5 min"}, {Seconds, 7200, "2 h"},
	} {
		require.Equal(t, c.want, c.unit.text(c.value))
	}
}

func labels(ticks []tick) string {
	var all []string
	for _, tick := range ticks {
		all = append(all, tick.label)
	}
	return strings.Join(all, " ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		end  float64
		want string
	}{
		{Count, 95e3, "0 20k 40k 60k 80k 100k"}, {Count, 1, "0 0.2 0.4 0.6 0.8 1"}, {Count, 7, "0 2 4 6 8"},
		{Bytes, 90 << 20, "0 20 MiB 40 MiB 60 MiB 80 MiB 100 MiB"}, {Seconds, 58, "0 15 s 30 s 45 s 1 min"}, {Seconds, 6000, "0 30 min 1 h 1.5 h 2 h"},
	} {
		require.Equal(t, c.want, labels(linear(c.unit, c.end)))
	}
	require.Equal(t, "2k 5k 10k 20k 50k 100k 200k 500k", labels(decades(Count, 3700, 262e3)))
}

func TestWhichCeilingsAreDrawn(t *testing.T) {
	a, b, far := Ceiling{"a", 100}, Ceiling{"b", 500}, Ceiling{"far", 501}
	for name, c := range map[string]struct {
		all         []Ceiling
		high        float64
		drawn, told []Ceiling
	}{
		"the highest first":        {[]Ceiling{a, b}, 100, []Ceiling{b, a}, nil},
		"five times as high":       {[]Ceiling{a, b, far}, 100, []Ceiling{b, a}, []Ceiling{far}},
		"below what it was to cap": {[]Ceiling{a}, 1000, []Ceiling{a}, nil},
		"over nothing":             {[]Ceiling{a}, 0, nil, []Ceiling{a}},
		"no number":                {[]Ceiling{{"x", math.NaN()}, {"y", math.Inf(1)}, {"z", -1}, {"none", 0}}, 100, nil, nil},
		"no more than can be told": {[]Ceiling{{"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"5", 5}}, 9, []Ceiling{{"5", 5}, {"4", 4}, {"3", 3}, {"2", 2}}, nil},
		"several of one name stay": {[]Ceiling{a, a}, 100, []Ceiling{a, a}, nil},
		"none":                     {nil, 100, nil, nil},
	} {
		got := placed(c.all, c.high, false)
		require.Equal(t, ceilings{c.drawn, c.told}, got, name)
		require.GreaterOrEqual(t, got.top(c.high), c.high, name)
	}
}
