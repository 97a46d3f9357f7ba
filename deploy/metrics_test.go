package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/pkg/event"
)

// A dashboard whose metric was renamed shows an empty panel, and an alert never fires: nobody notices either.
func TestDashboardAndAlertsAskForMetricsThatExist(t *testing.T) {
	for file, queries := range map[string][]string{
		"grafana/terapush.json": dashboardQueries(t, "grafana/terapush.json"),
		"prometheus/alerts.yml": alertQueries(t, "prometheus/alerts.yml"),
	} {
		t.Run(file, func(t *testing.T) {
			require.NotEmpty(t, queries)
			known := exported(t)
			for _, query := range queries {
				for _, asked := range selectors(query) {
					require.True(t, known[asked.metric] != nil, "there is no metric %s: %s", asked.metric, query)
					for label, values := range asked.labels {
						require.Subset(t, known[asked.metric][label], values, "label %s in %s", label, query)
					}
				}
			}
		})
	}
}

// A variable that a query leaves out chooses nothing there. Only terapush_run_info has the run, so every other metric is
// joined with it.
func TestDashboardQueriesUseItsVariables(t *testing.T) {
	var dashboard struct {
		Templating struct{ List []struct{ Name, Type string } }
	}
	require.NoError(t, json.Unmarshal(read(t, "grafana/terapush.json"), &dashboard))
	var names []string
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			names = append(names, v.Name)
		}
	}
	require.Equal(t, []string{"job", "run", "instance"}, names)
	for _, query := range dashboardQueries(t, "grafana/terapush.json") {
		if strings.HasPrefix(query, "label_values(") { // what fills the variables
			continue
		}
		asked := selectors(query)
		filter := func(name string) int { return strings.Count(query, fmt.Sprintf(`%s=~"$%s"`, name, name)) }
		require.Equal(t, len(asked), filter("job"), query)
		require.Equal(t, len(asked), filter("instance"), query)
		runs := 0
		for _, one := range asked {
			if one.metric == "terapush_run_info" {
				runs++
			}
		}
		require.Equal(t, runs, filter("run"), query)
		require.Equal(t, len(asked)-runs, runs, "a metric is not joined with the run: %s", query)
	}
}

func TestPromtool(t *testing.T) {
	_, err := exec.LookPath("promtool")
	needs(t, err == nil, "promtool is not installed: scripts/tools promtool")
	panels := rulesOf(t, dashboardQueries(t, "grafana/terapush.json"))
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}, {"check", "rules", panels},
	} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = "prometheus"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", cmd, out)
	}
}

// rulesOf writes a dashboard's queries into a file of recording rules, so that promtool reads them.
func rulesOf(t *testing.T, queries []string) (path string) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$run", ".*", "$instance", ".*")
	for i, q := range queries {
		if !strings.HasPrefix(q, "label_values(") { // Grafana's own
			rules = append(rules, rule{Record: fmt.Sprintf("panel:%d", i), Expr: variables.Replace(q)})
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "panels.json") // JSON is YAML
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// exported are the series that a run shows from its first scrape on: by metric and label, the label's values.
func exported(t *testing.T) map[string]map[string][]string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		live.NewMetrics(live.Info{}, func() event.Snapshot { return event.Snapshot{} }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	families, err := registry.Gather()
	require.NoError(t, err)
	known := map[string]map[string][]string{}
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetMetric()[0].GetHistogram() != nil {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
		}
		for _, name := range names {
			known[name] = map[string][]string{}
			for _, m := range f.GetMetric() {
				for _, label := range m.GetLabel() {
					known[name][label.GetName()] = append(known[name][label.GetName()], label.GetValue())
				}
			}
		}
	}
	return known
}

// selector is a metric with the labels' values that a query names, without those that the scrape adds.
type selector struct {
	metric string
	labels map[string][]string
}

func selectors(query string) (all []selector) {
	metric := regexp.MustCompile(`\b((?:terapush|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	equal := regexp.MustCompile(`(\w+)\s*=~?\s*"([^"]*)"`)
	for _, found := range metric.FindAllStringSubmatch(query, -1) {
		s := selector{found[1], map[string][]string{}}
		for _, m := range equal.FindAllStringSubmatch(found[2], -1) {
			if !strings.HasPrefix(m[2], "$") { // a variable of the dashboard
				s.labels[m[1]] = append(s.labels[m[1]], strings.Split(m[2], "|")...)
			}
		}
		all = append(all, s)
	}
	return all
}

func dashboardQueries(t *testing.T, path string) (all []string) {
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
		Templating  struct{ List []struct{ Definition string } }
	}
	require.NoError(t, json.Unmarshal(read(t, path), &dashboard))
	for _, p := range dashboard.Panels {
		if p.Type == "row" { // a heading
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			require.NotEmpty(t, selectors(target.Expr), "no metric in panel %q", p.Title)
			all = append(all, target.Expr)
		}
	}
	for _, a := range dashboard.Annotations.List {
		all = append(all, a.Expr)
	}
	for _, v := range dashboard.Templating.List {
		if v.Definition != "" { // the choice of a data source has none
			all = append(all, v.Definition)
		}
	}
	return all
}

func alertQueries(t *testing.T, path string) (all []string) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(read(t, path), &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			require.NotEmpty(t, selectors(r.Expr), "no metric in alert %s", r.Alert)
			all = append(all, r.Expr)
		}
	}
	return all
}

func read(t *testing.T, path string) []byte {
	text, err := os.ReadFile(filepath.FromSlash(path))
	require.NoError(t, err)
	return text
}
