package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
)

// Every method puts every dataset into the servers, in every format that it takes, with and without a primary key: a load
// that begins and ends within an order, and one behind it whose keys terapush finds.
func TestDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                  kind
		method, format, flags string
	}{
		{postgres, "copy", "pgbinary", ""},
		{postgres, "copy", "csv", "--primary-key"},
		{postgres, "copy", "pgtext", "--unlogged"},
		{postgres, "insert", "pgvalues", "--primary-key"},
		{mariaDB, "load-data", "tsv", ""},
		{mariaDB, "insert", "values", "--primary-key"},
		{mySQL, "load-data", "tsv", "--primary-key"},
		{mySQL, "insert", "values", ""},
		{databend, "streaming-load", "csv", ""},
		{databend, "streaming-load", "ndjson", ""},
		{databend, "insert", "ndjson", ""},
		{databend, "insert-no-presign", "parquet", ""},
		{databend, "stage-load", "parquet", "--commit-batches 4"},
	} {
		t.Run(strings.Join([]string{string(c.kind), c.method, c.format, c.flags}, " "), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, c.kind)
			flags := append(strings.Fields(c.flags), "--method", c.method, "--format", c.format,
				"--workers", "3", "--verify", "full", "--verify-rows", "700")
			names, f := []string{"pairs", "lineitem", "httplogs", "journal", "documents"}, (*folder)(nil)
			if c.kind == databend {
				names[4], f = "people", newFolder(t)
				switch c.method {
				case "insert":
					flags = append(flags, "--stage", d.stage(t, f))
				case "stage-load":
					flags = append(flags, "--staging", f.target())
				}
			}
			for _, name := range names {
				loads := []load{dataLoad(name, 3001, 250, 1003), dataLoad(name, 1102, 250, 4004)}
				for i := range loads {
					l := &loads[i]
					if name == "documents" {
						l.payload, l.kind = 100, "text"
					}
					args := l.flags(flags...)
					if i > 0 && c.kind == databend { // which sets no keys aside
						args = append(args, "--append")
					} else if i > 0 {
						args = l.unplaced(append(flags, "--append")...)
					}
					r := d.push(args...).run(t).ends(t, 0)
					is := reportOf(t, r)
					proven(t, is, l.rows)
					assert.Equal(t, []any{c.method, c.format, name, l.first},
						[]any{is.Plan.Method, is.Plan.Format, is.Plan.Dataset, is.Plan.FirstKey})
					assert.Equal(t, []int64{l.batches(), 700}, []int64{is.Result.Batches, is.Verify.SampledRows})
					if f != nil {
						d.keepsSecrets(t, r.all())
						assert.Empty(t, f.list(t), "objects in the store")
					}
				}
				d.isExact(t, loads...)
			}
		})
	}
}

// A proof later, from the run's record alone, finds what became of the rows, and in which batch.
func TestProofFindsDamage(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]struct{ damage, says, where string }{
		"documents": {
			{
				"UPDATE documents SET payload = CONCAT('~', SUBSTR(payload, 2)) WHERE document_id = 7", // a byte
				"wrong batches: 0, wrong rows of those read back: 1 of 800", "row 7 differs in column payload at byte 0: 0x7e",
			},
			{ // two rows of different batches change places
				"UPDATE documents SET document_id = 790 - document_id WHERE document_id IN (30, 760)",
				"wrong batches: 0, wrong rows of those read back: 3 of 800", "row 760 differs in column payload",
			},
			{
				"DELETE FROM documents WHERE document_id = 123",
				"799 rows found, 800 expected; wrong batches: 1", "batch 2 (keys 100 to 149)",
			},
			{ // the right number of rows, one of them twice
				"INSERT INTO documents SELECT document_id, payload FROM documents WHERE document_id = 124",
				"800 rows found, 800 expected; wrong batches: 1", "batch 2 (keys 100 to 149)",
			},
		},
		"lineitem": {
			{
				"UPDATE lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey = 100",
				"wrong batches: 0, wrong rows of those read back: 4 of 800", "column l_tax",
			},
			{
				"UPDATE lineitem SET l_linenumber = 4 WHERE l_orderkey = 100 AND l_linenumber = 3",
				"800 rows found, 800 expected; wrong batches: 1", "column l_tax",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onServers(t, append(sqlServers(), databend), func(t *testing.T, d *database) {
				l := dataLoad(name, 800, 50, 0)
				if name == "documents" {
					l.payload, l.kind = 100, "text"
				}
				d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
				verify := d.again(t, "verify", "--verify", "full")
				assert.Contains(t, verify.run(t).ends(t, 0).stdout, "verify ok: full")
				for _, s := range steps {
					d.must(t, s.damage)
					r := verify.run(t).ends(t, 4).says(t, s.says)
					assert.Contains(t, r.stdout, s.where)
				}
			})
		})
	}
}

// Names may need quotes, a blank inside one is a letter like any other, and a table may be named with its schema.
func TestTableNames(t *testing.T) {
	t.Parallel()
	onServers(t, append(sqlServers(), databend), func(t *testing.T, d *database) {
		quote, schema := "`", d.name()+"-2"
		if d.kind == postgres {
			quote, schema = `"`, "some-Schema"
		} else {
			t.Cleanup(func() { _ = d.exec("DROP DATABASE `" + schema + "`") })
		}
		d.must(t, "CREATE SCHEMA "+quote+schema+quote)
		for name, table := range map[string]string{
			schema + ".Order": quote + schema + quote + "." + quote + "Order" + quote,
			"my new table":    quote + "my new table" + quote,
		} {
			l := small(1000)
			l.kind, l.table = "text", table
			flags := append(l.flags("--verify", "full"), "--table", name)
			first := reportOf(t, d.push(flags...).run(t).ends(t, 0))
			assert.True(t, strings.HasSuffix(first.Target.Table, name), first.Target.Table)
			invocation{args: []string{"verify", d.target(), "--run", first.Run.ID, "--state-dir", d.state, "--verify", "full"}}.run(t).ends(t, 0)
			if d.kind == databend {
				continue
			}
			d.push(append(flags, "--append", "--first-key", "1000")...).run(t).ends(t, 0)
			d.push(append(flags, "--create", "recreate")...).run(t).ends(t, 0)
			d.isExact(t, l)
		}
	})
}

// A table that takes no keys but the run's takes the run: the probe sends no other.
func TestPartitionedTable(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		if d.kind == postgres {
			d.createTable(t, "documents", ") PARTITION BY RANGE (document_id")
			d.must(t, "CREATE TABLE a PARTITION OF documents FOR VALUES FROM (5000) TO (6000)",
				"CREATE TABLE b PARTITION OF documents FOR VALUES FROM (6000) TO (7000)")
		} else {
			d.createTable(t, "documents", ", CHECK (document_id >= 5000)) PARTITION BY RANGE (document_id)"+
				" (PARTITION a VALUES LESS THAN (6000), PARTITION b VALUES LESS THAN (7000)")
		}
		l := small(2000)
		l.first = 5000
		is := reportOf(t, d.push(l.flags("--delivery", "exactly-once", "--verify", "full")...).run(t).ends(t, 0))
		proven(t, is, 2000)
		d.isExact(t, l)
	})
}

// --create drops or empties what terapush made. What a run records is the table behind that: a resume finds it to be the run's.
func TestCreate(t *testing.T) {
	t.Parallel()
	for _, create := range []string{"recreate", "truncate"} {
		t.Run(create, func(t *testing.T) {
			onServers(t, sqlServers(), func(t *testing.T, d *database) {
				l := small(2000)
				d.push(l.flags("--create", create)...).run(t).ends(t, 0) // made, since it is missing
				d.must(t, "CREATE INDEX mine ON documents (document_id)")
				l.seed, l.rows = 9, 8000
				d.state = t.TempDir()
				p := d.push(l.flags("--create", create, "--workers", "2", "--max-rate", "300KiB/s")...).start(t)
				d.untilClaims(t, p, l.batches()/4)
				p.kill(t)
				d.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
				d.isExact(t, l)
				if on := " ON documents"; create == "truncate" { // the table stays, with what somebody has made of it
					if d.kind == postgres {
						on = ""
					}
					d.must(t, "DROP INDEX mine"+on)
				}
			})
		})
	}
}

// More rows than memory, and more rows than distinct ones.
func TestRefillsAndRepeats(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	for flag, value := range map[string]string{"memory": "64KiB", "distinct-bytes": "all"} {
		l := small(20_000)
		l.table = strings.ReplaceAll(flag, "-", "_")
		args := l.flags("--"+flag, value, "--workers", "2", "--verify", "full")
		is := reportOf(t, d.push(args...).run(t).ends(t, 0))
		if flag == "memory" {
			assert.Positive(t, is.Result.Refills)
		} else {
			assert.Zero(t, is.Plan.DistinctRows)
		}
		d.isExact(t, l)
	}
	l := small(20_000)
	l.table = "repeated"
	is := reportOf(t, d.push(l.flags("--distinct-bytes", "100KiB", "--verify", "full")...).run(t).ends(t, 0))
	assert.EqualValues(t, 800, is.Plan.DistinctRows, "100 KiB of rows of 136 bytes, in whole batches of 200")
	for column, n := range map[string]int64{"payload": 800, "document_id": l.rows} {
		assert.Equal(t, n, d.number(t, fmt.Sprintf("SELECT COUNT(DISTINCT %s) FROM repeated", column)))
	}
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
