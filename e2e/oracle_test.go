package e2e_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/sijms/go-ora/v2" // the driver "oracle"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
