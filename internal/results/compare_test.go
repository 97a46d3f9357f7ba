package results_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

func TestVerdicts(t *testing.T) {
	five, slower := []float64{100, 101, 102, 103, 104}, []float64{90, 91, 92, 93, 94}
	nothing := []float64{0, 0, 0, 0, 0}
	for _, c := range []struct {
		name    string
		a, b    []float64
		verdict results.Verdict
		change  float64
		fails   bool // by 5 %
	}{
		{"clear", five, slower, results.Slower, -10.0 / 102, true},
		{"faster", slower, five, results.Faster, 10.0 / 92, false},
		{"within the noise", five, []float64{60, 101, 85, 130, 94}, results.Same, -8.0 / 102, false},
		{"clear and small", five, []float64{96, 97, 98, 98.5, 99}, results.Slower, -4.0 / 102, false},
		{"few and large", five[:3], slower[:3], results.TooFew, -10.0 / 101, true},
		{"few and small", five[:3], []float64{99, 100, 101}, results.TooFew, -1.0 / 101, false},
		{"one and faster", slower[:1], five[:1], results.TooFew, 10.0 / 90, false},
		{"from nothing", nothing, five, results.Faster, 0, false}, // which is no number
		{"to nothing", five, nothing, results.Slower, -1, true},
		{"equal", five, five, results.Same, 0, false},
		{"nothing at all", nothing, nothing, results.Same, 0, false},
	} {
		got := results.Compare(sweep("workers", []string{"1"}, c.a), sweep("workers", []string{"1"}, c.b))
		require.Equal(t, c.verdict, got.Cells[0].Verdict, c.name)
		require.InDelta(t, c.change, got.Cells[0].Change, 1e-12, c.name)
		require.Equal(t, c.fails, len(got.SlowerBy(0.05)) == 1, c.name)
	}
}

func TestCellsMatchBySettings(t *testing.T) {
	a := sweep("batch_rows", []string{"2000", "16KiB", "5"}, []float64{1}, []float64{2}, []float64{3})
	b := sweep("batch-rows", []string{"16384", "2,000", "7"}, []float64{2}, []float64{1}, []float64{4})
	c := results.Compare(a, b)
	require.Len(t, c.Cells, 2)
	for _, p := range c.Cells {
		require.Zero(t, p.Change)
	}
	require.Equal(t, []results.Lost{
		{Table: "s", Settings: a.Entries[2].Settings, In: "a"},
		{Table: "s", Settings: b.Entries[2].Settings, In: "b"},
	}, c.Lost)

	b = sweep("batch-rows", []string{"2000", "16384", "5"}, []float64{1}, nil, []float64{3})
	b.Entries = append(b.Entries, results.Entry{Cell: 1, Status: results.Failed, Error: "disk full",
		Settings: []results.Setting{{Axis: "batch-rows", Value: "16384"}}})
	c = results.Compare(a, b)
	require.Equal(t, []results.Lost{{Table: "s", Settings: a.Entries[1].Settings, In: "a", Other: results.Failed, Error: "disk full"}}, c.Lost)
	require.Len(t, c.Broken(), 1)
	b.Entries[len(b.Entries)-1].Status = results.Skipped
	require.Empty(t, results.Compare(a, b).Broken())

	a, b = sweep("target", []string{"postgres://a/d"}, []float64{1}), sweep("target", []string{"postgres://b/d"}, []float64{2})
	c = results.Compare(a, b)
	require.Len(t, c.Cells, 1, "an axis of one value is an input")
	require.Empty(t, c.Lost)

	c = results.Compare(fixture(t, "two-parts.jsonl"), fixture(t, "workers.jsonl"))
	require.Empty(t, c.Cells)
	require.Len(t, c.Lost, 15)
	require.NotNil(t, c.Inputs)
}
