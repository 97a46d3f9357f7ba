package push_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// The journal has lost everything that the claims still know, and the connections were cut at an answer.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 19} {
		p := newFixture(t)
		run := p.kill(small, after)
		r := p.succeeds("--resume " + run + " --workers 3 --memory 64KiB")
		p.exact(0, 195)
		require.Equal(t, run, r.Run.ID)
		require.True(t, r.Run.Resumed)
		require.EqualValues(t, 10*after, r.Run.ResumedRows)
		require.EqualValues(t, 195, r.Result.Rows)
		require.EqualValues(t, 20, r.Result.Batches)
		require.EqualValues(t, 20-after, r.Result.Attempts)
		require.Equal(t, min(3, 20-after), r.Plan.Workers)
		require.LessOrEqual(t, r.Plan.Buffers, 20-after)
		require.Empty(t, r.Warnings)
		end := r.Timeline.Moments[len(r.Timeline.Moments)-1]
		require.Equal(t, r.Result.Rows-r.Run.ResumedRows, end.Rows, "rows of another process are in no moment of this one")
	}
}

// Everything is in and the process died before it could say so.
func TestResumeWithNothingLeft(t *testing.T) {
	p := newFixture(t)
	p.failOn("claimed", errors.New("killed"))
	p.fails(small, report.Failed, "killed")
	require.Equal(t, runlog.Loading, p.record().Stage)
	p.failOn("session", errors.New("nothing is left to send"))
	r := p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Zero(t, r.Phases.Fill)
	require.Zero(t, r.Result.Attempts)
	require.EqualValues(t, 195, r.Result.Rows)
	require.LessOrEqual(t, r.Plan.Buffers, 1)

	// The server loses all of it after the resume has asked for it.
	p = newFixture(t)
	p.failOn("claimed", errors.New("killed"))
	p.fails(small, report.Failed, "killed")
	asked := 0
	p.then("claimed", func() {
		if asked++; asked == 2 {
			p.memory.Crash()
		}
	})
	r = p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.NotZero(t, r.Phases.Fill)
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestResumeOfAFinishedRunVerifies(t *testing.T) {
	p := newFixture(t)
	run := p.succeeds(small).Run.ID
	p.failOn("session", errors.New("nothing is to be sent"))
	r := p.succeeds("--resume " + run)
	require.True(t, r.Verify.OK)
	require.Zero(t, r.Phases.Fill)
	require.EqualValues(t, 195, r.Run.ResumedRows)

	p.memory.Crash()
	r = p.fails("--resume "+run, report.VerificationFailed, "")
	require.EqualValues(t, 20, r.Verify.BadCount)
}

// Without claims the journal says what is in.
func TestResumeAtLeastOnce(t *testing.T) {
	p := newFixture(t)
	p.failOn("count", errors.New("not now"))
	p.fails(small+" --delivery at-least-once", report.Failed, "not now")
	p.hook = nil
	require.True(t, p.succeeds("--resume "+p.run()).Verify.OK)
	p.exact(0, 195)

	p = newFixture(t)
	run := p.kill(small+" --delivery at-least-once", 5)
	r := p.fails("--resume "+run, report.VerificationFailed, "")
	require.Contains(t, r.Warnings, "delivery is at least once: "+
		"batches that were on their way when the earlier process ended, 1 at most, may be duplicated")
}

// The claim table was emptied, and the rows are there: to send them again would double them.
func TestClaimsThatWereRemoved(t *testing.T) {
	for _, staged := range []bool{false, true} {
		p, args := newFixture(t), small
		if staged {
			p, args = newStaged(t, loader.DedupTx), grouped
		}
		p.failOn("count", errors.New("not now"))
		p.fails(args, report.Failed, "not now")
		p.memory.RemoveClaims()
		p.hook = nil
		p.fails("--resume "+p.run(), report.PreflightFailed, "somebody removed claims")
		p.exact(0, 195)
	}
}

func TestClaimOfOtherRows(t *testing.T) {
	p := newFixture(t)
	run := p.kill(small, 5)
	p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Missing: 1} }
	p.fails("--resume "+run, report.Unknown, "the server took 9 of 10 rows")
	p.memory.Script = nil
	p.fails("--resume "+run, report.PreflightFailed, "with 9 rows is claimed, and the run has no such batch")
}

func TestResumeRefusesWhatWouldChangeTheRows(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	run := p.kill(small+" --table t --distinct-bytes 1KiB", 5)
	before := p.memory.Applied()
	for args, want := range map[string]string{
		"--seed 2":                    "--seed cannot change in a resumed run: it was 1, now it is 2",
		"--payload-bytes 17":          "--payload-bytes cannot change in a resumed run: it was 16, now it is 17",
		"--payload-kind text":         "--payload-kind cannot change in a resumed run: it was bytes, now it is text",
		"--distinct-bytes all":        "--distinct-bytes cannot change in a resumed run: it was 1.0KiB, now it is all",
		"--table u":                   "--table cannot change in a resumed run: it was t, now it is u",
		"--method other":              "--method cannot change in a resumed run: it was keep, now it is other",
		"--format csv":                "--format cannot change in a resumed run: it was pgbinary, now it is csv",
		"--rows 196":                  "--rows cannot change in a resumed run: it was 195, now it is 196",
		"--bytes 1GiB":                "--bytes cannot change in a resumed run: it was 195, now it is 44739243",
		"--duration 1m":               "--duration cannot change in a resumed run: it was none, now it is 1m0s",
		"--first-key 7":               "--first-key cannot change in a resumed run: it was 0, now it is 7",
		"--append":                    "--append cannot change in a resumed run: it was false, now it is true",
		"--batch-rows 11":             "--batch-rows cannot change in a resumed run: it was 10, now it is 11",
		"--batch-bytes 1MiB":          "--batch-bytes cannot change in a resumed run: it was 340B, now it is 1.0MiB",
		"--delivery at-least-once":    "--delivery cannot change in a resumed run: it was exactly-once, now it is at-least-once",
		"--create recreate":           "--create cannot change in a resumed run: it was if-missing, now it is recreate",
		"--primary-key":               "--primary-key cannot change in a resumed run: it was false, now it is true",
		"--unlogged":                  "--unlogged cannot change in a resumed run: it was not given, now it is true",
		"--seed 2 --rows 5 --table u": "--seed cannot change in a resumed run: it was 1, now it is 2\n--table cannot change",
	} {
		p.fails("--resume "+run+" "+args, push.Usage, want)
	}
	require.Equal(t, before, p.memory.Applied())

	p.succeeds("--resume " + run + " --seed 1 --table t --method keep --format pgbinary --rows 195 --first-key 0 --batch-rows 10" +
		" --payload-bytes 16 --distinct-bytes 1024 --delivery auto --create if-missing --workers 2 --memory 1MiB --max-rate 1GiB/s" +
		" --retries 2 --set a=b --verify ack --batch-timeout 1m")
	p.exact(0, 195)

	// As many bytes as the batches had are no change, given or not.
	p = newFixture(t)
	run = p.kill("--rows 195 --payload-bytes 16 --batch-bytes 2KiB --format csv --payload-kind text", 2)
	p.fails("--resume "+run+" --batch-bytes 3KiB", push.Usage, "--batch-bytes cannot change in a resumed run: it was 2.0KiB, now it is 3.0KiB")
	p.succeeds("--resume " + run + " --batch-bytes 2KiB")
	p = newFixture(t)
	p.succeeds("--resume " + p.kill(small, 5) + " --batch-bytes 340")

	p = newStaged(t, loader.DedupKey)
	run = p.killAt(grouped, "commit", 2)
	p.fails("--resume "+run+" --staging s3://bucket/elsewhere", push.Usage, "--staging cannot change in a resumed run: "+
		"it was s3://bucket/prefix?endpoint=http%3A%2F%2Fstore%3A9000, now it is s3://bucket/elsewhere")
	p.fails("--resume "+run+" --commit-batches 5", push.Usage, "--commit-batches cannot change in a resumed run: it was 4, now it is 5")
	p.succeeds("--resume " + run + " --commit-batches 4 --staging s3://bucket/prefix?endpoint=http%3A%2F%2Fother%3A9000")
	p.exact(0, 195)
}

// The rows come from the plan: were a default another one in a later version, a resume would not notice.
func TestResumeTakesTheRowsFromThePlan(t *testing.T) {
	p := newFixture(t)
	run := p.kill(small+" --seed 9", 5)
	r := p.record()
	r.Flags = map[string][]string{}
	l, err := runlog.Open(p.state, run, func(event.Event) {}, nil)
	require.NoError(t, err)
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())

	got := p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.EqualValues(t, 9, got.Plan.Seed)
	require.EqualValues(t, 195*24, got.Result.PayloadBytes)
}

// without is a table that has lost a batch.
type without struct {
	hooked
	batch int64
}

func (l without) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	return l.hooked.Count(ctx, g, func(b loader.Bucket) error {
		if b.Number == l.batch {
			return nil
		}
		return f(b)
	})
}

// A table that was rewritten has another identity and the same rows. One that was emptied, or made again, has not.
func TestResumeOnAnotherTable(t *testing.T) {
	t.Parallel()
	const bare = " --create never --delivery at-least-once --verify none" // no run's row keeps it off
	const nothing = "there are no rows to recognize it by; start a new run"
	for name, c := range map[string]struct {
		args    string
		after   int
		change  func(p *fixture)
		refused string
	}{
		"rewritten":             {after: 5},
		"no claims, no journal": {args: " --delivery at-least-once", after: 5, refused: nothing},
		"nothing was in":        {refused: nothing},
		"emptied": {after: 5, change: func(p *fixture) { p.memory.Truncate() },
			refused: "5 of the 5 batches that were in are missing or incomplete"},
		"one batch is gone": {after: 5, change: func(p *fixture) {
			p.wrap = func(h hooked) loader.Loader { return without{h, 2} }
		}, refused: "1 of the 5 batches that were in are missing or incomplete"},
		"filled by another run": {after: 5, change: func(p *fixture) { p.memory.Truncate(); p.succeeds(small + bare) },
			refused: "15 batches have rows that this run has not sent"},
		"not counted": {after: 5, change: func(p *fixture) { p.failOn("count", errors.New("not now")) }, refused: "looking for rows of run"},
		"another engine": {after: 5, change: func(p *fixture) {
			p.memory.Caps = &loader.Caps{Formats: formats(), DefaultBatchBytes: 1000, Reason: "MyISAM keeps rows"}
		}, refused: "no longer supports: MyISAM keeps rows"},
		"claims and rows are gone": {after: 5, change: func(p *fixture) { p.memory.Crash() }, refused: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			run := p.kill(small+c.args, c.after)
			p.memory.Identity = "table-2"
			if c.change != nil {
				c.change(p)
			}
			if c.refused != "" {
				before := p.memory.Applied()
				p.fails("--resume "+run, report.PreflightFailed, c.refused)
				require.Equal(t, before, p.memory.Applied())
				return
			}
			r := p.succeeds("--resume " + run)
			p.exact(0, 195)
			require.Equal(t, []string{"table memory was rewritten since the earlier process (it was table-1, now it is table-2); " +
				"the batches that were in still are"}, r.Warnings)
			require.Equal(t, "table-2", p.record().Identity)

			p.memory.Identity = "table-3"
			p.succeeds("--resume " + run)
			p.memory.Truncate()
			p.memory.Identity = "table-4"
			p.fails("--resume "+run+" --verify none", report.PreflightFailed, "20 of the 20 batches that were in are missing or incomplete")
		})
	}
}

// Where claims tell what is in, a resume needs no journal. Where they were removed as well, or there never were any,
// what was sent is not known. Package runlog shows which journals are damaged.
func TestResumeWithoutItsJournal(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	run := p.kill(small, 7)
	p.damage(run)
	p.kill("--resume "+run, 9)
	require.Contains(t, p.log.String(), "the run continues without it")
	r := p.succeeds("--resume " + run)
	require.Len(t, r.Warnings, 1, "it stays as it is")
	require.EqualValues(t, 20, r.Result.Batches)
	p.exact(0, 195)

	p = newFixture(t)
	run = p.kill(small, 7)
	p.damage(run)
	p.memory.RemoveClaims()
	for range 2 { // the first resume makes no whole journal of it
		p.fails("--resume "+run, report.PreflightFailed, "7 batches have rows in memory and no claims: somebody removed claims of run "+run)
	}
	p.exact(0, 70)

	p = newFixture(t)
	run = p.kill(small+" --delivery at-least-once", 7)
	p.damage(run)
	p.fails("--resume "+run, report.PreflightFailed, "only the journal knows what was sent of run "+run)
	p.exact(0, 70)
	require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))

	p = newFixture(t)
	run = p.succeeds(small).Run.ID
	p.damage(run)
	p.verifies(run)
}

func TestKilledDurationRun(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	run := p.kill(timed+"1h", 7)
	p.fails("--resume "+run+" --duration 2h", push.Usage, "--duration cannot change in a resumed run: it was 1h0m0s, now it is 2h0m0s")
	p.fails("--resume "+run+" --rows 5", push.Usage, "--rows cannot change in a resumed run: it was --duration 1h0m0s, now it is 5")
	r := p.succeeds("--resume " + run)
	require.EqualValues(t, 80, r.Result.Rows, "seven were in, and one more might have been begun")
	p.exact(0, 80)

	p = newFixture(t)
	p.fails("--resume "+p.kill(timed+"1h", 0), report.PreflightFailed, "the run had not begun to load: start a new one")
}

// A resume neither drops nor empties again: what the first process has loaded is not sent twice, and the table is the
// same.
func TestResumeKeepsWhatItsRunHasMade(t *testing.T) {
	t.Parallel()
	for _, create := range []string{"recreate", "truncate"} {
		p := newFixture(t)
		p.at("load", 10, func() error { return syscall.EINVAL })
		p.fails(small+" --workers 1 --retries 0 --create "+create, report.Failed, "invalid argument")
		require.Len(t, p.memory.Applied(), 10)
		require.Equal(t, "table-1/1", p.record().Identity)

		p.hook = nil
		p.succeeds("--resume " + p.run())
		p.exact(0, 195)
		require.Equal(t, 1, p.memory.Attempts(0), "not sent again")
	}
}
