package push_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func newLabelled(t *testing.T) *fixture {
	p := newFixture(t)
	p.memory.Caps = &loader.Caps{Formats: []batch.Format{batch.TSV}, Dedup: loader.DedupKey, DefaultBatchBytes: 1 << 20}
	return p
}

// killOnTheWay runs a process that dies while the batch is on its way: its attempt goes on in the server.
func (p *fixture) killOnTheWay(args string, number int64) (run string) {
	p.Helper()
	return p.killed(args, func(keep, die func()) {
		p.memory.Script = func(n int64, _ int) loadertest.Fault {
			if n != number {
				return loadertest.Fault{}
			}
			p.memory.Script = nil
			keep()
			die()
			return loadertest.Fault{Linger: loadertest.ErrConnection}
		}
		p.on("resolve", func(ctx context.Context) error { return ctx.Err() }) // a process that is gone asks nothing
	})
}

// Between the body and the answer: the label is not there yet, and the query still runs. Without the question it would
// put its rows in beside those of the resume.
func TestKilledBetweenBodyAndAnswer(t *testing.T) {
	p := newLabelled(t)
	run := p.killOnTheWay(small, 7)
	for range 2 {
		p.killOnTheWay("--resume "+run, 7)
	}
	// Where the outcome cannot be found, as past the label's window, the batch is listed and the others go in.
	p.failOn("resolve", cannotTell("3 rows lie in its key range"))
	r := p.fails("--resume "+run, report.Unknown, "the outcome of 1 batches is unknown, the first are [7]")
	require.Contains(t, r.Result.Error, "resolving batch 7: the database cannot tell the outcome: 3 rows lie in its key range")
	require.EqualValues(t, 185, r.Result.Rows)
	require.EqualValues(t, 1, r.Result.Unknown)

	var asked []int64
	p.hook = func(_ context.Context, op string, number int64) error {
		if op == "resolve" {
			asked = append(asked, number)
		}
		if op == "load" && number == 7 {
			require.Equal(t, []int64{7}, asked, "asked before it is sent")
		}
		return nil
	}
	r = p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.Equal(t, []int64{7}, asked)
	require.EqualValues(t, 185, r.Run.ResumedRows)
	require.Empty(t, r.Warnings)
	require.Equal(t, 1, strings.Count(p.journal(), `{"batch":7,"attempt":4,`), "announced; attempts count over all processes")
}

// At least once there is nothing to ask, so what one process did not learn no other one can take for certain.
func TestUnknownOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		rejected := loadertest.Fault{Before: loadertest.ErrRejected}
		p.memory.Script = first(7, loadertest.Fault{After: loadertest.ErrConnection}, rejected, rejected)
		const unknown = "the outcome of 1 batches is unknown, the first are [7]"
		p.fails(small+" --delivery at-least-once", report.Unknown, unknown)
		p.fails("--resume "+p.run(), report.Unknown, unknown)
	})
}

// Whatever is asked of the database is asked again where its answer is lost: each question here loses its first one.
func TestQuestionsAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		lost := map[string]bool{}
		p.hook = func(_ context.Context, op string, _ int64) error {
			if done, known := lost[op]; known && !done {
				lost[op] = true
				return loadertest.ErrConnection
			}
			return nil
		}
		losing := func(do func(), ops ...string) {
			clear(lost)
			for _, op := range ops {
				lost[op] = false
			}
			do()
			for op, done := range lost {
				require.True(t, done, op)
			}
		}
		losing(func() { p.succeeds(small + " --append") },
			"prepare", "probe", "after reserve", "claimed", "settle closed", "after count", "stored", "settle proven")
		p.exact(0, 195)
		losing(func() { require.EqualValues(t, 195, p.verifies(p.run()).Verify.FoundRows) }, "prepare", "after count")
		losing(func() { require.NoError(t, push.Forget(t.Context(), p.job("--resume "+p.run()))) }, "forget")
	})
}
