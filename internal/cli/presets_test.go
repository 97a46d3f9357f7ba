package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
)

// Every cell of every preset is a push that nothing but a server could refuse.
func TestPresets(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	none := func(string) (string, bool) { return "", false }
	tested := map[string]bool{}
	for _, c := range []struct {
		preset, target, via string
		cells               map[string]int // by scale; the default is cloud
	}{
		{"singlestore-terabyte", "singlestore://admin:hunter2@h:3306/db", "", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte", "mariadb://u@h:3306/db", "", map[string]int{"cloud": 1, "laptop": 3, "ci": 1}},
		{"singlestore-terabyte-pipeline", "singlestore://admin@h:3306/db", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"yugabyte-rows-per-transaction", "yugabyte://u@h:5433/db", "", map[string]int{"": 23, "laptop": 7, "ci": 3}},
		{"yugabyte-rows-per-transaction", "postgres://u@h/db", "", map[string]int{"cloud": 23, "laptop": 11, "ci": 4}},
		{"databend-four-methods", "databend://root@h:8000/default", "", map[string]int{"": 44, "laptop": 16, "ci": 8}},
		{"databend-copy-cluster", "databend://root@h:8000/default", "s3://bucket/prefix", map[string]int{"": 1, "laptop": 3, "ci": 1}},
		{"doris-group-commit", "doris://root@h:9030/db", "", map[string]int{"": 47, "laptop": 23, "ci": 9}},
		{"oracle-fast-ingest", "oracle://u@h:1521/service", "", map[string]int{"": 32, "laptop": 12, "ci": 8}},
	} {
		tested[c.preset] = true
		require.NotEmpty(t, sweep.PresetTitle(c.preset))
		file, text, err := sweep.Preset(c.preset)
		require.NoError(t, err)
		o := sweep.Options{
			Sources: sweep.Sources{Drivers: drivers}, Target: c.target, Push: map[string][]string{"memory": {"8GiB"}},
		}
		if c.via != "" {
			o.Push["via"] = []string{c.via}
		}
		for scale, cells := range c.cells {
			o.Scale = scale
			plan, err := sweep.ParsePlan(file, text, o)
			require.NoError(t, err, "%s at %s", c.preset, scale)
			require.Equal(t, c.preset, plan.Name)
			list := plan.Cases()
			require.Len(t, list, cells, "%s at %s", c.preset, scale)
			for _, part := range plan.Parts {
				require.NotNil(t, part.Facts)
				require.NotEmpty(t, part.Facts.Points)
				require.NotEmpty(t, part.Facts.Machine)
				require.Contains(t, part.Facts.Source, "https://")
			}
			for _, cell := range list {
				p, given, err := config.FromValues(cell.Push, drivers, none, "")
				require.NoError(t, err)
				require.NotContains(t, given, "target")
				require.NoError(t, push.Check(&p, drivers), "%s at %s: %v", c.preset, scale, cell.Settings)
				require.NotContains(t, fmt.Sprint(cell.Settings), "hunter2")
			}
		}
	}
	for _, name := range sweep.Presets() {
		require.True(t, tested[name], "preset %s is not tested", name)
	}
}
