package results_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

// Equal values get equal numbers in all records, so that what differs is still seen to.
func TestNamesAreNumbered(t *testing.T) {
	targets := func() results.Record {
		r := sweep("target", []string{"postgres://anna@db1/orders", "mysql://otto@db2/orders", "postgres://anna@db3/orders"}, []float64{1}, []float64{2}, []float64{3})
		r.Head.Parts[0].Facts = &results.Facts{Source: "an article of 2025", Machine: "8 cores", Points: []results.Fact{
			{At: map[string]string{"target": "mysql://otto@db2/orders", "table": "emil", "batch_rows": "5"}, Figures: map[string]float64{"rows_per_second": 7}},
		}}
		return r
	}
	clean := withoutNames(t, targets(), targets())
	want := []string{"postgres 1", "mysql 1", "postgres 2"}
	for _, c := range clean {
		part := c.Head.Parts[0]
		require.Equal(t, want, part.Axes[0].Values)
		for i, e := range c.Entries {
			require.Equal(t, want[i], e.Settings[0].Value)
		}
		require.Equal(t, &results.Facts{Source: "an article of 2025", Machine: "8 cores", Points: []results.Fact{
			{At: map[string]string{"target": "mysql 1", "table": "table 1", "batch_rows": "5"}, Figures: map[string]float64{"rows_per_second": 7}},
		}}, part.Facts, "what was published stays")
	}
	require.Empty(t, results.Compare(clean[0], clean[1], 0).Lost)
}

// A number may be a name, and is one where names stand.
func TestNumbersThatAreNames(t *testing.T) {
	r := sweep("table", []string{"20240101", "20240102"}, []float64{1}, []float64{2})
	r.Head.Parts[0].Push = map[string][]string{"rows": {"5000000"}, "buckets": {"8"}, "set": {"role=anna", "innodb_file_per_table=1"}}
	r.Head.Parts[0].Push["like"], r.Head.Parts[0].Push["dataset"] = []string{"20240101"}, []string{"20240101.yaml", "people", "preset:keys.yaml"}
	p := r.Entries[0].Report
	p.Plan.Files = &report.Files{Paths: []string{"/home/20240101/a b.csv"}}
	p.Target.Table = `public."20240101"`
	p.Target.Settings = map[string]string{"innodb_log_file_size": "100MB"}
	r = withoutNames(t, r)[0]
	require.NotContains(t, printed(t, []results.Record{r}), "20240101")
	require.Equal(t, []string{"table 1", "table 2"}, r.Head.Parts[0].Axes[0].Values)
	require.Equal(t, map[string][]string{
		"rows": {"5000000"}, "buckets": {"8"}, "set": {"role=role 1", "innodb_file_per_table=1"},
		"like": {"like 1"}, "dataset": {"dataset 1", "people", "preset:keys.yaml"},
	}, r.Head.Parts[0].Push)
	require.Equal(t, p.Target.Settings, r.Entries[0].Report.Target.Settings)
}

// Whatever a host, user, database, table or bucket is called: none of it is left, wherever a server repeats it. What
// terapush and the plan's author say stays.
func TestNothingOfANameIsLeft(t *testing.T) {
	names := map[string]string{}
	for _, what := range []string{"host", "domain", "user", "database", "schema", "table", "bucket", "prefix", "machine", "node"} {
		names[what] = "qz_" + what + "_7"
	}
	named := naming(names)
	before := printed(t, []results.Record{named})
	of := withoutNames(t, named)
	require.Equal(t, before, printed(t, []results.Record{named}), "a report may be shown and then kept")
	text, r := strings.ToLower(printed(t, of)), of[0]
	for _, output := range outputs(t, []results.Record{r, r}) {
		text += strings.ToLower(output)
	}
	for what, name := range names {
		require.NotContains(t, text, name, "the %s", what)
	}
	require.Equal(t, "My sweep", r.Head.Title)
	require.Equal(t, results.LeftOut, r.Entries[0].Report.Result.Error)
	require.EqualValues(t, 7, r.Entries[0].Report.Verify.BadBatches[0].Number)
	require.Equal(t, results.LeftOut, r.Entries[1].Error)
	require.Equal(t, "past the knee", r.Entries[2].Error)
}

func withoutNames(t *testing.T, of ...results.Record) []results.Record {
	t.Helper()
	shown, err := results.WithoutNames(of)
	require.NoError(t, err)
	return shown
}

// printed is all that can be told of records: they themselves, their tables and their comparison.
func printed(t *testing.T, of []results.Record) string {
	t.Helper()
	text, err := json.Marshal([]any{of, results.Tables(of), results.Compare(of[0], of[0], 0)})
	require.NoError(t, err)
	return string(text)
}

// naming is a record with names in every place where one may stand.
func naming(n map[string]string) results.Record {
	server := n["host"] + "." + n["domain"] + ".internal"
	target := fmt.Sprintf("postgres://%s@%s:5432,%s:5433/%s?host=%s", n["user"], server, n["node"], n["database"], n["node"])
	via := fmt.Sprintf("s3://%s/%s/x?endpoint=http%%3A%%2F%%2F%s%%3A9000&region=eu", n["bucket"], n["prefix"], server)
	table := n["schema"] + "." + n["table"]
	p := pushed(1e5)
	p.Target.URL, p.Target.Via, p.Target.Endpoint, p.Target.Table = target, via, server+":5432", table
	p.Target.Settings["role"], p.Target.Settings["search_path"] = n["user"], n["schema"]
	p.Target.Settings["application_name"] = n["machine"]
	p.Plan.Options = map[string]string{"credential": n["user"] + "_key", "backend-hosts": n["node"] + ":8040", "partition": n["prefix"], "unlogged": "true"}
	said := fmt.Sprintf(`%s: %s@%s cannot write "%s"."%s" (%s) for '%s', see %s, %s`, strings.ToUpper(n["host"]), n["user"], server, n["schema"], n["table"],
		n["database"], n["user"], via, n["node"])
	p.Result.Error, p.Result.Failures, p.Warnings = said, []report.Failure{{Error: said}}, []string{said}
	p.Verify.Problems, p.Verify.BadBatches = []string{said}, []report.BadBatch{{Number: 7, Detail: said}}
	axes := []results.Axis{{Name: "target", Values: []string{target, "mysql://" + n["node"] + "/" + n["database"]}}, {Name: "table", Values: []string{table},
		Settings: map[string]map[string][]string{table: {"table": {table}, "set.role": {n["user"]}}}},
		{Name: "set.role", Values: []string{n["user"]}}}
	settings := []results.Setting{{Axis: "target", Value: target}, {Axis: "table", Value: table}, {Axis: "set.role", Value: n["user"]}}
	return results.Record{
		File: "/home/" + n["user"] + "/" + n["machine"] + ".jsonl",
		Head: results.Head{
			Schema: results.Schema, Name: "mine", Title: "My sweep", Machine: host.Machine{Host: n["machine"] + "." + n["domain"]},
			Parts: []results.Part{{Cells: 2, Axes: axes, Push: map[string][]string{
				"target": {target}, "via": {via}, "table": {table}, "allow-drop": {table}, "staging": {via}, "set": {"role=" + n["user"], "work_mem=64MB"},
				"password-file": {"/home/" + n["user"] + "/pw"}, "tls-server-name": {server}, "rows": {"5"},
			}}},
		},
		Entries: []results.Entry{
			{Cell: 0, Status: results.Measured, Settings: settings, Report: p},
			{Cell: 0, Repeat: 1, Status: results.Failed, Settings: settings, Error: said},
			{Cell: 1, Status: results.Skipped, Settings: settings, Error: "past the knee"},
		},
	}
}
