package results_test

import (
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/results"
)

// structure is the page without its style and without what is inside its drawings.
func structure(html string) string {
	html = regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(html, "<style/>")
	return regexp.MustCompile(`(?s)</desc>.*?</svg>`).ReplaceAllString(html, "</desc></svg>")
}

func TestHTMLGolden(t *testing.T) {
	golden.Equal(t, "golden/page.html", structure(shown(t, results.HTML, drawn(t)...)))
	golden.Equal(t, "golden/chart.svg", shown(t, results.SVG, drawn(t)[0]))
}

func TestHTMLNeedsNothing(t *testing.T) {
	html := shown(t, results.HTML, drawn(t)...)
	for _, sign := range []string{"<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "@font-face", "onload"} {
		require.NotContains(t, html, sign)
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		require.False(t, ids[m[1]], "twice: %s", m[1])
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:aria-labelledby|href)="#?([^"]+)"`).FindAllStringSubmatch(html, -1) {
		for _, id := range strings.Fields(m[1]) {
			require.True(t, ids[id], "leads nowhere: %s", id)
		}
	}
}

// An article may call an axis Batch_Rows: its figures stand in the table, and as a dashed line.
func TestPublishedFiguresAreDrawnHoweverTheirAxisIsWritten(t *testing.T) {
	const dashed = `stroke-dasharray="4 3"`           // of measured lines the dashes are others
	table := one(t, fixture(t, "four-methods.jsonl")) // without ceilings, which are dashed as well
	for i, f := range table.Facts.Points {
		table.Facts.Points[i].At = map[string]string{"method": f.At["method"], "Batch_Rows": f.At["batch_rows"]}
	}
	require.Contains(t, shown(t, results.SVG, table), dashed)
	table.Facts = nil
	require.NotContains(t, shown(t, results.SVG, table), dashed)
}

// A chart without its caption says what is not in it.
func TestAChartNamesTheAxesThatItLeavesOut(t *testing.T) {
	axes := []results.Axis{
		{Name: "workers", Values: []string{"1", "2"}},
		{Name: "method", Values: []string{"a", "b", "c", "d"}},
		{Name: "rows", Values: []string{"1k", "10k"}},
	}
	entries := make([]results.Entry, results.Combinations(axes))
	for i := range entries {
		entries[i] = results.Entry{
			Cell: i, Settings: results.Combination(axes, i), Status: results.Measured, Report: pushed(float64(1 + i)),
		}
	}
	table := one(t, results.Record{Head: results.Head{Parts: []results.Part{{Axes: axes, Cells: len(entries)}}}, Entries: entries})
	require.Contains(t, shown(t, results.SVG, table), ">workers, best over rows<")
}

// A ring is drawn where a knee was reached, and nowhere else.
func TestKneesThatWereNotReachedHaveNoMark(t *testing.T) {
	table := drawn(t)[1]
	require.Contains(t, shown(t, results.HTML, table), "first within 5 % of its line&#39;s best")
	for i := range table.Knees {
		table.Knees[i].Reached = false
	}
	html := shown(t, results.HTML, table)
	require.NotContains(t, html, "first within 5 %")
	require.NotContains(t, html, "<td>knee</td>")
}

// The page of 500 cases stays below 2 MB.
func TestLargeSweepIsSmall(t *testing.T) {
	html := rendered(t, results.HTML, []results.Record{large()})
	require.Less(t, len(html), 2<<20)
	require.Contains(t, html, "method-9, batch-rows 512000, workers 16")
}

func TestHTMLOfOddTables(t *testing.T) {
	const evil = `<script>alert(1)</script>"'&-->]]>`
	long := strings.Repeat("long-name ", 6)
	one, failed, evils := drawn(t)[0], drawn(t)[1], drawn(t)[1]
	one.Points, one.Axes = one.Points[:1], one.Axes[:1]
	one.Axes[0].Values = one.Axes[0].Values[:1]
	failed.Best, failed.Smallest = -1, -1
	for i := range failed.Points {
		failed.Points[i] = results.Point{Settings: failed.Points[i].Settings, Status: results.Failed, Error: evil}
	}
	evils.Name, evils.Title, evils.Scale, evils.Warnings = evil, evil, evil, []string{evil}
	evils.Inputs = []results.Input{{Name: evil, Value: evil}}
	evils.Facts = &results.Facts{Source: evil, Machine: evil, Note: evil, Points: []results.Fact{{At: map[string]string{"workers": "4"}, Figures: map[string]float64{"rows_per_second": 5}}}}
	evils.Axes[0].Name = evil
	for i := range evils.Points {
		evils.Points[i].Settings[0] = results.Setting{Axis: evil, Value: evil + long}
	}
	tables := map[string]results.Table{
		"empty": {Best: -1, Smallest: -1}, "one point": one, "all failed": failed, "scripts": evils,
	}
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			html := shown(t, results.HTML, table)
			require.NotContains(t, html, "<script")
			require.NotContains(t, html, "ZgotmplZ")
			for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1) {
				require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})), svg)
			}
			shown(t, results.SVG, table)
		})
	}
}
