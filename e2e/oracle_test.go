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

	standin "github.com/terapush/terapush/internal/standin/oracle"
)

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

// A dry run shows what a method would send, and connects to nothing.
func TestOracleDryRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		says  []string
	}{
		{
			[]string{"--method", "array"},
			[]string{"exactly-once by claim row", "method array, format columns", `CREATE TABLE "JOURNAL"`, "COMMIT;"},
		},
		{[]string{"--method", "single"}, []string{"exactly-once by key range", "-- per row\nINSERT INTO \"JOURNAL\""}},
		{[]string{"--method", "fast"}, []string{"at-least-once", "INSERT /*+ MEMOPTIMIZE_WRITE */"}},
		{
			[]string{"--method", "cloud-copy", "--via", "s3://bucket/in?region=eu-central-1", "--credential", "S3_READER"},
			[]string{"DBMS_CLOUD.CREATE_EXTERNAL_TABLE", "https://bucket.s3.eu-central-1.amazonaws.com/", "S3_READER"},
		},
	} {
		args := []string{"push", "oracle://scott@192.0.2.1/FREEPDB1", "--dataset", "journal", "--dry-run", "--rows", "100000"}
		r := run(t, append(args, c.flags...)...).ends(t, 0)
		for _, text := range c.says {
			assert.Contains(t, r.stdout, text)
		}
	}
}

// What this binary, a method or Oracle cannot do is said before anything is tried.
func TestOracleRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		says  []string
	}{
		"direct path": {[]string{"--method", "direct"}, []string{"ORA-38910", "make build-godror", "array"}},
		"exactly once": {
			[]string{"--method", "fast", "--delivery", "exactly-once", "--dry-run"},
			[]string{"Fast Ingest", "memory", "--delivery at-least-once"},
		},
		"no object store":         {[]string{"--method", "cloud-copy"}, []string{"--via s3://"}},
		"another method's option": {[]string{"--partition", "P1"}, []string{"--partition", "array"}},
		"method":                  {[]string{"--method", "aray"}, []string{`did you mean "array"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, append([]string{"push", "oracle://u@h/s"}, c.flags...)...).ends(t, 2).says(t, c.says...)
			assert.Empty(t, r.stdout)
		})
	}
}

// Several hosts are tried in turn, and each says why not, with what to do about it; nothing is begun.
func TestOracleCannotConnect(t *testing.T) {
	t.Parallel()
	l, err := standin.Listen(standin.Refuse(12514), nil)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	gone := "127.0.0.1:" + freePort(t)
	r := invocation{
		args: []string{"push", "oracle://scott@" + gone + "," + l.Address() + "/NOPE", "--rows", "100", "--json", "--state-dir", t.TempDir()},
		env:  []string{"TERAPUSH_PASSWORD=word-that-must-not-show"},
	}.run(t).ends(t, 5).says(t, gone, "connection refused", l.Address(), "ORA-12514", `"NOPE"`, `"scott"`, "lsnrctl services")
	assert.NotContains(t, r.all(), "must-not-show")
	assert.Zero(t, reportOf(t, r).Result.Rows)
	require.Len(t, l.Connects(), 1)
}

// An interrupted push does not wait for a listener that says nothing.
func TestOracleInterrupted(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	l, err := standin.Listen(standin.Answer{Called: func() { close(asked) }, Hang: true}, nil)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	p := invocation{args: []string{"push", "oracle://scott@" + l.Address() + "/s", "--rows", "1", "--state-dir", t.TempDir()}}.start(t)
	<-asked
	p.signal(t, syscall.SIGINT)
	r := p.wait(t)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.stderr, "stopped by a signal")
}

// Who has an Oracle sets TERAPUSH_TEST_ORACLE to its URL, with the password, in a schema that may create tables. Unlike for
// every other server its absence is no failure in CI: none can be installed there.
func TestOracleServer(t *testing.T) {
	url := os.Getenv("TERAPUSH_TEST_ORACLE")
	if url == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set")
	}
	for _, method := range []string{"single", "batch", "array", "fast"} {
		t.Run(method, func(t *testing.T) {
			table := fmt.Sprintf("T%X", time.Now().UnixNano())
			t.Cleanup(func() {
				db, err := sql.Open("oracle", url)
				require.NoError(t, err)
				defer db.Close()
				_, err = db.Exec("DROP TABLE " + table + " PURGE")
				assert.NoError(t, err)
			})
			r := run(t, "push", url, "--dataset", "journal", "--method", method, "--table", table, "--rows", "20000", "--workers", "4",
				"--verify", "full", "--json", "--state-dir", t.TempDir()).ends(t, 0)
			is := reportOf(t, r)
			assert.EqualValues(t, 20000, is.Verify.FoundRows)
			assert.True(t, is.Verify.OK)
			t.Logf("%s: %.0f rows/s, %v, warnings %q", method, is.Result.RowsPerSecond, is.Cost, is.Warnings)
		})
	}
	scheme, rest, _ := strings.Cut(url, "://")
	user, _, _ := strings.Cut(rest, ":")
	invocation{
		args: []string{"push", scheme + "://" + user + rest[strings.LastIndex(rest, "@"):], "--json", "--state-dir", t.TempDir()},
		env:  []string{"TERAPUSH_PASSWORD=not-the-password"},
	}.fails(t, "ORA-01017", "check user")
}
