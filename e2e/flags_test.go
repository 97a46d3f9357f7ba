package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/dataset"
)

// Progress is on stderr, in the form that was asked for; stdout holds the result and nothing else.
func TestProgress(t *testing.T) {
	t.Parallel()
	for mode, last := range map[string]string{
		"none": `^time=.* level=WARN`, "plain": `^done .*10,000 of 10,000 rows`, "json": `^\{.*"rows":10000,.*\}$`, "auto": `^done .*10,000 of 10,000 rows`,
	} {
		r := run(t, "push", "discard://", "--rows", "10000", "--payload-bytes", "64", "--json", "--state-dir", t.TempDir(), "--progress", mode).ends(t, 0)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		assert.Regexp(t, last, lines[len(lines)-1], mode)
		assert.NotContains(t, r.stderr, "\r", "a redrawn line where there is no terminal")
		assert.EqualValues(t, 10_000, reportOf(t, r).Result.Rows)
		if mode == "json" {
			assert.True(t, json.Valid([]byte(lines[len(lines)-1])))
		}
	}
}

func TestDuration(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(0)
		flags := append(l.flags()[2:], "--duration", "2s", "--workers", "2", "--max-rate", "2MiB/s", "--verify", "full")
		r := d.push(flags...).run(t).ends(t, 0)
		is := reportOf(t, r)
		assert.GreaterOrEqual(t, is.Phases.Load, 1.5)
		assert.Positive(t, is.Result.Rows)
		assert.True(t, is.Verify.OK)
		assert.Equal(t, is.Result.Rows, is.Verify.ExpectedRows)
		l.rows = is.Result.Rows
		d.isExact(t, l)
	})
}

// A run by duration that was killed has no more time: what it had begun is finished, and that is the run.
func TestDurationResumed(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(0)
		p := d.push(append(l.flags()[2:], "--duration", "1m", "--workers", "2", "--max-rate", "1MiB/s")...).start(t)
		d.untilClaims(t, p, 20)
		_ = p.Process.Kill()
		p.wait(t)
		is := reportOf(t, d.resume(t, "--verify", "full").run(t).ends(t, 0))
		l.rows = is.Result.Rows
		assert.GreaterOrEqual(t, l.rows, 20*l.batchRows)
		assert.LessOrEqual(t, l.rows, 200*l.batchRows, "not another minute")
		d.isExact(t, l)
	})
}

func TestMaxRate(t *testing.T) {
	t.Parallel()
	r := run(t, "push", "discard://", "--rows", "60000", "--payload-bytes", "92", "--batch-rows", "500", "--max-rate", "3MiB/s", "--json", "--state-dir", t.TempDir())
	is := reportOf(t, r.ends(t, 0))
	least := float64(is.Result.EncodedBytes)/(3<<20) - 0.5
	assert.GreaterOrEqual(t, is.Phases.Load, least, "%d bytes went faster than 3 MiB/s", is.Result.EncodedBytes)
}

func TestBytes(t *testing.T) {
	t.Parallel()
	is := reportOf(t, run(t, "push", "discard://", "--bytes", "10MiB", "--json", "--state-dir", t.TempDir()).ends(t, 0))
	assert.InDelta(t, 10<<20, is.Result.PayloadBytes, 520, "column data: the payload and eight bytes of key")
	assert.GreaterOrEqual(t, is.Result.Batches, int64(4*is.Plan.Workers), "at least four batches a worker")
}

// Every format and every kind of payload that a server takes arrives byte by byte.
func TestFormats(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		formats := map[string][]string{"pgbinary": {"bytes", "text"}, "pgtext": {"text"}, "csv": {"text"}}
		if d.kind != postgres {
			formats = map[string][]string{"tsv": {"bytes", "text"}}
		}
		for format, kinds := range formats {
			for _, k := range kinds {
				l := small(1500)
				l.kind, l.table = dataset.Kind(k), format+"_"+k
				is := reportOf(t, d.push(l.flags("--format", format, "--verify", "full")...).run(t).ends(t, 0))
				assert.Equal(t, format, is.Plan.Format)
				d.isExact(t, l)
			}
		}
		l := small(1500)
		l.kind, l.table = dataset.Text, "inserted"
		d.push(l.flags("--method", "insert", "--verify", "full")...).run(t).ends(t, 0)
		d.isExact(t, l)
		if d.kind == postgres {
			d.push("--format", "csv").run(t).ends(t, 2).says(t, "csv", "--payload-kind text")
		}
	})
}

// Variables of --set reach the sessions and the report.
func TestSet(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		set := map[kind]string{postgres: "synchronous_commit=off", mariaDB: "unique_checks=0", mySQL: "unique_checks=0"}[d.kind]
		l := small(1000)
		is := reportOf(t, d.push(l.flags("--set", set)...).run(t).ends(t, 0))
		name, value, _ := strings.Cut(set, "=")
		assert.Equal(t, value, is.Target.Settings[name])
		d.push("--set", "no_such_variable=1", "--table", "other").fails(t, "no_such_variable")
	})
}

// A table may be named with its schema, and names may need quotes.
func TestTableNames(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		quote := func(s string) string { return `"` + s + `"` }
		schema := "some-Schema"
		if d.kind != postgres {
			quote = func(s string) string { return "`" + s + "`" }
			schema = d.name() + "-2"
			t.Cleanup(func() { _ = d.exec("DROP DATABASE " + quote(schema)) })
		}
		d.must(t, "CREATE SCHEMA "+quote(schema))
		l := small(1000)
		l.table = quote(schema) + "." + quote("Order")
		flags := append(l.flags("--verify", "full"), "--table", schema+".Order")
		is := reportOf(t, d.push(flags...).run(t).ends(t, 0))
		assert.Equal(t, schema+".Order", is.Target.Table)
		d.isExact(t, l)
	})
}

// Flags come from the command line, then from the environment, then from the file.
func TestSources(t *testing.T) {
	t.Parallel()
	i := invocation{
		args: []string{"push", "discard://", "--json", "--state-dir", t.TempDir(), "--seed", "7", "--config", writeFile(t, "seed: 5\nrows: 300\nworkers: 3\n")},
		env:  []string{"TERAPUSH_SEED=6", "TERAPUSH_ROWS=200"},
	}
	is := reportOf(t, i.run(t).ends(t, 0))
	assert.Equal(t, []any{uint64(7), int64(200), 3}, []any{is.Plan.Seed, is.Plan.Rows, is.Plan.Workers})
}

// Memory is a formula: the buffers, and little else.
func TestMemory(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"few large":  {"--workers", "4", "--batch-bytes", "8MiB", "--memory", "64MiB"},
		"many small": {"--workers", "64", "--batch-bytes", "256KiB", "--memory", "64MiB"},
	} {
		args := append([]string{"push", "discard://", "--bytes", scaled("512MiB", "8GiB"), "--json", "--state-dir", t.TempDir()}, flags...)
		within(t, name, run(t, args...).ends(t, 0))
	}
}

// The same with real connections.
func TestMemoryOfConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		for _, method := range d.methods() {
			l := small(scaled[int64](60_000, 2_000_000))
			l.payload, l.batchRows, l.table = 512, 1000, "by_"+strings.ReplaceAll(method, "-", "_")
			within(t, method, d.push(l.flags("--method", method, "--workers", "8", "--memory", "16MiB")...).run(t).ends(t, 0))
		}
	})
}

func within(t *testing.T, name string, r result) {
	t.Helper()
	is := reportOf(t, r)
	budget := int64(is.Plan.Buffers)*is.Plan.BatchBytes + 64<<20 + int64(is.Plan.Workers)<<20
	t.Logf("%s: peak %d MiB, budget %d MiB, %d buffers of %d KiB, %d refills", name,
		is.Client.PeakRSSBytes>>20, budget>>20, is.Plan.Buffers, is.Plan.BatchBytes>>10, is.Result.Refills)
	assert.LessOrEqual(t, is.Client.PeakRSSBytes, budget, name)
}

// More rows than memory, and more rows than distinct ones.
func TestRefillsAndRepeats(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(20_000)
		is := reportOf(t, d.push(l.flags("--memory", "64KiB", "--verify", "full", "--workers", "2")...).run(t).ends(t, 0))
		assert.Positive(t, is.Result.Refills)
		d.isExact(t, l)

		all := l
		all.table = "all_distinct"
		is = reportOf(t, d.push(all.flags("--distinct-bytes", "all", "--verify", "full", "--workers", "2")...).run(t).ends(t, 0))
		assert.Zero(t, is.Plan.DistinctRows)
		d.isExact(t, all)

		repeated := l
		repeated.table = "repeated"
		is = reportOf(t, d.push(repeated.flags("--distinct-bytes", "100KiB", "--verify", "full")...).run(t).ends(t, 0))
		assert.EqualValues(t, 800, is.Plan.DistinctRows, "100 KiB of rows of 136 bytes, in whole batches of 200")
		assert.EqualValues(t, 800, d.number(t, "SELECT COUNT(DISTINCT payload) FROM repeated"))
		assert.EqualValues(t, 20_000, d.number(t, "SELECT COUNT(DISTINCT document_id) FROM repeated"))
	})
}

// discard:// measures this machine alone, and says that it proves nothing.
func TestDiscard(t *testing.T) {
	t.Parallel()
	r := run(t, "push", "discard://", "--bytes", "256MiB", "--json", "--state-dir", t.TempDir()).ends(t, 0)
	is := reportOf(t, r)
	assert.Equal(t, "discard", is.Target.Backend)
	assert.Greater(t, is.Result.BytesPerSecond, 50e6)
	assert.NotEqual(t, "full", is.Verify.Mode)
	t.Logf("%.0f MB/s, %s in all", is.Result.BytesPerSecond/1e6, r.took)
}
