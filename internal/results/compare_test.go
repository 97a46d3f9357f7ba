package results_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

func TestVerdicts(t *testing.T) {
	five, slower := []float64{100, 101, 102, 103, 104}, []float64{90, 91, 92, 93, 94}
	tight := []float64{100, 100.1, 100.2, 100.3, 100.4}
	nothing := []float64{0, 0, 0, 0, 0}
	const passes, fails, doubt = 0, 6, 8 // at a threshold of 5 %
	for _, c := range []struct {
		name    string
		a, b    []float64
		verdict results.Verdict
		change  float64
		gate    int
	}{
		{"clear", five, slower, results.Slower, -10.0 / 102, fails},
		{"faster", slower, five, results.Faster, 10.0 / 92, passes},
		{"within the noise", five, []float64{60, 101, 85, 130, 94}, results.Inconclusive, -8.0 / 102, doubt},
		{"slower, perhaps not by so much", five, []float64{96, 97, 98, 98.5, 99}, results.Slower, -4.0 / 102, doubt},
		{"slower, and not by so much", tight, []float64{99, 98.9, 98.8, 98.7, 98.6}, results.Slower, 98.8/100.2 - 1, passes},
		{"few and large", five[:3], slower[:3], results.Inconclusive, -10.0 / 101, doubt},
		{"few and equal", five[:3], five[:3], results.Inconclusive, 0, doubt},
		{"four and four", five[:4], slower[:4], results.Inconclusive, 91.5/101.5 - 1, doubt}, // by chance in 1 of 35 cases
		{"one and faster", slower[:1], five[:1], results.Inconclusive, 10.0 / 90, doubt},
		{"from nothing", nothing, five, results.Faster, 0, passes}, // which is no number
		{"to nothing", five, nothing, results.Slower, -1, fails},
		{"equal", five, five, results.Same, 0, passes},
		{"nothing at all", nothing, nothing, results.Same, 0, passes},
	} {
		got := results.Compare(sweep("workers", []string{"1"}, c.a), sweep("workers", []string{"1"}, c.b), 0.05)
		require.Equal(t, c.verdict, got.Cells[0].Verdict, c.name)
		require.InDelta(t, c.change, got.Cells[0].Change, 1e-12, c.name)
		gate := 6*len(got.Slower) + 8*len(got.Undecided)
		require.Equal(t, c.gate, gate, c.name)
	}
}

// Two sinks that read 10 and 9.3 MiB/s on a busy machine: the change is larger than the threshold, and nothing is
// certain.
func TestWhatADoubtSays(t *testing.T) {
	a := sweep("workers", []string{"1"}, []float64{20480, 19900, 18200, 20300, 20470})
	b := sweep("workers", []string{"1"}, []float64{19046, 19040, 18900, 16100, 20300})
	var text strings.Builder
	require.NoError(t, results.Compare(a, b, 0.05).Write(&text, results.Text))
	require.Regexp(t, `inconclusive: s: workers 1, -6\.2 %: the change is within -\d+\.\d … \+\d+\.\d %; `+
		`a difference of \d+\.\d % or more would have been seen; `, text.String())
	require.Contains(t, text.String(), "0 of 1 cases slower by more than 5 %, 0 failed, 1 inconclusive\n")

	text.Reset()
	require.NoError(t, results.Compare(a, b, 0).Write(&text, results.Text))
	require.Contains(t, text.String(), "1 of 1 cases inconclusive; the worst is s: workers 1: the change is within")

	five := sweep("workers", []string{"1"}, []float64{100, 101, 102, 103, 104})
	slower := sweep("workers", []string{"1"}, []float64{96, 97, 98, 98.5, 99})
	text.Reset()
	require.NoError(t, results.Compare(five, slower, 0.05).Write(&text, results.Text))
	require.Contains(t, text.String(), "slower, perhaps by more than 5 %: s: workers 1, -3.9 %: ")

	few := sweep("workers", []string{"1"}, []float64{100, 101, 102})
	text.Reset()
	require.NoError(t, results.Compare(few, few, 0.05).Write(&text, results.Text))
	require.Contains(t, text.String(), "3 and 3 pushes cannot tell any difference from noise: at least 5 on either side can")

	// What would decide is decided by that many.
	values := func(n int, change float64) (all []float64) {
		for i := range n {
			all = append(all, (100+4*float64(i%5))*(1+change))
		}
		return all
	}
	got := results.Compare(sweep("workers", []string{"1"}, values(5, 0)), sweep("workers", []string{"1"}, values(5, 0)), 0.05)
	enough := got.Undecided[0].Enough
	require.Greater(t, enough, 5)
	more := 5 * (1 + enough/5)
	got = results.Compare(sweep("workers", []string{"1"}, values(more, 0)), sweep("workers", []string{"1"}, values(more, 0)), 0.05)
	require.Empty(t, got.Undecided, "%d pushes", more)
}

// What the machine did while the pushes were made is no change of what was pushed, and does not hide one.
func TestChangesOfTheMachine(t *testing.T) {
	rates := []float64{1000, 1003, 998, 1001, 999, 1002, 997, 1004}
	times := func(values []float64, factor float64) (all []float64) {
		for _, v := range values {
			all = append(all, v*factor)
		}
		return all
	}
	drifting := func(values []float64) (all []float64) { // by 30 %, from push to push
		for i, v := range values {
			all = append(all, v*(1-0.3*float64(i)/float64(len(values))))
		}
		return all
	}
	busy := []float64{1, 0.6, 1.1, 0.5, 0.9, 0.7, 1.2, 0.8}
	steady := []float64{1, 1.004, 0.997, 1.002, 0.999, 1.003, 0.998, 1.001}
	for _, c := range []struct {
		name     string
		a, b     []float64
		speedsA  []float64
		speedsB  []float64
		inTurns  bool
		verdict  results.Verdict
		exitCode int
		names    bool // the change of the machine
	}{
		{"a loss on a steady machine", rates, times(rates, 0.9), steady, steady, false, results.Slower, 6, false},
		{"a slower machine", rates, times(rates, 0.9), steady, times(steady, 0.9), false, results.Inconclusive, 8, true},
		{"a loss behind a faster machine", rates, rates, steady, times(steady, 1.2), false, results.Inconclusive, 8, true},
		{"no change, and a slower machine", rates, rates, steady, times(steady, 0.8), false, results.Inconclusive, 0, true},
		{"rates that do not follow a busy machine", rates, times(rates, 0.9), busy, times(busy, 0.9), false, results.Slower, 6, false},
		{"a loss beside a drift, in turns", drifting(rates), drifting(times(rates, 0.9)), nil, nil, true, results.Slower, 6, false},
		{"a drift, one after the other", drifting(rates), drifting(times(rates, 0.9)), nil, nil, false, results.Inconclusive, 8, false},
		{"equal beside a drift, in turns", drifting(rates), drifting(rates), nil, nil, true, results.Same, 0, false},
	} {
		a, b := sweep("workers", []string{"1"}, c.a), sweep("workers", []string{"1"}, c.b)
		start := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
		for i := range rates {
			before, after := start.Add(time.Duration(i)*time.Second), start.Add(time.Duration(len(rates)+i)*time.Second)
			if c.inTurns {
				before, after = start.Add(time.Duration(2*i+i%2)*time.Second), start.Add(time.Duration(2*i+1-i%2)*time.Second)
			}
			a.Entries[i].Started, b.Entries[i].Started = before, after
			if c.speedsA != nil {
				a.Entries[i].Speed, b.Entries[i].Speed = c.speedsA[i], c.speedsB[i]
			}
		}
		got := results.Compare(a, b, 0.05)
		require.Equal(t, c.verdict, got.Cells[0].Verdict, c.name)
		require.Equal(t, c.inTurns, got.Cells[0].InTurns, c.name)
		require.Equal(t, c.exitCode, 6*len(got.Slower)+8*len(got.Undecided), c.name)
		require.Equal(t, c.names, len(got.Unlike) == 1, "%s: %v", c.name, got.Unlike)
		var text strings.Builder
		require.NoError(t, got.Write(&text, results.Text))
		if c.names && c.exitCode == 8 {
			require.Contains(t, text.String(), "push a and b in turns", c.name)
			require.Contains(t, text.String(), "not alike: the speed of the machine that ran terapush changed from a to b by ", c.name)
		}
	}
}

// The machine's drift is named if it is larger than what the sweep is to tell apart.
func TestDriftOfTheMachine(t *testing.T) {
	rates := slices.Repeat([]float64{100}, 24)
	start := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	for drift, named := range map[float64]bool{0: false, 0.03: false, 0.2: true} {
		r := sweep("workers", []string{"1"}, rates)
		for i := range r.Entries {
			r.Entries[i].Started = start.Add(time.Duration(i) * time.Second)
			r.Entries[i].Speed = (1 + 0.005*float64(i*i%5)) * (1 - drift*float64(i)/24)
		}
		slices.Reverse(r.Entries) // those of a record may be in any order
		warnings := strings.Join(one(t, r).Warnings, "\n")
		require.Equal(t, named, strings.Contains(warnings, "The machine that runs terapush drifted: a reference before and after every push was up to 1"), "%v: %s", drift, warnings)
	}
}

// Rates of other rows and other databases are shown, and are no reason to pass.
func TestUnlikeRecords(t *testing.T) {
	five := []float64{100, 100.1, 100.2, 100.3, 100.4}
	for want, change := range map[string]func(*report.Report){
		"the rows differ: a pushes documents, b people":              func(r *report.Report) { r.Plan.Dataset = "people" },
		"the rows differ: those of a have 512 bytes, those of b 256": func(r *report.Report) { r.Result.PayloadBytes /= 2 },
		"the databases differ: a is postgres, b mysql":               func(r *report.Report) { r.Target.Backend = "mysql" },
		"": func(r *report.Report) { r.Target.Server, r.Plan.Method = "PostgreSQL 18", "insert" },
	} {
		a, b := sweep("workers", []string{"1"}, five), sweep("workers", []string{"1"}, five)
		for _, e := range b.Entries {
			change(e.Report)
		}
		c := results.Compare(a, b, 0.05)
		require.Equal(t, want != "", len(c.Unlike) == 1, want)
		require.Equal(t, want != "", len(c.Undecided) == 1, want)
		require.Equal(t, strings.HasPrefix(want, "the rows"), c.OtherRows(), want)
		var text strings.Builder
		require.NoError(t, c.Write(&text, results.Text))
		require.Contains(t, text.String(), want)
	}
}

func TestCellsMatchBySettings(t *testing.T) {
	a := sweep("batch_rows", []string{"2000", "16KiB", "5"}, []float64{1}, []float64{2}, []float64{3})
	b := sweep("batch-rows", []string{"16384", "2,000", "7"}, []float64{2}, []float64{1}, []float64{4})
	c := results.Compare(a, b, 0.05)
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
	c = results.Compare(a, b, 0.05)
	require.Equal(t, []results.Lost{{Table: "s", Settings: a.Entries[1].Settings, In: "a", Other: results.Failed, Error: "disk full"}}, c.Lost)
	require.Len(t, c.Broken, 1)
	b.Entries[len(b.Entries)-1].Status = results.Skipped
	require.Empty(t, results.Compare(a, b, 0.05).Broken)
	require.Len(t, results.Compare(a, b, 0.05).Missing, 1, "what is not measured is not known")
	require.Empty(t, results.Compare(b, a, 0.05).Missing, "a new case is no doubt")

	a, b = sweep("target", []string{"postgres://a/d"}, []float64{1}), sweep("target", []string{"postgres://b/d"}, []float64{2})
	c = results.Compare(a, b, 0.05)
	require.Len(t, c.Cells, 1, "an axis of one value is an input")
	require.Empty(t, c.Lost)

	c = results.Compare(fixture(t, "two-parts.jsonl"), fixture(t, "workers.jsonl"), 0.05)
	require.Empty(t, c.Cells)
	require.Len(t, c.Lost, 15)
	require.NotNil(t, c.Inputs)
}
