package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
)

// Every method puts rows into the servers in every format that it takes, and every server gets every dataset, with and without
// a primary key: a load that begins and ends within an order, and one behind it whose keys terapush finds.
func TestDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                            kind
		method, format, flags, datasets string
	}{
		{postgres, "copy", "pgbinary", "", "pairs lineitem documents"},
		{postgres, "copy", "csv", "--primary-key", "lineitem journal"},
		{postgres, "copy", "pgtext", "--unlogged", "httplogs documents"},
		{postgres, "insert", "pgvalues", "--primary-key", "pairs httplogs"},
		{mariaDB, "load-data", "tsv", "", "pairs httplogs documents"},
		{mariaDB, "insert", "values", "--primary-key", "lineitem journal"},
		{mySQL, "load-data", "tsv", "--primary-key", "pairs lineitem journal"},
		{mySQL, "insert", "values", "", "httplogs documents"},
		{databend, "streaming-load", "csv", "", "lineitem people"},
		{databend, "streaming-load", "ndjson", "", "httplogs journal"},
		{databend, "insert", "ndjson", "", "pairs people"},
		{databend, "insert-no-presign", "parquet", "", "lineitem journal"},
		{databend, "stage-load", "parquet", "--commit-batches 4", "httplogs people"},
	} {
		t.Run(strings.Join([]string{string(c.kind), c.method, c.format, c.flags}, " "), func(t *testing.T) {
			t.Parallel()
			d, f := newDatabase(t, c.kind), (*folder)(nil)
			flags := append(strings.Fields(c.flags), "--method", c.method, "--format", c.format,
				"--workers", "3", "--verify", "full", "--verify-rows", "700")
			if c.kind == databend {
				f = newFolder(t)
				switch c.method {
				case "insert":
					flags = append(flags, "--stage", d.stage(t, f))
				case "stage-load":
					flags = append(flags, "--staging", f.target())
				}
			}
			for name := range strings.FieldsSeq(c.datasets) {
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
						unplaced := *l
						unplaced.first = 0
						args = unplaced.flags(append(flags, "--append")...)
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
	d := newDatabase(t, postgres)
	l := dataLoad("documents", 800, 50, 0)
	l.payload, l.kind = 100, dataset.Text
	d.push(l.flags("--verify", "none")...).run(t).ends(t, 0)
	verify := d.again(t, "verify", "--verify", "full")
	assert.Contains(t, verify.run(t).ends(t, 0).stdout, "verify ok: full")
	for _, s := range []struct{ damage, says, where string }{
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
	} {
		d.must(t, s.damage)
		r := verify.run(t).ends(t, 4).says(t, s.says)
		assert.Contains(t, r.stdout, s.where)
	}
}

// Names may need quotes, a blank inside one is a letter like any other, and a table may be named with its schema.
func TestTableNames(t *testing.T) {
	t.Parallel()
	onServers(t, append(backEnds(), databend), func(t *testing.T, d *database) {
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
			t.Parallel()
			d, l := newDatabase(t, postgres), small(2000)
			d.push(l.flags("--create", create)...).run(t).ends(t, 0) // made, since it is missing
			d.must(t, "CREATE INDEX mine ON documents (document_id)")
			l.seed, l.rows = 9, 8000
			d.state = t.TempDir()
			before := d.claims()
			p := d.push(l.flags("--create", create, "--workers", "2", "--max-rate", "300KiB/s")...).start(t)
			d.untilClaims(t, p, before+l.batches()/4)
			p.kill(t)
			d.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
			d.isExact(t, l)
			if create == "truncate" { // the table stays, with what somebody has made of it
				d.must(t, "DROP INDEX mine")
			}
		})
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
