package doris

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/report"
)

// Every dataset by every method and format, proven row by row.
func TestPushOfEveryDataset(t *testing.T) {
	s, via := startWithStore(t, nil)
	for _, data := range tables() {
		for _, how := range []string{
			"stream-load --format doriscsv", "stream-load --format ndjson", "stream-load --format parquet", "insert", "s3-load --format doriscsv", "s3-load --format parquet",
		} {
			t.Run(data+" "+how, func(t *testing.T) {
				table := strings.NewReplacer(" --format ", "_", "-", "_").Replace(data + "_" + how)
				args := "--method " + how + " --dataset " + data + " --table " + table + " --rows 1003 --batch-rows 101 --workers 3 --verify full"
				if strings.HasPrefix(how, "s3-load") {
					args += " --commit-batches 3 --via " + via.String()
				}
				r, log, err := pushed(t, s, args)
				require.NoError(t, err, log)
				assert.Equal(t, report.OK, r.Result.Outcome)
				assert.True(t, r.Verify.OK)
				assert.EqualValues(t, 1003, r.Verify.FoundRows)
				assert.EqualValues(t, 1003, s.Rows("d."+table))
			})
		}
	}
}

// The statements and loads of the group commit measurements: few rows a load, many workers, short intervals, and every mode.
func TestPushOfSmallLoads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, mode            string
		rows, batchRows         int64
		workers, intervalMillis int
	}{
		{insert, "async", 6_000, 100, 30, 50},
		{insert, "sync", 600, 1, 100, 10},
		{insert, "sync", 1_000, 1, 500, 20},
		{insert, "sync", 9_000, 300, 30, 100},
		{insert, "off", 600, 1, 30, 0},
		{streamLoad, "async", 3_000, 70, 30, 50}, // 10 KB
		{streamLoad, "sync", 10_500, 350, 30, 20},
		{streamLoad, "off", 3_000, 70, 30, 0},
	} {
		t.Run(fmt.Sprintf("%s %s %d rows %d workers", c.method, c.mode, c.batchRows, c.workers), func(t *testing.T) {
			t.Parallel()
			s := startStandIn(t, fake.Options{Backends: 3})
			r, log, err := pushed(t, s, fmt.Sprintf("--method %s --group-commit %s --group-commit-interval-ms %d --dataset lineitem --rows %d --batch-rows %d --workers %d --verify full",
				c.method, c.mode, c.intervalMillis, c.rows, c.batchRows, c.workers))
			require.NoError(t, err, log)
			assert.Equal(t, report.OK, r.Result.Outcome)
			assert.True(t, r.Verify.OK)
			assert.Equal(t, c.workers, r.Plan.Workers)
			assert.Equal(t, c.mode+"_mode", r.Target.Settings["group_commit"])
			assert.EqualValues(t, c.rows, s.Rows("d.lineitem"))
			assert.Zero(t, r.Result.Retries, log)
			if c.mode != "async" {
				return
			}
			assert.Positive(t, r.Phases.Finish, "rows that only a log holds are waited for")
		})
	}
}
