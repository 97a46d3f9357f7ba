package results_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

func threshold(t *testing.T, metric, text string) results.Threshold {
	t.Helper()
	one, err := results.ParseThreshold(metric, text)
	require.NoError(t, err)
	return one
}

// The median of each case is compared; what no push has is no pass, and a case that was not measured is no miss.
func TestThresholds(t *testing.T) {
	r := sweep("workers", []string{"1", "2", "4"}, []float64{1000, 5000, 900}, []float64{4999.996}, nil)
	for text, want := range map[string]string{
		"rows_per_second >= 1k":      "rows_per_second >= 1,000: met in 2 cases",
		"rows_per_second > 1000":     "rows_per_second > 1,000: missed in 1 of 2 cases (workers 1: 1,000)",
		"rows_per_second < 1000":     "rows_per_second < 1,000: missed in 2 of 2 cases (workers 1: 1,000; workers 2: 5,000)",
		"rows_per_second <= 4999":    "rows_per_second <= 4,999: missed in 1 of 2 cases (workers 2: 5,000)",
		"rows_per_second >= 5000":    "rows_per_second >= 5,000: missed in 2 of 2 cases (workers 1: 1,000; workers 2: 4999.996)",
		"stage_seconds < 1h":         "stage_seconds < 1h0m0s: missed in 2 of 2 cases (workers 1: not measured; workers 2: not measured)",
		"bytes_per_second >=1KiB/s":  "",
		"batch_p99_seconds <= 100ms": "",
	} {
		metric, limit, _ := bytes.Cut([]byte(text), []byte(" "))
		r.Head.Parts[0].Thresholds = []results.Threshold{threshold(t, string(metric), string(limit))}
		table := one(t, r)
		if want != "" {
			require.Equal(t, want, table.Thresholds[0].String())
			require.Equal(t, len(table.Thresholds[0].Missed) > 0, len(results.Missed([]results.Table{table})) > 0)
		}
	}
}

// Every form for people says which case misses what.
func TestThresholdsAreShown(t *testing.T) {
	r := sweep("workers", []string{"1", "2"}, []float64{1000}, []float64{5000})
	r.Head.Parts[0].Thresholds = []results.Threshold{threshold(t, "rows_per_second", ">= 2000")}
	tables := results.Tables([]results.Record{r})
	for format, want := range map[results.Format][]string{
		results.Text:     {"threshold         rows_per_second >= 2,000: missed in 1 of 2 cases (workers 1: 1,000)", "threshold missed"},
		results.Markdown: {"- **threshold** rows\\_per\\_second &gt;= 2,000", "threshold missed"},
		results.JSON:     {`"metric": "rows_per_second"`, `"is": ">="`, `"value": 1000`},
		results.HTML:     {"rows_per_second &gt;= 2,000", "in 1 of 2 cases (workers 1: 1,000)"},
	} {
		var b bytes.Buffer
		require.NoError(t, format.Write(&b, tables))
		for _, text := range want {
			require.Contains(t, b.String(), text, format)
		}
	}
	tables[0].Points = nil
	r.Head.Parts[0].Thresholds[0].Limit = 1000
	require.Empty(t, results.Missed(results.Tables([]results.Record{r})))
	require.Equal(t, results.Digest(r.Head.Parts, 0), results.Digest([]results.Part{{Axes: r.Head.Parts[0].Axes}}, 0), "judged, not measured")
}
