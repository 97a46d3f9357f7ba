package databend

import (
	"crypto/rand"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// The front end over the engine does as Databend's own client expects of a server.
func TestOfficialPythonClient(t *testing.T) {
	python, dsn := backendtest.Server(t, "TERAPUSH_TEST_DATABEND_PYTHON"), backendtest.Server(t, "TERAPUSH_TEST_DATABEND")
	target, table := realServer(t), "t_"+strings.ToLower(rand.Text())
	statementOn(t, target, "CREATE TABLE "+table+" (id BIGINT NOT NULL, s VARCHAR NOT NULL)")
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE "+table) })
	dsn = strings.Replace(dsn, "root@", "root:@", 1)
	client := exec.CommandContext(t.Context(), python, "testdata/driver.py", dsn, table, t.TempDir())
	out, err := client.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
