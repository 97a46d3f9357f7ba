package analysis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

func TestRedactKeepsWhatWasMeasured(t *testing.T) {
	for _, file := range []string{"four-methods.jsonl", "workers.jsonl", "two-parts.jsonl", "run-4.json"} {
		plain, clean := fixture(t, file), fixture(t, file)
		clean = analysis.Redact([]record.Record{clean})[0]
		with, without := analysis.Tables([]record.Record{plain}), analysis.Tables([]record.Record{clean})
		require.Len(t, without, len(with))
		for i := range with {
			require.Len(t, without[i].Points, len(with[i].Points))
			for j, p := range with[i].Points {
				require.Equal(t, p.RowsPerSecond, without[i].Points[j].RowsPerSecond)
				require.Equal(t, p.Settings, without[i].Points[j].Settings)
				require.Equal(t, p.Fact, without[i].Points[j].Fact)
			}
			require.Equal(t, with[i].Knees, without[i].Knees)
		}
		require.Equal(t, plain, fixture(t, file), "the record given is left as it is")
	}
}

func TestRedactedTargetsAreNumbered(t *testing.T) {
	r := sweep("target", []string{"postgres://anna@db1/orders", "mysql://otto@db2/orders", "postgres://anna@db3/orders"}, []float64{1}, []float64{2}, []float64{3})
	clean := analysis.Redact([]record.Record{r, r})
	want := []string{"postgres 1", "mysql 1", "postgres 2"}
	for _, c := range clean {
		require.Equal(t, want, c.Head.Parts[0].Axes[0].Values)
		for i, e := range c.Entries {
			require.Equal(t, want[i], e.Settings[0].Value)
		}
	}
	require.Empty(t, analysis.Compare(clean[0], clean[1]).Lost)
}

func TestRedactedTexts(t *testing.T) {
	for text, want := range map[string]string{
		"dial tcp 10.0.0.7:5432: connect: connection refused":                 "dial tcp ***: connect: connection refused",
		"dial tcp [fe80::1%eth0]:3306: i/o timeout":                           "dial tcp ***: i/o timeout",
		"lookup db.internal: no such host":                                    "lookup ***: no such host",
		"PUT https://bucket.s3.eu-west-1.amazonaws.com/run/1?sig=x failed":    "PUT *** failed",
		`FATAL: password authentication failed for user "otto"`:               "FATAL: password authentication failed for user ***",
		"Access denied for user 'otto'@'192.168.1.1' (using password: YES)":   "Access denied for user *** (using password: YES)",
		`relation "sales.orders" does not exist`:                              "relation *** does not exist",
		"open /var/run/postgresql/.s.PGSQL.5432: no such file":                "open ***: no such file",
		"node be2.cluster.local:8040 is down, be3:8040 too":                   "node *** is down, *** too",
		"disk full after 12 of 100 batches, 3.5 GiB":                          "disk full after 12 of 100 batches, 3.5 GiB",
		"ERROR 1205 (HY000): Lock wait timeout exceeded; try again":           "ERROR 1205 (HY000): Lock wait timeout exceeded; try again",
		"the proof of arrival found 1,999 of 2,000 rows in batch 7 (key 1-9)": "the proof of arrival found 1,999 of 2,000 rows in batch 7 (key 1-9)",
	} {
		r := record.Record{Head: record.Head{Parts: []record.Part{{}}}, Entries: []record.Entry{{Error: text}}}
		require.Equal(t, want, analysis.Redact([]record.Record{r})[0].Entries[0].Error)
	}
}

// A number may be a name, and is one where names stand.
func TestNumbersThatAreNames(t *testing.T) {
	r := sweep("table", []string{"20240101", "20240102"}, []float64{1}, []float64{2})
	r.Head.Parts[0].Push = map[string][]string{"rows": {"5000000"}, "buckets": {"8"}, "set": {"role=20240102", "innodb_file_per_table=1"}}
	p := r.Entries[0].Report
	p.Target.Table, p.Result.Error = "public.20240101", "20240101 is full after 12 of 100 batches"
	p.Target.Settings = map[string]string{"innodb_log_file_size": "100MB"}
	clean := analysis.Redact([]record.Record{r})[0]
	require.NotContains(t, printed(t, []record.Record{clean}), "20240101")
	require.Equal(t, []string{"table 1", "role 1"}, clean.Head.Parts[0].Axes[0].Values)
	require.Equal(t, map[string][]string{"rows": {"5000000"}, "buckets": {"8"}, "set": {"role=role 1", "innodb_file_per_table=1"}}, clean.Head.Parts[0].Push)
	require.Equal(t, "100MB", clean.Entries[0].Report.Target.Settings["innodb_log_file_size"])
	require.Equal(t, "*** is full after 12 of 100 batches", clean.Entries[0].Report.Result.Error)
}

// A plan leaves the schema to the server, which tells it: that makes no second table of one.
func TestOneTableHasOneNumber(t *testing.T) {
	r := sweep("table", []string{"sweep", "other", "twice"}, []float64{1, 1}, []float64{2}, []float64{3, 3})
	for i, table := range []string{`public."sweep"`, "public.sweep", "public.other", "a.twice", "b.twice"} {
		r.Entries[i].Report.Target.Table = table
	}
	clean := analysis.Redact([]record.Record{r})[0]
	require.Equal(t, []string{"table 1", "table 2", "table 3"}, clean.Head.Parts[0].Axes[0].Values)
	var found []string
	for _, e := range clean.Entries {
		found = append(found, e.Report.Target.Table)
	}
	require.Equal(t, []string{"table 1", "table 1", "table 2", "table 4", "table 5"}, found, "of a bare name in two schemas nobody knows which it is")
}

func TestFactsAreRedacted(t *testing.T) {
	r := sweep("target", []string{"postgres://anna@db1.shop.internal/orders"}, []float64{1})
	r.Entries[0].Report.Target.URL = r.Entries[0].Settings[0].Value
	r.Head.Parts[0].Facts = &record.Facts{
		Source: "Anna's wiki, https://wiki.shop.internal/x, mail to otto@shop.internal", Machine: "db1 with 8 cores at 10.1.2.3", Note: "as Otto told me on the phone",
		Points: []record.Fact{{At: map[string]string{"target": "postgres://anna@db1.shop.internal/orders", "table": "emil", "batch_rows": "5"}, RowsPerSecond: 7}},
	}
	clean := analysis.Redact([]record.Record{r})[0]
	text := strings.ToLower(printed(t, []record.Record{clean}))
	for _, name := range []string{"anna", "otto", "shop", "db1", "10.1.2.3", "emil"} {
		require.NotContains(t, text, name)
	}
	f := clean.Head.Parts[0].Facts
	require.Equal(t, map[string]string{"target": "postgres 1", "table": "table 1", "batch_rows": "5"}, f.Points[0].At)
	require.InDelta(t, 7, f.Points[0].RowsPerSecond, 0)
	require.Equal(t, "*** with 8 cores at ***", f.Machine)
	require.Equal(t, "as Otto told me on the phone", r.Head.Parts[0].Facts.Note, "the record given is left as it is")
}

// Whatever a host, user, database, table or bucket is called: none of it is left, wherever a server repeats it.
func TestNothingOfANameIsLeft(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for range 60 {
		names := map[string]string{}
		for _, what := range []string{"host", "domain", "user", "database", "schema", "table", "bucket", "prefix", "machine", "node"} {
			names[what] = name(random)
		}
		requireNothingLeft(t, names)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("db1", "anna", "orders")
	f.Add("x.y", "a b", "t'")
	f.Fuzz(func(t *testing.T, host, user, table string) {
		for _, s := range []string{host, user, table} {
			if len(s) < 6 || strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_", r) }) {
				t.Skip("a name of its own that no other text holds by chance")
			}
		}
		if strings.Contains(vocabulary(t), host) || strings.Contains(vocabulary(t), user) || strings.Contains(vocabulary(t), table) {
			t.Skip("a word that is there anyhow")
		}
		requireNothingLeft(t, map[string]string{"host": host, "user": user, "table": table, "domain": "qqzzdomain", "database": "qqzzbase",
			"schema": "qqzzschema", "bucket": "qqzzbucket", "prefix": "qqzzprefix", "machine": "qqzzmachine", "node": "qqzznode"})
	})
}

// vocabulary is all that is printed of a record that names nobody.
func vocabulary(t *testing.T) string {
	return strings.ToLower(printed(t, analysis.Redact([]record.Record{naming(map[string]string{})})))
}

func name(random *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	b := []byte("qz")
	for range 6 + random.IntN(6) {
		b = append(b, letters[random.IntN(len(letters))])
	}
	if random.IntN(3) == 0 {
		b = append(b, fmt.Sprintf("_%d", random.IntN(100))...)
	}
	return string(b)
}

func requireNothingLeft(t *testing.T, names map[string]string) {
	t.Helper()
	text := strings.ToLower(printed(t, analysis.Redact([]record.Record{naming(names)})))
	for what, n := range names {
		require.NotContains(t, text, strings.ToLower(n), "the %s", what)
	}
}

// printed is all that can be told of records: they themselves, their tables and their comparison.
func printed(t *testing.T, of []record.Record) string {
	t.Helper()
	text, err := json.Marshal([]any{of, analysis.Tables(of), analysis.Compare(of[0], of[0])})
	require.NoError(t, err)
	return string(text)
}

// naming is a record with names in every place where one may stand.
func naming(n map[string]string) record.Record {
	host := n["host"] + "." + n["domain"] + ".internal"
	target := fmt.Sprintf("postgres://%s@%s:5432,%s:5433/%s?host=%s", n["user"], host, n["node"], n["database"], n["node"])
	via := fmt.Sprintf("s3://%s/%s/x?endpoint=http%%3A%%2F%%2F%s%%3A9000&region=eu", n["bucket"], n["prefix"], host)
	table := n["schema"] + "." + n["table"]
	p := pushed(1e5, 512)
	p.Target.URL, p.Target.Via, p.Target.Endpoint, p.Target.Table = target, via, host+":5432", table
	p.Target.Settings["role"], p.Target.Settings["search_path"] = n["user"], n["schema"]
	p.Target.Settings["application_name"] = n["machine"]
	p.Plan.Options = map[string]string{"credential": n["user"] + "_key", "be": n["node"] + ":8040", "partition": n["prefix"], "unlogged": "true"}
	said := fmt.Sprintf(`%s: %s@%s cannot write "%s"."%s" (%s) for '%s', see %s, %s`, strings.ToUpper(n["host"]), n["user"], host, n["schema"], n["table"],
		n["database"], n["user"], via, n["node"])
	p.Result.Error, p.Warnings = said, []string{said}
	p.Verify.Problems, p.Verify.BadBatches = []string{said}, []report.BadBatch{{Detail: said}}
	axes := []record.Axis{{Name: "target", Values: []string{target, "mysql://" + n["node"] + "/" + n["database"]}}, {Name: "table", Values: []string{table}},
		{Name: "set.role", Values: []string{n["user"]}}}
	settings := []record.Setting{{Axis: "target", Value: target}, {Axis: "table", Value: table}, {Axis: "set.role", Value: n["user"]}}
	return record.Record{
		File: "/home/" + n["user"] + "/" + n["machine"] + ".jsonl",
		Head: record.Head{
			Schema: record.Schema, Name: "on-" + n["machine"], Title: "Sweep of " + host, Machine: record.Machine{Host: n["machine"] + "." + n["domain"]},
			Parts: []record.Part{{Name: n["table"], Title: "Into " + table, Cells: 2, Axes: axes, Push: map[string][]string{
				"target": {target}, "via": {via}, "table": {table}, "yes-drop": {table}, "set": {"role=" + n["user"], "work_mem=64MB"},
				"password-file": {"/home/" + n["user"] + "/pw"}, "tls-server-name": {host}, "rows": {"5"},
			}}},
		},
		Entries: []record.Entry{
			{Cell: 0, Status: record.Measured, Settings: settings, Report: p},
			{Cell: 0, Repeat: 1, Status: record.Failed, Settings: settings, Error: said},
		},
	}
}
