package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
)

// The issue's own command: a push on every server, proven, with a report that holds what the design promises.
func TestPush(t *testing.T) {
	t.Parallel()
	onServers(t, everyServer(), func(t *testing.T, d *database) {
		l := small(scaled[int64](20_000, 2_000_000))
		l.payload, l.batchRows, l.first = 512, scaled[int64](1000, 10_000), 9_000_000_000
		r := d.push(l.flags("--workers", "4", "--verify", "full", "--method", d.exact())...).run(t).ends(t, 0)
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
		if d.kind != tiDB && d.kind != oceanBase { // which count it later
			assert.Positive(t, is.Stored.Bytes)
		}
		assert.NotEmpty(t, is.Target.Settings)
		assert.Contains(t, strings.ToLower(is.Target.Server), strings.ToLower(string(d.kind)))
		assert.Empty(t, besidesDurability(strings.Join(is.Warnings, "\n")))

		d.isExact(t, l)
		assert.Equal(t, l.batches(), d.claims(), "claims are kept until the run is forgotten")
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
