package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/report"
)

const shopFile = `version: 1
tables:
  orders:
    rows: 200
    columns: {id: {type: bigint, sequence: {start: 1}}, customer: {ref: customers.id}}
  customers:
    rows: 100
    columns: {id: {type: bigint, sequence: {start: 1}}, by: {ref: orders.id, nulls: 50%}}
`

// A run of several tables is one run to whoever lists, verifies and forgets it, and its parts are found by it.
func TestTables(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shopFile), 0o600))
	page := filepath.Join(t.TempDir(), "page.html")

	r := s.run("push", "discard://", "--dataset", file, "--times", "0.1", "--report", page)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "ok: 30 of 30 rows in 2 tables, in ")
	require.Regexp(t, `(?s)customers +ok +10 .*orders +ok +20 `, r.stdout)
	require.Contains(t, r.stdout, "\nverify ok: ack · 2 tables · 30 of 30 rows acknowledged\n")
	require.Contains(t, r.stderr, "column by of table customers is NULL in all rows")
	for _, want := range []string{"<h1>30 rows into 2 tables of ", "<h2>customers: 10 rows</h2>", "<h2>orders: 20 rows</h2>"} {
		require.Contains(t, read(t, page), want)
	}

	var list cli.RunList
	require.NoError(t, json.Unmarshal([]byte(s.run("runs", "--json").stdout), &list))
	require.Len(t, list.Runs, 3)
	whole := list.Runs[0]
	require.Equal(t, []any{"2 tables", "loaded", int64(30), int64(30)}, []any{whole.Table, whole.State, whole.Rows, whole.PlannedRows})
	require.Equal(t, []string{whole.Run + ".1", whole.Run + ".2"}, []string{list.Runs[1].Run, list.Runs[2].Run})

	changed := strings.Replace(shopFile, "rows: 100", "rows: 110", 1)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	r = s.run("push", "discard://", "--resume", "last", "--dataset", file)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "table customers of run "+whole.Run+" has begun, so that it cannot change: rows was 10, now 11")
	added := shopFile + "  later: {rows: 50, columns: {id: {type: bigint, sequence: {start: 1}}, of: {ref: orders.id}}}\n"
	require.NoError(t, os.WriteFile(file, []byte(added), 0o600))
	r = s.run("push", "discard://", "--resume", "last", "--dataset", file)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "ok: 35 of 35 rows in 3 tables")

	require.NoError(t, os.Remove(file))
	r = s.run("push", "discard://", "--resume", whole.Run[:20])
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `customers +ok +10`, r.stdout)

	r = s.run("verify", "discard://", "--run", "last", "--json")
	require.Zero(t, r.code, r.stderr)
	var is report.Tables
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &is))
	require.Equal(t, []any{report.TablesSchema, whole.Run, report.OK, 3}, []any{is.Schema, is.Run, is.Result.Outcome, len(is.Tables)})

	for command, says := range map[string]string{
		"forget --run " + whole.Run + ".1":               "is a part of run " + whole.Run + ": forget that one",
		"verify discard:// --run last --dataset " + file: "--dataset cannot change in run " + whole.Run,
		"push discard:// --resume last --rows 5":         "--rows cannot change in run " + whole.Run,
	} {
		r := s.run(strings.Fields(command)...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, says, command)
	}
	require.Zero(t, s.run("forget", "--run", "last").code)
	require.NotContains(t, s.run("runs").stdout, whole.Run)
}

// What takes one table says how to name it, and what the file says nobody says again.
func TestTablesAreNotForEveryCommand(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shopFile), 0o600))
	one := "has 2 tables, and this takes one: name it, as --dataset " + file + "#customers"
	for command, says := range map[string]string{
		"doctor discard:// --dataset FILE":                one,
		"tune discard:// --dataset FILE":                  one,
		"push discard:// --dataset FILE --table x":        "--table is not for a file of several tables",
		"push discard:// --dataset FILE --append":         "--append is not for a file of several tables",
		"push discard:// --dataset FILE --bytes 1MiB":     "--bytes is not for a file of several tables",
		"push discard:// --dataset FILE#items":            `table items: there is customers, orders`,
		"push discard:// --dataset FILE#orders --times 2": "--times is for a file of several tables",
		"push discard:// --times -1":                      "write a number above 0, as 0.1 or 20",
		"preview FILE --table ordres":                     "table ordres: did you mean orders?",
	} {
		r := s.run(strings.Fields(strings.ReplaceAll(command, "FILE", file))...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, says, command)
	}

	r := s.run("preview", file)
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?s)customers +100 .*orders +200 `, r.stdout)
	require.Contains(t, s.run("preview", file, "--table", "orders").stdout, "drawn")
	require.Equal(t, 2, strings.Count(s.run("push", "discard://", "--dataset", file, "--dry-run").stdout, "dry run: "))
	require.Zero(t, s.run("push", "discard://", "--dataset", file+"#orders", "--rows", "7").code)
}
