package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/report"
)

// newTables are the datasets whose row numbers are read in other ways than people's: small integers, two columns beside
// decimals, and a timestamp.
func newTables() []string { return []string{"pairs", "lineitem", "httplogs"} }

// rowsOf gives the first rows of a dataset, each value as a database shows it; every column of a load's table.
func rowsOf(t *testing.T, name string, n int) (columns []string, want [][]string) {
	t.Helper()
	l := dataLoad(name, int64(n), 1, 0)
	row := l.row(t)
	for i := range n {
		want = append(want, row(int64(i)))
	}
	return l.data(t).Schema().Names(), want
}

// isDataset asks the server, by another client than ours, for the first rows in the order of their numbers.
func (d *database) isDataset(t *testing.T, name, table string, total int64, text func(column string) string) {
	t.Helper()
	require.Equal(t, total, d.number(t, "SELECT COUNT(*) FROM "+table), "rows in %s", table)
	columns, want := rowsOf(t, name, int(min(total, 500)))
	order := map[string]string{"pairs": "k", "lineitem": "l_orderkey, l_linenumber", "httplogs": "ts"}[name]
	for i, c := range columns {
		columns[i] = text(c)
	}
	got, to := make([]string, len(columns)), make([]any, len(columns))
	for i := range got {
		to[i] = &got[i]
	}
	n := 0
	require.NoError(t, d.query(fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT %d", strings.Join(columns, ", "), table, order, len(want)),
		func(scan func(...any) error) error {
			if err := scan(to...); err != nil {
				return err
			}
			if !slices.Equal(want[n], got) {
				return fmt.Errorf("row %d is %q, want %q", n, got, want[n])
			}
			n++
			return nil
		}))
	require.Equal(t, len(want), n)
}

// proven asserts that the run ended well and every row was found.
func proven(t *testing.T, is report.Report, rows int64) {
	t.Helper()
	assert.Equal(t, report.OK, is.Result.Outcome)
	assert.Equal(t, []any{"full", true, rows, rows}, []any{is.Verify.Mode, is.Verify.OK, is.Verify.ExpectedRows, is.Verify.FoundRows})
	assert.Positive(t, is.Verify.SampledRows)
	assert.Equal(t, rows, is.Result.Rows)
	assert.Equal(t, "exactly-once", is.Plan.Delivery)
}

// Every method and format of Doris takes every dataset into the stand-in.
func TestDorisDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"stream-load", "doriscsv"}, {"stream-load", "ndjson"}, {"stream-load", "parquet"}, {"insert", "values"},
		{"s3-load", "doriscsv"}, {"s3-load", "parquet"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			o, f := doris.Options{Backends: 2}, (*folder)(nil)
			if c.method == "s3-load" {
				f = newFolder(t)
				o.Objects = reader{}
			}
			s := newCluster(t, o)
			flags := []string{"--method", c.method, "--format", c.format, "--seed", "1", "--workers", "3", "--batch-rows", "501", "--verify", "full"}
			if f != nil {
				flags = append(flags, "--via", f.target(), "--commit-batches", "3")
			}
			const total = 3_003
			for _, name := range newTables() {
				is := reportOf(t, s.push(append(flags, "--dataset", name, "--rows", strconv.Itoa(total))...).run(t).ends(t, 0))
				proven(t, is, total)
				s.isDataset(t, name, name, total, func(column string) string { return column })
			}
		})
	}
}

// --primary-key makes a key of all that a row's number is read from: with the first column alone the server would keep one
// line of each order.
func TestDorisPrimaryKeyOfTwoColumns(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	is := reportOf(t, s.push("--dataset", "lineitem", "--seed", "1", "--rows", "400", "--primary-key", "--verify", "full").run(t).ends(t, 0))
	proven(t, is, 400)
	var definition string
	require.NoError(t, s.query("SHOW CREATE TABLE lineitem", func(scan func(...any) error) error {
		var name string
		return scan(&name, &definition)
	}))
	assert.Contains(t, definition, "UNIQUE KEY(`l_orderkey`, `l_linenumber`)")
}

// The loads that the presets of group commit are made of: one row and a hundred a statement, many workers, short intervals.
func TestDorisGroupCommitOfItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, mode  string
		rows, batch   int
		workers, wait int
	}{
		{"insert", "async", 6000, 100, 30, 100}, {"insert", "sync", 1000, 1, 500, 50}, {"insert", "off", 300, 1, 30, 50},
		{"stream-load", "sync", 4200, 70, 30, 20}, {"stream-load", "async", 2100, 70, 10, 50}, {"stream-load", "off", 2100, 70, 10, 20},
	} {
		t.Run(fmt.Sprint(c.method, " ", c.mode), func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{Backends: 3})
			is := reportOf(t, s.push("--dataset", "lineitem", "--seed", "1", "--method", c.method, "--group-commit", c.mode,
				"--group-commit-interval-ms", strconv.Itoa(c.wait), "--rows", strconv.Itoa(c.rows), "--batch-rows", strconv.Itoa(c.batch),
				"--workers", strconv.Itoa(c.workers), "--verify", "full").run(t).ends(t, 0))
			assert.True(t, is.Verify.OK)
			assert.Equal(t, []any{c.workers, int64(c.rows), c.mode + "_mode"}, []any{is.Plan.Workers, is.Verify.FoundRows, is.Target.Settings["group_commit"]})
			assert.Equal(t, map[bool]string{true: "exactly-once", false: "at-least-once"}[c.mode == "off"], is.Plan.Delivery)
			if c.mode == "async" {
				assert.Positive(t, is.Phases.Finish, "the time until the rows could be read")
			}
			s.isDataset(t, "lineitem", "lineitem", int64(c.rows), func(column string) string { return column })
		})
	}
}

// --create truncate empties the table that is there. What a run records is the table behind that: it can be resumed, and the
// run before it cannot where the server tells the two apart.
func TestCreateTruncateOverHTTP(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (*database, func(invocation) invocation){
		"databend": func(t *testing.T) (*database, func(invocation) invocation) {
			return newEngine(t), func(i invocation) invocation { return i }
		},
		"doris": func(t *testing.T) (*database, func(invocation) invocation) {
			return newCluster(t, doris.Options{}).database, knowing
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, as := open(t)
			flags := []string{"--dataset", "lineitem", "--seed", "1", "--batch-rows", "50", "--verify", "full", "--create", "truncate"}
			first := reportOf(t, as(d.push(append(flags, "--rows", "400")...)).run(t).ends(t, 0))
			second := reportOf(t, as(d.push(append(flags, "--rows", "300")...)).run(t).ends(t, 0))
			proven(t, second, 300)
			d.isDataset(t, "lineitem", "lineitem", 300, func(column string) string {
				return map[string]string{"databend": "to_string(" + column + ")"}[name] + map[string]string{"doris": column}[name]
			})
			as(d.push("--resume", second.Run.ID)).run(t).ends(t, 0)
			code := map[string]int{"databend": 4, "doris": 5}[name] // the proof tells where the identity does not
			as(d.push("--resume", first.Run.ID)).run(t).ends(t, code)

			d.must(t, "CREATE TABLE theirs "+map[string]string{
				"databend": "(k BIGINT NOT NULL, r BIGINT NOT NULL, s BIGINT NOT NULL)",
				"doris":    `(k BIGINT NOT NULL, r BIGINT NOT NULL, s BIGINT NOT NULL) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")`,
			}[name])
			d.must(t, "INSERT INTO theirs VALUES (1, 2, 3)")
			theirs := []string{"--dataset", "pairs", "--table", "theirs", "--rows", "100", "--create", "truncate"}
			as(d.push(theirs...)).run(t).ends(t, 5).says(t, "was not made by terapush", "not emptied")
			require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM theirs"))
			as(d.push(append(theirs, "--yes-drop", "theirs")...)).run(t).ends(t, 0)
			require.EqualValues(t, 100, d.number(t, "SELECT COUNT(*) FROM theirs"))
		})
	}
}
