package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is wrong with the command line is said at once, with what was probably meant, and nothing is tried.
func TestUsage(t *testing.T) {
	t.Parallel()
	const target = "discard://"
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{"command", []string{"psuh"}, []string{`"psuh"`, `did you mean "push"`}},
		{"flag", []string{"push", target, "--worker", "4"}, []string{"--worker", "did you mean --workers"}},
		{"flag's value", []string{"push", target, "--verify", "ful"}, []string{"--verify", `did you mean "full"`}},
		{"scheme", []string{"push", "postgers://localhost/db"}, []string{`"postgers"`, `did you mean "postgres"`}},
		{"method", []string{"push", "postgres://localhost/db", "--method", "copi"}, []string{`"copi"`, `did you mean "copy"`}},
		{"dataset", []string{"push", target, "--dataset", "document"}, []string{`"document"`, "documents"}},
		{"format", []string{"push", "postgres://127.0.0.1:1/db", "--format", "parquet"}, []string{`"parquet"`, "pgbinary"}},
		{"size", []string{"push", target, "--bytes", "many"}, []string{"--bytes", `"many"`, "64MiB"}},
		{"rate", []string{"push", target, "--max-rate", "5"}, []string{"--max-rate", "500MiB/s"}},
		{"duration", []string{"push", target, "--duration", "soon"}, []string{"--duration", "soon"}},
		{"number", []string{"push", target, "--rows", "1e6"}, []string{"--rows", "1e6"}},
		{"no target", []string{"push"}, []string{"TARGET"}},
		{"two targets", []string{"push", target, target}, []string{"TARGET"}},
		{"no URL", []string{"push", "localhost"}, []string{"scheme://"}},
		{"contradiction", []string{"push", target, "--rows", "1", "--bytes", "1MiB"}, []string{"--rows", "--bytes", "exclude each other"}},
		{"two problems", []string{"push", target, "--retries", "-1", "--first-key", "-1"}, []string{"--retries", "--first-key"}},
		{"payload too long", []string{"push", target, "--payload-bytes", "2000000"}, []string{"--payload-bytes", "1048576"}},
		{"setting", []string{"push", target, "--set", "work_mem"}, []string{"--set", "name=value"}},
		{"several tables", []string{"push", target, "--table", "a,b"}, []string{"--table", "one table"}},
		{"another method's option", []string{"push", "mysql://localhost/db", "--unlogged"}, []string{"--unlogged", "load-data"}},
		{"config file's key", []string{"push", target, "--config", writeFile(t, "row: 5\n")}, []string{`"row"`, "rows"}},
		{"verify without a run", []string{"verify", target}, []string{"--run"}},
		{"list of what", []string{"list", "method"}, []string{`"method"`, `did you mean "methods"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.args...).ends(t, 2).says(t, c.says...)
			assert.Empty(t, r.stdout)
			assert.Less(t, r.took, 5*time.Second)
		})
	}
}

// --help and its like are results: they go to stdout.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"push", "--help"}, {"verify", "--help"}, {"demo", "--help"}, {"list"}, {"version"}, {"version", "--json"}} {
		r := run(t, args...).ends(t, 0)
		assert.NotEmpty(t, r.stdout, args)
		assert.Empty(t, r.stderr, args)
	}
	assert.Regexp(t, `(?m)^mysql +load-data +exactly once`, run(t, "list", "methods").stdout)
	assert.Contains(t, run(t, "push", "--help").stdout, "locks an empty table", "the warning about MariaDB's checks")
}

// A dry run says everything a run would say, and connects to nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for target, statements := range map[string][]string{
		"postgres://nobody@192.0.2.1/db":   {"CREATE TABLE", "terapush_claims", "COPY ", "COMMIT"},
		"mysql://nobody@192.0.2.1/db":      {"CREATE TABLE", "terapush_claims", "LOAD DATA LOCAL INFILE", "COMMIT"},
		"yugabyte://nobody@192.0.2.1/db":   {"CREATE TABLE", "HASH", "COPY "},
		"singlestore://nobody@192.0.2.1/d": {"CREATE TABLE", "SHARD KEY", "SORT KEY"},
	} {
		r := run(t, "push", target, "--dry-run", "--rows", "2000000", "--workers", "8", "--memory", "256MiB").ends(t, 0)
		for _, text := range append(statements, "2,000,000", "8 workers", "buffers", "verify") {
			assert.Contains(t, r.stdout, text, target)
		}
		assert.Less(t, r.took, 3*time.Second)
	}
}
