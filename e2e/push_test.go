package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// The issue's own command: a push on every server, proven, with a report that holds what the design promises.
func TestPush(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(scaled[int64](40_000, 2_000_000))
		l.payload, l.batchRows, l.first = 512, scaled[int64](1000, 10_000), 9_000_000_000
		r := d.push(l.flags("--workers", "4", "--verify", "full")...).run(t).ends(t, 0)
		hasAllFields(t, r.stdout)
		assert.Empty(t, besidesDurability(r.stderr), "nothing to say besides the report")

		is := reportOf(t, r)
		assert.Equal(t, report.OK, is.Result.Outcome)
		assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
		assert.Equal(t, l.rows*(8+512), is.Result.PayloadBytes)
		assert.InEpsilon(t, is.Result.PayloadBytes, is.Result.EncodedBytes, 0.05, "the formats add little")
		assert.Greater(t, is.Result.WireBytes, is.Result.EncodedBytes)
		assert.Less(t, float64(is.Result.WireBytes), 1.1*float64(is.Result.EncodedBytes), "what the sockets took besides the bodies")
		assert.Zero(t, is.Result.Retries+is.Result.Duplicates+is.Result.Unknown+is.Result.Missing+is.Result.GivenUp)
		assert.Equal(t, l.batches(), is.Result.Attempts)
		assert.Positive(t, is.Result.RowsPerSecond)
		assert.Positive(t, is.Phases.Load)
		assert.Positive(t, is.Latency.BatchSeconds.P50)
		assert.Equal(t, "exactly-once", is.Plan.Delivery)
		assert.Equal(t, []int64{l.rows, l.first, l.batchRows, 4}, []int64{is.Plan.Rows, is.Plan.FirstKey, is.Plan.BatchRows, int64(is.Plan.Workers)})
		assert.Equal(t, report.Verify{
			Mode: "full", Ran: true, OK: true, ExpectedRows: l.rows, FoundRows: l.rows, SampledRows: 10_000,
			BadBatches: []report.BadBatch{}, Problems: []string{},
		}, is.Verify)
		assert.Positive(t, is.Stored.Bytes)
		assert.NotEmpty(t, is.Target.Settings)
		assert.Contains(t, strings.ToLower(is.Target.Server), strings.ToLower(string(d.kind)))
		assert.Empty(t, besidesDurability(strings.Join(is.Warnings, "\n")))

		d.isExact(t, l)
		assert.Zero(t, d.claims(), "claims are kept until the run is verified, and not longer")
	})
}

// besidesDurability leaves out the warning of every push into a server that is set up to forget: those of tests are.
func besidesDurability(text string) (rest []string) {
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "durability: ") {
			rest = append(rest, line)
		}
	}
	return rest
}

// hasAllFields checks the names that DESIGN.md promises, as a script would use them.
func hasAllFields(t *testing.T, stdout string) {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &object))
	for section, fields := range map[string]string{
		"run":     "id started resumed",
		"target":  "backend server endpoint table settings",
		"plan":    "method format dataset seed rows first_key workers batch_rows batch_bytes delivery distinct_rows distinct_bytes",
		"result":  "outcome rows batches payload_bytes encoded_bytes wire_bytes seconds rows_per_second bytes_per_second attempts retries refills duplicates unknown",
		"phases":  "prepare fill load stage commit finish verify",
		"latency": "batch_seconds",
		"client":  "cores cpu_user_seconds cpu_system_seconds peak_rss_bytes",
		"stored":  "bytes bytes_per_row",
		"verify":  "mode ok expected_rows found_rows sampled_rows bad_batches",
	} {
		held, _ := object[section].(map[string]any)
		for name := range strings.FieldsSeq(fields) {
			assert.Contains(t, held, name, "%s.%s", section, name)
		}
	}
	assert.Contains(t, object, "warnings")
}
