package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// presetCase is a preset on one kind of target, and how many cells it has at the scales cloud, laptop and ci.
type presetCase struct {
	preset, target    string
	via               string
	cloud, laptop, ci int
}

func presetCases() []presetCase {
	return []presetCase{
		{"singlestore-terabyte", "singlestore://admin:hunter2@h:3306/db", "", 1, 3, 1},
		{"singlestore-terabyte", "mariadb://u@h:3306/db", "", 1, 3, 1},
		{"singlestore-terabyte-pipeline", "singlestore://admin@h:3306/db", "s3://bucket/prefix", 1, 3, 1},
		{"yugabyte-rows-per-transaction", "yugabyte://u@h:5433/db", "", 23, 7, 3},
		{"yugabyte-rows-per-transaction", "postgres://u@h/db", "", 23, 11, 4},
		{"databend-four-methods", "databend://root@h:8000/default", "", 44, 16, 8},
		{"databend-copy-cluster", "databend://root@h:8000/default", "s3://bucket/prefix", 1, 3, 1},
		{"doris-group-commit", "doris://root@h:9030/db", "", 47, 23, 9},
		{"oracle-fast-ingest", "oracle://u@h:1521/service", "", 32, 12, 8},
	}
}

func (c presetCase) options(drivers *loader.Registry, scale string) sweep.Options {
	flags := map[string][]string{"memory": {"8GiB"}}
	if c.via != "" {
		flags["via"] = []string{c.via}
	}
	return sweep.Options{Sources: sweep.Sources{Drivers: drivers}, Scale: scale, Target: c.target, Push: flags}
}

// Every cell of every preset is a push that nothing but a server could refuse.
func TestPresets(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	none := func(string) (string, bool) { return "", false }
	tested := map[string]bool{}
	for _, c := range presetCases() {
		tested[c.preset] = true
		require.NotEmpty(t, sweep.PresetTitle(c.preset))
		for scale, cells := range map[string]int{"": c.cloud, "cloud": c.cloud, "laptop": c.laptop, "ci": c.ci} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.preset, c.target[:4], scale), func(t *testing.T) {
				file, text, err := sweep.Preset(c.preset)
				require.NoError(t, err)
				plan, err := sweep.ParsePlan(file, text, c.options(drivers, scale))
				require.NoError(t, err)
				require.Equal(t, c.preset, plan.Name)
				list := plan.Cases()
				require.Len(t, list, cells)
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
					require.NoError(t, push.Check(&p, drivers), "%v", cell.Settings)
					require.NotContains(t, fmt.Sprint(cell.Settings), "hunter2")
				}
			})
		}
	}
	for _, name := range sweep.Presets() {
		require.True(t, tested[name], "preset %s is not tested", name)
	}
}
