package doris_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/fake/doris"
)

// A decimal that has more digits than its column is filtered, whatever brings it; digits behind the scale are rounded.
func TestDecimalsThatDoNotFit(t *testing.T) {
	c, db := start(t, doris.Options{})
	exec1(t, db, "CREATE TABLE d.m (p DECIMAL(5,2) NOT NULL) DUPLICATE KEY(p) DISTRIBUTED BY HASH(p) BUCKETS 1 PROPERTIES ('replication_num'='1')")
	a, err := put(t, c, "d/m", "999.99\n-0.05\n12.345\n", "format:csv", "max_filter_ratio:0", "strict_mode:true")
	assert.NoError(t, err)
	assert.Equal(t, "Success", a.Status, a.Message)
	for _, bad := range []string{"1000\n", "999.995\n", "a\n", "1/3\n"} {
		a, err := put(t, c, "d/m", bad, "format:csv", "max_filter_ratio:0", "strict_mode:true")
		assert.NoError(t, err)
		assert.Equal(t, "Fail", a.Status, bad)
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO d.m VALUES (1000.00)")
	assert.ErrorContains(t, err, "filtered data in strict mode")
	_, rows := table(t, db, "SELECT p FROM d.m ORDER BY p")
	assert.Equal(t, "-0.05 12.35 999.99", flat(rows))
}
