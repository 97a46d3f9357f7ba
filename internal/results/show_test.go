package results_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

// FuzzShow makes all that reports and comparisons show of whatever is taken for a record: no figure in it ends the process.
// Its seeds are short; -fuzzminimizetime 10x leaves the time to new ones.
func FuzzShow(f *testing.F) {
	run, err := os.ReadFile("testdata/run-4.json")
	require.NoError(f, err)
	f.Add(run)
	head := `{"schema":"terapush.sweep/v1","parts":[{"axes":[{"name":"workers","values":["1","2"]},{"name":"method","values":["a"]}],"cells":2}]}` + "\n"
	entry := func(cell, result, rest string) string {
		return `{"cell":` + cell + `,"status":"measured","settings":[{"axis":"workers","value":"` + cell + `"}],"report":{"result":{` + result + `}` + rest + `}}` + "\n"
	}
	f.Add([]byte(head + entry("0", `"seconds":1,"rows_per_second":-1`, "") + entry("1", `"seconds":1,"rows_per_second":-2`, "")))
	f.Add([]byte(head + entry("0", `"seconds":1e308,"rows_per_second":1e308`, `,"latency":{"batch_seconds":{"max":1e308}}`) +
		entry("1", `"seconds":5e-324,"rows_per_second":0`, `,"timeline":{"moments":[{"at":1e308,"rows":9223372036854775807},{"at":1,"retries":1},{"at":2}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := results.From(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range []results.Record{r, results.Redact([]results.Record{r})[0]} {
			tables := results.Tables([]results.Record{r})
			for _, show := range []func(io.Writer, []results.Table) error{
				results.Text.Write, results.Markdown.Write, results.JSON.Write, results.CSV.Write, results.Benchmarks.Write, results.HTML.Write, results.SVG.Write,
			} {
				_ = show(io.Discard, tables) // what has no chart, or no table, is an error
			}
			require.NoError(t, results.Compare(r, r).Text(io.Discard, 0.05))
		}
	})
}
