package e2e_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/sijms/go-ora/v2" // the driver "oracle"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/tns"
)

// oracleMethods are the methods that rows go through by themselves, with what a dry run has to show of each.
func oracleMethods() map[string][]string {
	return map[string][]string{
		"single": {"exactly-once by key range", "-- per row\nINSERT INTO \"JOURNAL\"", "COMMIT;", "LOCK TABLE \"JOURNAL\" IN SHARE MODE"},
		"batch":  {"exactly-once by claim row", `CREATE TABLE "TERAPUSH_CLAIMS"`, "-- per row\nINSERT INTO \"JOURNAL\"", "-- per batch\nCOMMIT;"},
		"array":  {"exactly-once by claim row", `INSERT INTO "TERAPUSH_CLAIMS"`, `INSERT INTO "JOURNAL"`, "COMMIT;"},
		"fast": {
			"at-least-once", "SEGMENT CREATION IMMEDIATE NOCOMPRESS MEMOPTIMIZE FOR WRITE", "OPTIMIZER_IGNORE_HINTS = FALSE",
			"INSERT /*+ MEMOPTIMIZE_WRITE */", "DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID",
		},
	}
}

func TestOracleIsListed(t *testing.T) {
	t.Parallel()
	list := run(t, "list", "methods").ends(t, 0).stdout
	for method, delivery := range map[string]string{
		"array": "exactly once", "single": "exactly once", "batch": "exactly once", "fast": "at least once", "direct": "exactly once",
		"cloud-copy": "exactly once",
	} {
		assert.Regexp(t, `(?m)^oracle +`+method+` +`+delivery, list)
	}

	// The static binary says which driver it has.
	var version struct {
		Tags    string
		Drivers map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(run(t, "version", "--json").ends(t, 0).stdout), &version))
	assert.Empty(t, version.Tags)
	assert.Regexp(t, `^v2\.`, version.Drivers["go-ora"])
	assert.NotContains(t, version.Drivers, "godror")
}

// A dry run shows what every method would send, and connects to nothing.
func TestOracleDryRun(t *testing.T) {
	t.Parallel()
	dry := func(args ...string) result {
		return run(t, append([]string{"push", "oracle://scott@192.0.2.1/FREEPDB1", "--dataset", "journal", "--dry-run", "--rows", "100000"}, args...)...)
	}
	for method, says := range oracleMethods() {
		r := dry("--method", method).ends(t, 0)
		for _, text := range append(says, "method "+method+", format columns", "192.0.2.1", `CREATE TABLE "JOURNAL"`, `CHECK ("PAYLOAD" IS JSON)`) {
			assert.Contains(t, r.stdout, text, method)
		}
	}
	// The other datasets, whose keys are a time and two columns, and a table that is emptied.
	lineitem := dry("--dataset", "lineitem", "--method", "single", "--primary-key").ends(t, 0).stdout
	for _, text := range []string{`"L_TAX" NUMBER(15,2)`, `PRIMARY KEY ("L_ORDERKEY", "L_LINENUMBER")`, ":8 / 100", `WHERE "L_ORDERKEY" BETWEEN 1 AND `} {
		assert.Contains(t, lineitem, text)
	}
	times := dry("--dataset", "httplogs", "--create", "truncate").ends(t, 0).stdout
	for _, text := range []string{`"TS" TIMESTAMP(6) NOT NULL`, `TRUNCATE TABLE "HTTPLOGS"`, `"TS" BETWEEN TIMESTAMP '2026-01-01 00:00:00.000000' AND TIMESTAMP`} {
		assert.Contains(t, times, text)
	}
	assert.Contains(t, dry("--dataset", "pairs", "--method", "fast").ends(t, 0).stdout, `INSERT /*+ MEMOPTIMIZE_WRITE */ INTO "PAIRS" ("K", "R", "S")`)
	staged := dry("--method", "cloud-copy", "--via", "s3://bucket/in?region=eu-central-1", "--credential", "S3_READER").ends(t, 0).stdout
	for _, text := range []string{"DBMS_CLOUD.CREATE_EXTERNAL_TABLE", "https://bucket.s3.eu-central-1.amazonaws.com/", "S3_READER", "INSERT /*+ APPEND */"} {
		assert.Contains(t, staged, text)
	}
}

// What this binary, a method or Oracle cannot do is said before anything is tried.
func TestOracleRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, target string
		flags        []string
		says         []string
	}{
		{"direct path", "oracle://u@h/s", []string{"--method", "direct"}, []string{"ORA-38910", "make build-godror", "array"}},
		{"exactly once, fast", "oracle://u@h/s", []string{"--method", "fast", "--delivery", "exactly-once", "--dry-run"}, []string{"Fast Ingest", "memory", "--delivery at-least-once"}},
		{"parameter", "oracle://u@h/s?walet=/w", nil, []string{"walet", "wallet", "ssl", "sid"}},
		{"godror's parameter", "oracle://u@h/s?tns_admin=/w", nil, []string{"tns_admin", "godror", "go-ora"}},
		{"no service", "oracle://u@h", nil, []string{"no service", "oracle://"}},
		{"no object store", "oracle://u@h/s", []string{"--method", "cloud-copy"}, []string{"--via s3://"}},
		{"another method's option", "oracle://u@h/s", []string{"--partition", "P1"}, []string{"--partition", "array"}},
		{"method", "oracle://u@h/s", []string{"--method", "aray"}, []string{`did you mean "array"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, append([]string{"push", c.target}, c.flags...)...).ends(t, 2).says(t, c.says...)
			assert.Empty(t, r.stdout)
		})
	}
}

// Without a server there is still a listener: what it says of a target that cannot be reached is told, with what to do
// about it, and nothing is begun.
func TestOracleCannotConnect(t *testing.T) {
	t.Parallel()
	push := func(address, rest string) invocation {
		return invocation{
			args: []string{"push", "oracle://scott@" + address + "/" + rest, "--rows", "100", "--json", "--state-dir", t.TempDir()},
			env:  []string{"TERAPUSH_PASSWORD=word-that-must-not-show"},
		}
	}
	fails := func(address, rest string, says ...string) {
		r := push(address, rest).fails(t, append(says, address, `"scott"`)...)
		assert.NotContains(t, r.all(), "must-not-show")
		assert.Zero(t, reportOf(t, r).Result.Rows)
	}
	fails("127.0.0.1:"+freePort(t), "FREEPDB1", "connection refused", `"FREEPDB1"`, "is the server up")
	fails("no-such-host.invalid:1521", "FREEPDB1", "no such host")

	listen := func(answer tns.Answer) *tns.Listener {
		l, err := tns.Start(answer)
		require.NoError(t, err)
		t.Cleanup(l.Close)
		return l
	}
	l := listen(tns.Refuse(12514))
	fails(l.Address(), "NOPE", "ORA-12514", `"NOPE"`, "lsnrctl services")
	fails(l.Address(), "NOPE?ssl=true")
	require.Len(t, l.Connects(), 1)
	fails(listen(tns.Accept(tns.HangUp)).Address(), "FREEPDB1")
	fails(listen(tns.Raw("HTTP/1.1 400 Bad Request\r\n\r\n", tns.HangUp)).Address(), "FREEPDB1")
	fails(listen(tns.Hang).Address(), "FREEPDB1", "no answer")

	// Several hosts are tried in turn, and each says why not.
	gone := "127.0.0.1:" + freePort(t)
	r := push(gone+","+l.Address(), "NOPE").run(t).ends(t, 5).says(t, gone, "connection refused", l.Address(), "ORA-12514")
	assert.NotContains(t, r.all(), "must-not-show")
}

// A user who loses patience with a listener that says nothing does not wait for it.
func TestOracleInterrupted(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	l, err := tns.Start(tns.Calling(func() { close(asked) }, tns.Hang))
	require.NoError(t, err)
	t.Cleanup(l.Close)
	p := invocation{args: []string{"push", "oracle://scott@" + l.Address() + "/s", "--rows", "1", "--state-dir", t.TempDir()}}.start(t)
	<-asked
	p.signal(t, syscall.SIGINT)
	r := p.wait(t)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.stderr, "stopped by a signal")
}

// oracleServer is a live server's URL, with the password in it.
//
// Unlike for every other server its absence is no failure in CI: no Oracle server can be installed for tests.
// make bench-oracle TARGET=… measures one; this proves that rows arrive.
func oracleServer(t *testing.T) string {
	t.Helper()
	url := os.Getenv("TERAPUSH_TEST_ORACLE")
	if url == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set: oracle://user:password@host/service of a schema that may create tables")
	}
	return url
}

func TestOracleServer(t *testing.T) {
	url := oracleServer(t)
	for method := range oracleMethods() {
		t.Run(method, func(t *testing.T) {
			table := fmt.Sprintf("T%X", time.Now().UnixNano())
			t.Cleanup(func() { dropOracleTable(t, url, table) })
			r := run(t, "push", url, "--dataset", "journal", "--method", method, "--table", table, "--rows", "20000", "--workers", "4",
				"--verify", "full", "--json", "--state-dir", t.TempDir()).ends(t, 0)
			is := reportOf(t, r)
			assert.EqualValues(t, 20000, is.Verify.FoundRows)
			assert.True(t, is.Verify.OK)
			t.Logf("%s: %.0f rows/s, %v, warnings %q", method, is.Result.RowsPerSecond, is.Cost, is.Warnings)
		})
	}
	t.Run("wrong service", func(t *testing.T) {
		at := strings.LastIndex(url, "@")
		hosts, _, _ := strings.Cut(url[at+1:], "/")
		invocation{args: []string{"push", url[:at+1] + hosts + "/no_such_service", "--json", "--state-dir", t.TempDir()}}.fails(t, "ORA-12514")
	})
	t.Run("wrong password", func(t *testing.T) {
		scheme, rest, _ := strings.Cut(url, "://")
		user, _, _ := strings.Cut(rest, ":")
		at := strings.LastIndex(rest, "@")
		invocation{
			args: []string{"push", scheme + "://" + user + rest[at:], "--json", "--state-dir", t.TempDir()},
			env:  []string{"TERAPUSH_PASSWORD=not-the-password"},
		}.fails(t, "ORA-01017", "check user")
	})
}

func dropOracleTable(t *testing.T, url, table string) {
	db, err := sql.Open("oracle", url)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("DROP TABLE " + table + " PURGE")
	assert.NoError(t, err)
}
