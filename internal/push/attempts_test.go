package push_test

import (
	"context"
	"os"
	"path/filepath"
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

func newLabelled(t *testing.T) *place {
	p := newPlace(t)
	p.memory.Caps = &loader.Caps{Formats: []batch.Format{batch.TSV}, Dedup: loader.DedupKey, DefaultBatchBytes: 1 << 20}
	return p
}

// killedAt runs a process that dies while the batch is on its way: its attempt goes on in the server, and the journal
// has what was durable by then.
func (p *place) killedAt(args string, number int64) (run string) {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	var journal []byte
	p.memory.Script = func(n int64, _ int) loadertest.Fault {
		if n != number || journal != nil {
			return loadertest.Fault{}
		}
		var err error
		journal, err = os.ReadFile(filepath.Join(p.state, p.run(), "journal.jsonl"))
		require.NoError(p, err)
		die()
		return loadertest.Fault{Linger: loadertest.ErrConnection}
	}
	p.meddle = func(ctx context.Context, op string, _ int64) error {
		if op == "resolve" {
			return ctx.Err() // nobody asks any more once the process is gone
		}
		return nil
	}
	_, err := push.Run(ctx, p.job(args+" --workers 1"))
	require.Error(p, err)
	require.NotNil(p, journal)
	p.failOn("", nil)
	p.memory.Script = nil
	run = p.run()
	require.NoError(p, os.WriteFile(filepath.Join(p.state, run, "journal.jsonl"), journal, 0o600))
	return run
}

// Between the body and the answer: the label is not there yet, and the query still runs. Without the question it would
// put its rows in beside those of the resume.
func TestKilledBetweenBodyAndAnswer(t *testing.T) {
	p := newLabelled(t)
	run := p.killedAt(small, 7)
	var asked []int64
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "resolve" {
			asked = append(asked, number)
		}
		if op == "load" && number == 7 {
			require.Equal(t, []int64{7}, asked, "asked before it is sent")
		}
		return nil
	}
	r := p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.Equal(t, []int64{7}, asked)
	require.EqualValues(t, 70, r.Run.ResumedRows)
	require.Empty(t, r.Warnings)
	text, err := os.ReadFile(filepath.Join(p.state, run, "journal.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), `{"batch":7,"attempt":2,`), "announced and applied as the second attempt")
}

func TestKilledAgainAndAgain(t *testing.T) {
	p := newLabelled(t)
	run := p.killedAt(small, 7)
	for range 3 {
		p.killedAt("--resume "+run, 7)
	}
	p.succeeds("--resume " + run)
	p.exact(0, 195)
	text, err := os.ReadFile(filepath.Join(p.state, run, "journal.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(text), `{"batch":7,"attempt":5,`, "attempts count over all processes")
}

// The label's window is over: nobody can tell what became of the batch, so it is listed and the others go in.
func TestResumePastTheWindow(t *testing.T) {
	p := newLabelled(t)
	run := p.killedAt(small, 7)
	p.cannotTell = "3 rows lie in its key range"
	r := p.fails("--resume "+run, report.Unknown, "the outcome of 1 batches is unknown, the first are [7]")
	require.Contains(t, r.Result.Error, "resolving batch 7: the database cannot tell the outcome: 3 rows lie in its key range")
	require.EqualValues(t, 185, r.Result.Rows)
	require.EqualValues(t, 1, r.Result.Unknown)
	p.cannotTell = ""
	p.succeeds("--resume " + run)
	p.exact(0, 195)
}

// There is nobody to ask, so what one process did not learn no other one can take for certain.
func TestUnknownOfAnEarlierProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.memory.Script = func(number int64, attempt int) loadertest.Fault {
			switch {
			case number != 7:
				return loadertest.Fault{}
			case attempt == 1:
				return loadertest.Fault{After: loadertest.ErrConnection}
			}
			return loadertest.Fault{Before: loadertest.ErrRejected}
		}
		for _, args := range []string{small + " --delivery at-least-once", "--resume "} {
			if args == "--resume " {
				args += p.run()
			}
			p.fails(args, report.Unknown, "the outcome of 1 batches is unknown, the first are [7]")
		}
	})
}

func TestExplainWhatIsEncodedAfresh(t *testing.T) {
	p := newPlace(t)
	p.memory.Caps = &loader.Caps{Formats: []batch.Format{batch.Parquet, batch.TSV}, DefaultBatchBytes: 1 << 20}
	for format, want := range map[string]string{
		"parquet": "format parquet, delivery at-least-once, every batch encoded afresh\n", "tsv": "format tsv, delivery at-least-once\n",
	} {
		j := p.job(small + " --payload-kind text --format " + format)
		var text strings.Builder
		require.NoError(t, push.Explain(&text, &j.Config, j.Drivers))
		require.Contains(t, text.String(), want)
	}
}

func TestExplainStaged(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	j := p.job(grouped)
	var text strings.Builder
	require.NoError(t, push.Explain(&text, &j.Config, j.Drivers))
	require.Contains(t, text.String(), "\nvia       s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000\n")
	require.Contains(t, text.String(), "\ngroups    of 4 stored batches, 2 committed at a time\n")
}

// Whatever is asked of the database is asked again where its answer is lost, as a batch is sent again: each question here
// loses its first one.
func TestQuestionsArePutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		var again map[string]bool
		p.meddle = func(_ context.Context, op string, _ int64) error {
			lost, asks := again[op]
			if asks && !lost {
				again[op] = true
				return loadertest.ErrConnection
			}
			return nil
		}
		lose := func(ops ...string) {
			again = map[string]bool{}
			for _, op := range ops {
				again[op] = false
			}
		}
		every := func() {
			for op, lost := range again {
				require.True(t, lost, op)
			}
		}
		lose("prepare", "probe", "reserved", "claimed", "counted", "stored", "forget")
		p.succeeds(small + " --append")
		every()
		p.exact(0, 195)
		require.Zero(t, p.claims(p.run()))

		lose("prepare", "counted")
		r, err := push.Verify(t.Context(), p.job("--resume "+p.run()))
		require.NoError(t, err)
		require.True(t, r.Verify.OK)
		require.EqualValues(t, 195, r.Verify.FoundRows)
		every()

		lose("forget")
		require.NoError(t, push.Forget(t.Context(), p.job("--resume "+p.run())))
		every()
	})
}
