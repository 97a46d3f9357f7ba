package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/rows"
)

// newTables are the datasets whose row numbers are read in other ways than people's: small integers, two columns beside
// decimals, and a timestamp.
func newTables() []string { return []string{"pairs", "lineitem", "httplogs"} }

// rowsOf gives the first rows of a dataset, each value as a database shows it; every column of a load's table.
func rowsOf(t *testing.T, name string, n int) (columns []string, want [][]string) {
	t.Helper()
	d, err := dataset.New(name, dataset.Options{Seed: 1})
	require.NoError(t, err)
	block := rows.NewBlock(d.Schema())
	d.Fill(block, 0, n)
	d.Derive(block, 0)
	for i := range n {
		var row []string
		for c, column := range d.Schema().Columns {
			row = append(row, shown(column, &block.Columns[c], i))
		}
		want = append(want, row)
	}
	return d.Schema().Names(), want
}

// shown is a value as SELECT writes it in Databend, and the stand-in for Doris shows it.
func shown(c rows.Column, v *rows.Vector, i int) string {
	switch c.Type {
	case rows.Date:
		return time.Unix(v.Ints[i]*24*60*60, 0).UTC().Format(time.DateOnly)
	case rows.Timestamp:
		return time.UnixMicro(v.Ints[i]).UTC().Format("2006-01-02 15:04:05.000000")
	case rows.Decimal:
		unit := int64(1)
		for range c.Scale {
			unit *= 10
		}
		return fmt.Sprintf("%d.%0*d", v.Ints[i]/unit, c.Scale, v.Ints[i]%unit) // none of the datasets is below zero
	case rows.Int64:
		return strconv.FormatInt(v.Ints[i], 10)
	default:
		return string(v.Value(i))
	}
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

// Every method and format of Databend takes every dataset into the real engine.
func TestDatabendDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"streaming-load", "csv"}, {"streaming-load", "ndjson"}, {"streaming-load", "parquet"},
		{"insert", "csv"}, {"insert-no-presign", "ndjson"}, {"insert-no-presign", "parquet"},
		{"stage-load", "csv"}, {"stage-load", "parquet"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			d, f := newEngine(t), newFolder(t)
			flags := []string{"--method", c.method, "--format", c.format, "--seed", "1", "--workers", "3", "--batch-rows", "1001", "--verify", "full", "--verify-rows", "500"}
			switch c.method {
			case "insert":
				flags = append(flags, "--stage", d.stage(t, f))
			case "stage-load":
				flags = append(flags, "--via", f.target(), "--commit-batches", "4")
			}
			const total = 20_003
			for _, name := range newTables() {
				is := reportOf(t, d.push(append(flags, "--dataset", name, "--rows", strconv.Itoa(total))...).run(t).ends(t, 0))
				proven(t, is, total)
				assert.Equal(t, []string{c.method, c.format, name}, []string{is.Plan.Method, is.Plan.Format, is.Plan.Dataset})
				d.isDataset(t, name, name, total, func(column string) string { return "to_string(" + column + ")" })
			}
		})
	}
}

// The proof sees a decimal that is a cent off, a line that is another's, and a timestamp that is there twice.
func TestDatabendDatasetsSpoiled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, spoil, reason string }{
		{"lineitem", "UPDATE lineitem SET l_extendedprice = l_extendedprice + 0.01 WHERE l_orderkey = 7 AND l_linenumber = 2", ""},
		{"lineitem", "UPDATE lineitem SET l_linenumber = 3 WHERE l_orderkey = 7 AND l_linenumber = 2", "doubled"},
		{"lineitem", "DELETE FROM lineitem WHERE l_orderkey = 7 AND l_linenumber = 2", "short"},
		{"httplogs", "INSERT INTO httplogs SELECT * FROM httplogs WHERE ts = '2026-01-01 00:00:00.000025'", "doubled"},
		{"pairs", "UPDATE pairs SET s = s + 1 WHERE k = 25", ""},
	} {
		t.Run(c.data+" "+c.spoil[:6]+" "+c.reason, func(t *testing.T) {
			t.Parallel()
			d := newEngine(t)
			d.push("--dataset", c.data, "--seed", "1", "--rows", "200", "--batch-rows", "20", "--verify", "none").run(t).ends(t, 0)
			proven := reportOf(t, d.again(t, "verify", "--json", "--verify", "full").run(t).ends(t, 0))
			require.True(t, proven.Verify.OK)
			d.must(t, c.spoil)
			is := reportOf(t, d.again(t, "verify", "--json", "--verify", "full").run(t).ends(t, 4))
			assert.False(t, is.Verify.OK)
			if c.reason == "" { // only comparing rows shows it
				assert.Empty(t, is.Verify.BadBatches)
				return
			}
			require.Len(t, is.Verify.BadBatches, 1)
			assert.EqualValues(t, 1, is.Verify.BadBatches[0].Number)
		})
	}
}

// --create truncate empties the table that is there. What a run records is the table behind that: it can be resumed, and the
// proof shows that the run before it cannot.
func TestCreateTruncateInDatabend(t *testing.T) {
	t.Parallel()
	d := newEngine(t)
	flags := []string{"--dataset", "lineitem", "--seed", "1", "--batch-rows", "50", "--verify", "full", "--create", "truncate"}
	first := reportOf(t, d.push(append(flags, "--rows", "400")...).run(t).ends(t, 0))
	second := reportOf(t, d.push(append(flags, "--rows", "300")...).run(t).ends(t, 0))
	proven(t, second, 300)
	d.isDataset(t, "lineitem", "lineitem", 300, func(column string) string { return "to_string(" + column + ")" })
	d.push("--resume", second.Run.ID).run(t).ends(t, 0)
	d.push("--resume", first.Run.ID).run(t).ends(t, 4)

	d.must(t, "CREATE TABLE theirs (k BIGINT NOT NULL, r BIGINT NOT NULL, s BIGINT NOT NULL)", "INSERT INTO theirs VALUES (1, 2, 3)")
	theirs := []string{"--dataset", "pairs", "--table", "theirs", "--rows", "100", "--create", "truncate"}
	d.push(theirs...).run(t).ends(t, 5).says(t, "was not made by terapush", "not emptied")
	require.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM theirs"))
	d.push(append(theirs, "--yes-drop", "theirs")...).run(t).ends(t, 0)
	require.EqualValues(t, 100, d.number(t, "SELECT COUNT(*) FROM theirs"))
}
