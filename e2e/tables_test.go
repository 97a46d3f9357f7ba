package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

const shop = `version: 1
tables:
  items:
    rows: 24000
    key: [order_id, line]
    columns:
      order_id: {sequence: {of: orders.id, every: 3}}
      line:     {type: int, sequence: {start: 1, cycle: 3}}
      note:     {type: text(40), words: {length: 10..40}}
  orders:
    rows: 8000
    key: [id]
    columns:
      id:       {type: bigint, sequence: {start: 1}}
      customer: {ref: customers.id, zipf: {s: 1.1, scatter: true}}
      note:     {type: text(200), words: {length: 50..200}}
  customers:
    rows: 500
    key: [id]
    columns:
      id:      {type: bigint, scatter: {start: 5, stride: 64}}
      country: {ref: countries.id}
      friend:  {ref: customers.id, nulls: 50%}
      sponsor: {ref: customers.id}
  countries:
    rows: 2
    key: [id]
    columns:
      id:   {type: smallint, sequence: {start: 1}}
      code: {type: char(2), text: {length: 2}}
`

// shopTables has the constraints; foreign keys are made again after the load, so that the server checks every row.
var shopTables = []string{
	"CREATE TABLE countries (id smallint PRIMARY KEY, code char(2))",
	"CREATE TABLE customers (id bigint PRIMARY KEY, country smallint NOT NULL, friend bigint, sponsor bigint NOT NULL)",
	"CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint NOT NULL, note varchar(200))",
	"CREATE TABLE items (order_id bigint, line int, note varchar(40), PRIMARY KEY (order_id, line))",
}

var shopReferences = []string{
	"ALTER TABLE customers ADD FOREIGN KEY (country) REFERENCES countries(id)",
	"ALTER TABLE customers ADD FOREIGN KEY (friend) REFERENCES customers(id)",
	"ALTER TABLE customers ADD FOREIGN KEY (sponsor) REFERENCES customers(id)",
	"ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers(id)",
	"ALTER TABLE items ADD FOREIGN KEY (order_id) REFERENCES orders(id)",
}

// newShop makes the tables with their constraints, and the file.
func newShop(t *testing.T, d *database) (file string) {
	t.Helper()
	d.must(t, append(shopTables, shopReferences...)...)
	file = filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shop), 0o600))
	return file
}

func tablesOf(t *testing.T, r result) report.Tables {
	t.Helper()
	var parsed report.Tables
	in := json.NewDecoder(strings.NewReader(r.stdout))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&parsed), "stdout of %s: %q, stderr: %s", r.line, r.stdout, r.stderr)
	return parsed
}

// claimsOf counts those of the run of one table; 0 while there is none.
func (d *database) claimsOf(part string) (n int64) {
	_ = d.query("SELECT COUNT(*) FROM terapush_claims WHERE run LIKE '%"+part+"'", func(scan func(...any) error) error { return scan(&n) })
	return n
}

// shopIsExact asserts that every row of the shop is there, and that the server finds every reference.
func (d *database) shopIsExact(t *testing.T) {
	t.Helper()
	for table, rows := range map[string]int64{"countries": 2, "customers": 500, "orders": 8000, "items": 24_000} {
		assert.Equal(t, rows, d.number(t, "SELECT COUNT(*) FROM "+table), table)
	}
	d.must(t, shopReferences...)
	assert.EqualValues(t, 50, d.number(t, "SELECT COUNT(DISTINCT sponsor) FROM customers"), "the first tenth of the customers")
	assert.Positive(t, d.number(t, "SELECT COUNT(friend) FROM customers"))
}

// A run of several tables that is killed in the third goes on there: what was proven is left alone, and the rest
// follows.
func TestTablesAfterAKill(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres, mySQL}, func(t *testing.T, d *database) {
		file := newShop(t, d)
		p := d.push("--dataset", file, "--batch-rows", "100", "--workers", "2", "--max-rate", "200KiB/s").start(t)
		p.until(t, "claims of the third table", func() bool { return d.claimsOf(".3") >= 10 })
		p.kill(t)
		require.NoError(t, os.Remove(file))
		require.Zero(t, d.number(t, "SELECT COUNT(*) FROM items"))

		resume := invocation{args: []string{"push", d.target(), "--state-dir", d.state, "--json", "--resume", "last", "--max-rate", "1GiB/s"}}
		is := tablesOf(t, resume.run(t).ends(t, 0))
		assert.Equal(t, []any{report.OK, int64(32_502), int64(32_502)}, []any{is.Result.Outcome, is.Result.Rows, is.Result.VerifiedRows})
		assert.Equal(t, []bool{true, true, false, false}, []bool{is.Tables[0].Done, is.Tables[1].Done, is.Tables[2].Done, is.Tables[3].Done})
		orders := is.Tables[2]
		assert.Equal(t, []any{"orders", is.Run + ".3", true}, []any{orders.Table, orders.Run, orders.Report.Run.Resumed})
		assert.GreaterOrEqual(t, orders.Report.Run.ResumedRows, int64(1000))
		d.shopIsExact(t)

		verify := invocation{args: []string{"verify", d.target(), "--state-dir", d.state, "--run", is.Run, "--verify", "full", "--progress", "none"}}
		assert.Contains(t, verify.run(t).ends(t, 0).stdout, "\nverify ok: full · 4 tables · 32,502 of 32,502 rows found\n")
		run(t, "forget", "--run", is.Run, "--state-dir", d.state).ends(t, 0)
		assert.Empty(t, d.runs(t))
		assert.Zero(t, d.claimsOf(""))
	})
}

// Four shards of a run of several tables are killed at random and started again with an empty disk: none begins a table
// before the one before is in, so that no row refers to one that is not there yet.
func TestTablesByShards(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{mySQL}, func(t *testing.T, d *database) {
		const shards = 4
		flags := []string{"--dataset", newShop(t, d), "--run-id", "nightly", "--batch-rows", "100", "--workers", "2"}
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		t.Run("all", func(t *testing.T) {
			for i := range shards {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					shard := func(rate string) invocation {
						more := []string{"--shard", fmt.Sprintf("%d/%d", i, shards), "--state-dir", t.TempDir(), "--max-rate", rate}
						return d.pushTo(d.target(), append(flags, more...)...)
					}
					for range 2 {
						p := shard("1MiB/s").start(t)
						at := d.claims() + random.Int64N(80)
						if p.sees(func() bool { return d.claims() >= at }) {
							_ = p.Process.Kill()
						}
						<-p.done
					}
					shard("1GiB/s").run(t).ends(t, 0)
				})
			}
		})
		d.shopIsExact(t)
		verify := append([]string{"verify", d.target(), "--state-dir", t.TempDir(), "--progress", "none"}, flags[:4]...)
		assert.Contains(t, run(t, append(verify, "--batch-rows", "100")...).ends(t, 0).stdout, "\nverify ok: count · 4 tables · 32,502 of 32,502 rows found\n")
	})
}
