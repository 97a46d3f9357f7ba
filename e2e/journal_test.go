package e2e_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
	standin "github.com/terapush/terapush/internal/standin/databend"
)

// The dataset journal has a key of text, 20 digits, and a JSON document in which no format may lose a quotation mark.
// Whatever finds rows by their number has to find these, too.

func journalLoad(n, batchRows, first int64) load { return dataLoad("journal", n, batchRows, first) }

// twoJournals pushes a load in the format with a full proof, and a second one behind it, and proves both once more.
func twoJournals(t *testing.T, d *database, push func(...string) invocation, format string, flags, behind []string) (loads []load) {
	t.Helper()
	for _, l := range []load{journalLoad(3000, 250, 0), journalLoad(1100, 250, 3000)} {
		more := slices.Concat(flags, []string{"--workers", "3", "--verify", "full", "--verify-rows", "700"})
		if l.first > 0 {
			push(l.unplaced(flags...)...).fails(t, "holds rows", "--append", "journal")
			more = slices.Concat(more, []string{"--append"}, behind)
		}
		is := reportOf(t, push(l.unplaced(more...)...).run(t).ends(t, 0))
		assert.Equal(t, []any{report.OK, "journal", format, "exactly-once", l.first},
			[]any{is.Result.Outcome, is.Plan.Dataset, is.Plan.Format, is.Plan.Delivery, is.Plan.FirstKey})
		assert.Equal(t, []int64{l.rows, l.batches(), 1360 * l.rows}, []int64{is.Result.Rows, is.Result.Batches, is.Result.PayloadBytes})
		assert.Zero(t, is.Result.Retries+is.Result.Duplicates+is.Result.Unknown+is.Result.Missing)
		assert.Equal(t, report.Verify{
			Mode: "full", Ran: true, OK: true, ExpectedRows: l.rows, FoundRows: l.rows, SampledRows: 700,
			BadBatches: []report.BadBatch{}, Problems: []string{},
		}, is.Verify)
		loads = append(loads, l)

		again := push()
		again.args = []string{"verify", d.target(), "--run", is.Run.ID, "--state-dir", d.state, "--json", "--verify", "full"}
		later := reportOf(t, again.run(t).ends(t, 0))
		assert.Equal(t, []any{true, l.rows}, []any{later.Verify.OK, later.Verify.FoundRows})
	}
	return loads
}

// Every format, in the real engine of Databend.
func TestJournalInDatabend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"streaming-load", "csv"}, {"insert-no-presign", "parquet"}, {"stage-load", "ndjson"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			d := newEngine(t)
			flags := []string{"--method", c.method, "--format", c.format}
			loads := twoJournals(t, d, d.push, c.format, flags, []string{"--first-key", "3000"})
			d.isExact(t, loads...)
		})
	}
}

// kill -9 in the middle, in the real engine, which keeps what it has seen of a body that breaks off.
func TestJournalResumeInDatabend(t *testing.T) {
	t.Parallel()
	d, l := newEngine(t), journalLoad(6000, 1000, 0)
	p := d.push(l.unplaced("--workers", "2", "--max-rate", "1MiB/s", "--verify", "full")...).start(t)
	p.until(t, "rows", func() bool {
		var n int64
		err := d.query("SELECT COUNT(*) FROM journal", func(scan func(...any) error) error { return scan(&n) })
		return err == nil && n >= 1000 // the table is made by terapush
	})
	p.kill(t)
	is := reportOf(t, d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0))
	assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
	assert.Positive(t, is.Run.ResumedRows)
	d.isExact(t, l)
}

// A streaming load that breaks in the middle leaves a part of its rows, which are found by their keys, deleted, and sent
// again.
func TestJournalBreaksInDatabend(t *testing.T) {
	t.Parallel()
	l := journalLoad(1000, 50, 0)
	hold := make(chan struct{})
	defer close(hold)
	var s *scripted
	s = newScripted(t, standin.Options{Script: func(r standin.Request) standin.Fault {
		if r.Kind != standin.Stream || labelled(r.Label) != 3 || r.Attempt > 1 {
			return standin.Fault{}
		}
		assert.NoError(t, s.fake.Insert("journal", l.values(t, 160, 10)...))
		return standin.Fault{Cut: true, Hold: hold}
	}})
	is := reportOf(t, s.push(l.unplaced("--workers", "2", "--verify", "full")...).run(t).ends(t, 0))
	assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
	assert.Equal(t, 1, s.fake.Count(standin.Delete), "the part was deleted")
	s.has(t, l)
}
