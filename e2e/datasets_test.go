package e2e_test

import (
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/rows"
)

// The datasets pairs, lineitem and httplogs: short rows, decimals and a key of two columns, a key that is a timestamp.

// dataLoad is a load of the dataset of that name into the table of that name.
func dataLoad(name string, n, batchRows, first int64) load {
	return load{rows: n, batchRows: batchRows, seed: 1 + uint64(first), first: first, table: name}
}

// dataFlags are the command line's for it, but for the first key, which a test may leave to terapush.
func (l load) dataFlags(more ...string) []string {
	flags := []string{"--dataset", l.table, "--rows", fmt.Sprint(l.rows), "--batch-rows", fmt.Sprint(l.batchRows), "--seed", fmt.Sprint(l.seed)}
	return append(flags, more...)
}

func (l load) dataset(t *testing.T) dataset.Dataset {
	t.Helper()
	data, err := dataset.New(l.table, dataset.Options{Seed: l.seed})
	require.NoError(t, err)
	return data
}

// dataRow gives row i of the load, as texts in the schema's order.
func (l load) dataRow(t *testing.T) func(i int64) []string {
	data := l.dataset(t)
	columns := data.Schema().Columns
	block := rows.NewBlock(data.Schema())
	return func(i int64) []string {
		dataset.Row(block, data, l.first, i, 0)
		row := make([]string, len(columns))
		for c, column := range columns {
			switch v := &block.Columns[c]; {
			case column.Type.Variable():
				row[c] = string(v.Value(0))
			case column.Type == rows.Decimal:
				row[c] = new(big.Rat).SetFrac64(v.Ints[0], 100).FloatString(2) // all of them have two digits behind the point
			default:
				row[c] = textOf(column.Type, v.Ints[0])
			}
		}
		return row
	}
}

// areData asks the server by its own client: every row of the loads once, every byte of them, and no other. The loads
// follow each other by their keys.
func (d *database) areData(t *testing.T, loads ...load) {
	t.Helper()
	schema := loads[0].dataset(t).Schema()
	columns := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		switch {
		case c.Type == rows.Timestamp:
			columns[i] = timeAsText(d.kind)
		case c.Type.Variable():
			columns[i] = c.Name
		default:
			columns[i] = fmt.Sprintf("CAST(%s AS CHAR(30))", c.Name)
			if d.kind == postgres { // which pads a CHAR with blanks
				columns[i] = fmt.Sprintf("CAST(%s AS text)", c.Name)
			}
		}
	}
	var keys []string
	for _, term := range schema.Number {
		keys = append(keys, schema.Dataset+"."+schema.Columns[term.Column].Name) // the column, not the text of the same name
	}
	of, n := 0, int64(0)
	want := loads[0].dataRow(t)
	got := make([]string, len(columns))
	to := make([]any, len(columns))
	for i := range got {
		to[i] = &got[i]
	}
	query := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(columns, ", "), schema.Dataset, strings.Join(keys, ", "))
	require.NoError(t, d.query(query, func(scan func(...any) error) error {
		if n == loads[of].rows && of+1 < len(loads) {
			of, n = of+1, 0
			want = loads[of].dataRow(t)
		}
		if err := scan(to...); err != nil {
			return err
		}
		if row := want(n); n >= loads[of].rows || !slices.Equal(row, got) {
			return fmt.Errorf("row %d of load %d is %q, want %q", n, of, got, row)
		}
		n++
		return nil
	}), query)
	require.Equal(t, []int64{int64(len(loads) - 1), loads[of].rows}, []int64{int64(of), n}, "the last load's last row")
}

// Every method, in every format that it takes, with and without a primary key: a load that begins and ends within an
// order, and one behind it whose keys terapush finds. Both are proven, and proven again without the source.
func TestDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  kind
		flags string
	}{
		{postgres, "--method copy"},
		{postgres, "--method copy --format csv --primary-key"},
		{postgres, "--method copy --format pgtext --unlogged"},
		{postgres, "--method insert --primary-key"},
		{mariaDB, "--method load-data"},
		{mariaDB, "--method insert --primary-key"},
		{mySQL, "--method load-data --primary-key"},
		{mySQL, "--method insert"},
	} {
		t.Run(string(c.kind)+" "+c.flags, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"pairs", "lineitem", "httplogs"} {
				t.Run(name, func(t *testing.T) {
					d := newDatabase(t, c.kind)
					flags := strings.Fields(c.flags)
					loads := []load{dataLoad(name, 3001, 250, 1003), dataLoad(name, 1102, 250, 4004)}
					for i, l := range loads {
						more := append(slices.Clone(flags), "--workers", "3", "--verify", "full", "--verify-rows", "700")
						if i == 0 {
							more = append(more, "--first-key", fmt.Sprint(l.first))
						} else {
							d.push(l.dataFlags(flags...)...).fails(t, "holds rows", "--append")
							more = append(more, "--append")
						}
						is := reportOf(t, d.push(l.dataFlags(more...)...).run(t).ends(t, 0))
						assert.Equal(t, []any{report.OK, name, "exactly-once", l.first},
							[]any{is.Result.Outcome, is.Plan.Dataset, is.Plan.Delivery, is.Plan.FirstKey})
						assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
						assert.Zero(t, is.Result.Retries+is.Result.Duplicates+is.Result.Unknown+is.Result.Missing)
						assert.Equal(t, report.Verify{
							Mode: "full", Ran: true, OK: true, ExpectedRows: l.rows, FoundRows: l.rows, SampledRows: 700,
							BadBatches: []report.BadBatch{}, Problems: []string{},
						}, is.Verify)

						again := invocation{args: []string{"verify", d.target(), "--run", is.Run.ID, "--state-dir", d.state, "--json", "--verify", "full"}}
						later := reportOf(t, again.run(t).ends(t, 0))
						assert.Equal(t, []any{true, l.rows}, []any{later.Verify.OK, later.Verify.FoundRows})
					}
					d.areData(t, loads...)
				})
			}
		})
	}
}

// The key of lineitem is both columns: an order's lines share the first one.
func TestDatasetKeys(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.push(dataLoad("lineitem", 800, 250, 0).dataFlags("--primary-key")...).run(t).ends(t, 0)
		keyed := "SELECT COUNT(*) FROM information_schema.key_column_usage WHERE table_name = 'lineitem' AND table_schema = "
		if d.kind == postgres {
			keyed += "'public'"
		} else {
			keyed += "DATABASE()"
		}
		assert.EqualValues(t, 2, d.number(t, keyed+" AND column_name IN ('l_orderkey', 'l_linenumber')"))
		assert.Error(t, d.exec("INSERT INTO lineitem SELECT * FROM lineitem WHERE l_orderkey = 5 AND l_linenumber = 2"))
	})
}

// What is not as it was sent is found.
func TestDatasetsThatAreDamaged(t *testing.T) {
	for name, c := range map[string]struct{ damage, says string }{
		"a row is gone": {"DELETE FROM lineitem WHERE l_orderkey = 100 AND l_linenumber = 3", "799 rows found, 799 different ones, 800 expected; wrong batches: 1"},
		"a row is another": {
			"UPDATE lineitem SET l_linenumber = 9 WHERE l_orderkey = 100 AND l_linenumber = 3",
			"800 rows found, 799 different ones, 800 expected; wrong batches: 1",
		},
		"a cent more": {"UPDATE lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey = 100", "wrong batches: 0, wrong rows of those read back: 4 of 800"},
	} {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, d *database) {
				is := reportOf(t, d.push(dataLoad("lineitem", 800, 250, 0).dataFlags("--verify", "full")...).run(t).ends(t, 0))
				d.must(t, c.damage)
				again := invocation{args: []string{"verify", d.target(), "--run", is.Run.ID, "--state-dir", d.state, "--verify", "full"}}
				again.run(t).ends(t, 4).says(t, c.says)
			})
		})
	}
}

// A timestamp as the key: killed in the middle, resumed, and exact.
func TestTimestampsKilledAndResumed(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		method := map[kind]string{postgres: "copy", mariaDB: "load-data", mySQL: "load-data"}[d.kind]
		for _, m := range []string{method, "insert"} {
			t.Run(m, func(t *testing.T) {
				d := newDatabase(t, d.kind)
				l := dataLoad("httplogs", 30_000, 200, 0)
				p := d.push(l.dataFlags("--method", m, "--workers", "4", "--max-rate", "1MiB/s")...).start(t)
				d.untilClaims(t, p, l.batches()/3)
				_ = p.Process.Kill()
				<-p.done
				require.Less(t, d.claims(), l.batches())
				r := d.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
				assert.Less(t, r.took, 30*time.Second)
				is := reportOf(t, r)
				assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Result.Rows})
				d.areData(t, l)
			})
		}
	})
}

// The table stays, with what somebody has made of it, and holds the second load alone; a resume finds it to be the run's.
func TestCreateTruncate(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		first, second := dataLoad("pairs", 1000, 100, 0), dataLoad("pairs", 20_000, 100, 0)
		second.seed = 9
		d.push(first.dataFlags("--create", "truncate")...).run(t).ends(t, 0) // made, since it is missing
		d.must(t, "CREATE INDEX mine ON pairs (r)")
		d.state = filepath.Join(t.TempDir(), "state")

		p := d.push(second.dataFlags("--create", "truncate", "--workers", "2", "--max-rate", "150KiB/s")...).start(t)
		d.untilClaims(t, p, second.batches()/4)
		_ = p.Process.Kill()
		<-p.done
		d.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
		d.areData(t, second)
		d.must(t, map[kind]string{postgres: "DROP INDEX mine", mariaDB: "DROP INDEX mine ON pairs", mySQL: "DROP INDEX mine ON pairs"}[d.kind])

		d.must(t, "CREATE TABLE precious (k BIGINT NOT NULL, r BIGINT NOT NULL, s BIGINT NOT NULL)", "INSERT INTO precious VALUES (1, 2, 3)")
		d.push(second.dataFlags("--create", "truncate", "--table", "precious")...).fails(t, "was not made by terapush")
		assert.EqualValues(t, 1, d.number(t, "SELECT COUNT(*) FROM precious"))
		d.push(first.dataFlags("--create", "truncate", "--table", "precious", "--yes-drop", "precious", "--verify", "full")...).run(t).ends(t, 0)
		assert.Equal(t, first.rows, d.number(t, "SELECT COUNT(*) FROM precious"))
	})
}
