package push_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
	for _, after := range []int{0, 1, 13, 19} {
		p := newPlace(t)
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
	}
}

func TestResumeAgainAndAgain(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small, 3)
	for after := 6; after < 20; after += 3 {
		p.kill("--resume "+run, after)
	}
	p.succeeds("--resume " + run)
	p.exact(0, 195)
}

// Everything is in and the process died before it could say so: nothing is filled, nothing is sent.
func TestResumeWithNothingLeft(t *testing.T) {
	p := newPlace(t)
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
}

// The server loses what it had while the process that resumes looks away.
func TestResumeWithNothingLeftUntilAllIsLost(t *testing.T) {
	p := newPlace(t)
	p.failOn("claimed", errors.New("killed"))
	p.fails(small, report.Failed, "killed")
	asked := 0
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "claimed" {
			if asked++; asked == 2 {
				p.memory.Crash()
			}
		}
		return nil
	}
	r := p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.NotZero(t, r.Phases.Fill)
	require.EqualValues(t, 195, r.Result.Rows)
}

func TestResumeOfAFinishedRunVerifies(t *testing.T) {
	p := newPlace(t)
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

func TestResumeAfterTheServerLostSome(t *testing.T) {
	p := newPlace(t)
	p.failOn("count", errors.New("not now"))
	p.fails(small, report.Failed, "not now")
	require.Equal(t, runlog.Loaded, p.record().Stage)
	p.memory.Crash()
	p.failOn("", nil)
	r := p.succeeds("--resume " + p.run())
	p.exact(0, 195)
	require.Equal(t, []string{"the server lost 20 batches that it had acknowledged; the lost rows are sent again"}, r.Warnings)
	require.EqualValues(t, 195, r.Result.Rows)
	require.Zero(t, r.Run.ResumedRows)
}

// Somebody has emptied the claim table, and the rows are there: to send them again would double them.
func TestClaimsThatSomebodyRemoved(t *testing.T) {
	p := newPlace(t)
	p.failOn("count", errors.New("not now"))
	p.fails(small, report.Failed, "not now")
	p.memory.RemoveClaims()
	p.failOn("", nil)
	p.fails("--resume "+p.run(), report.PreflightFailed, "somebody removed claims")
	p.exact(0, 195)
}

// What the first process was told is no change, however many rows that was.
func TestResumeWithTheSameBatchBytes(t *testing.T) {
	for _, args := range []string{"--batch-bytes 1KiB", "--batch-bytes 2KiB --format csv --payload-kind text"} {
		p := newPlace(t)
		run := p.kill("--rows 195 --payload-bytes 16 "+args, 2)
		p.fails("--resume "+run+" --batch-bytes 3KiB", push.Usage, "--batch-bytes cannot change in a resumed run: it was "+args[14:15]+".0KiB, now it is 3.0KiB")
		p.succeeds("--resume " + run + " " + args)
		p.exact(0, 195)
	}
	p := newPlace(t)
	run := p.kill(small, 5)
	p.succeeds("--resume " + run + " --batch-bytes 340")
}

func TestResumeRefusesWhatWouldChangeTheRows(t *testing.T) {
	p := newPlace(t)
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
		"--seed 2 --rows 5 --table u": "--seed cannot change in a resumed run: it was 1, now it is 2\n--table cannot change",
	} {
		p.fails("--resume "+run+" "+args, push.Usage, want)
	}
	require.Equal(t, before, p.memory.Applied())

	p.succeeds("--resume " + run + " --seed 1 --table t --method keep --format pgbinary --rows 195 --first-key 0 --batch-rows 10 --payload-bytes 16" +
		" --distinct-bytes 1024 --delivery auto --create if-missing --workers 2 --memory 1MiB --max-rate 1GiB/s --retries 2 --set a=b --verify ack --batch-timeout 1m")
	p.exact(0, 195)
}

// The rows come from the plan: were a default another one in a later version, a resume would not notice.
func TestResumeTakesTheRowsFromThePlan(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small+" --seed 9", 5)
	path := filepath.Join(p.state, run, "run.json")
	r := p.record()
	r.Flags = map[string][]string{}
	l, err := runlog.Open(p.state, run, func(event.Event) {})
	require.NoError(t, err)
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())
	require.FileExists(t, path)

	got := p.succeeds("--resume " + run)
	p.exact(0, 195)
	require.EqualValues(t, 9, got.Plan.Seed)
	require.EqualValues(t, 195*24, got.Result.PayloadBytes)
}

// A table that was rewritten has another identity and the same rows. One that was emptied, or made anew, has not.
func TestResumeOnAnotherTable(t *testing.T) {
	const now = "(it was table-1, now it is table-2)"
	for name, c := range map[string]struct {
		args    string
		after   int
		change  func(p *place)
		refused string
	}{
		"rewritten":             {after: 5},
		"no claims, no journal": {args: " --delivery at-least-once", after: 5, refused: "there are no rows to recognize it by; start a new run"},
		"emptied":               {after: 5, change: func(p *place) { p.memory.Truncate() }, refused: "5 of the 5 batches that were in are missing or incomplete"},
		"filled by another run": {after: 5, change: func(p *place) {
			p.memory.Truncate()
			p.succeeds(small)
		}, refused: "15 batches have rows that this run has not sent"},
		"nothing was in":   {refused: "there are no rows to recognize it by; start a new run"},
		"nobody can count": {after: 5, change: func(p *place) { p.failOn("count", errors.New("not now")) }, refused: "looking for rows of run"},
		"an engine that commits": {after: 5, change: func(p *place) {
			p.memory.Caps = &loader.Caps{Formats: formats(), DefaultBatchBytes: 1000, Reason: "MyISAM keeps rows"}
		}, refused: "cannot any more: MyISAM keeps rows"},
		"claims and rows are gone": {after: 5, change: func(p *place) { p.memory.Crash() }, refused: "there are no rows to recognize it by"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
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
			require.Equal(t, []string{"table memory was rewritten since the earlier process " + now + "; the batches that were in still are"}, r.Warnings)
			require.Equal(t, "table-2", p.record().Identity)

			p.memory.Identity = "table-3"
			p.succeeds("--resume " + run)
			p.memory.Truncate()
			p.memory.Identity = "table-4"
			p.fails("--resume "+run+" --verify none", report.PreflightFailed, "20 of the 20 batches that were in are missing or incomplete")
		})
	}
}

// Where claims tell what is in, a resume needs no journal. Where they were removed as well, and where there never were any,
// nobody knows what was sent.
func TestResumeWithoutItsJournal(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, journal string){
		"missing": func(t *testing.T, journal string) { require.NoError(t, os.Remove(journal)) },
		"emptied": func(t *testing.T, journal string) { require.NoError(t, os.Truncate(journal, 0)) },
		"garbled": func(t *testing.T, journal string) {
			text, err := os.ReadFile(journal)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(journal, append(text, "\x00\x00\n{}\n"...), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			run := p.kill(small, 7)
			journal := filepath.Join(p.state, run, "journal.jsonl")
			damage(t, journal)
			p.kill("--resume "+run, 9)
			require.Contains(t, p.log.String(), "the run continues with a new one")
			r := p.succeeds("--resume " + run)
			require.Empty(t, r.Warnings, "which is whole")
			require.EqualValues(t, 20, r.Result.Batches)
			p.exact(0, 195)

			p = newPlace(t)
			run = p.kill(small, 7)
			damage(t, filepath.Join(p.state, run, "journal.jsonl"))
			p.memory.RemoveClaims()
			for range 2 { // what the first resume begins is no whole journal either
				p.fails("--resume "+run, report.PreflightFailed, "7 batches have rows in memory and no claims: somebody removed claims of run "+run)
			}
			p.exact(0, 70)

			p = newPlace(t)
			run = p.kill(small+" --delivery at-least-once", 7)
			damage(t, filepath.Join(p.state, run, "journal.jsonl"))
			p.fails("--resume "+run, report.PreflightFailed, "only the journal knows what was sent of run "+run)
			p.exact(0, 70)
			require.NoError(t, push.Forget(t.Context(), p.job("--resume "+run)))

			p = newPlace(t)
			run = p.succeeds(small).Run.ID
			damage(t, filepath.Join(p.state, run, "journal.jsonl"))
			r, err := push.Verify(t.Context(), p.job("--resume "+run))
			require.NoError(t, err)
			require.True(t, r.Verify.OK)
		})
	}
}

func TestResumeOfARunInUseIsRefused(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small, 5)
	l, err := runlog.Open(p.state, run, func(event.Event) {})
	require.NoError(t, err)
	p.fails("--resume "+run, report.PreflightFailed, "another process is working on run "+run)
	require.NoError(t, l.Close())
}

func TestClaimsThatCannotBeOursAreRefused(t *testing.T) {
	p := newPlace(t)
	run := p.kill(small, 5)
	p.memory.Script = func(int64, int) loadertest.Fault { return loadertest.Fault{Missing: 1} }
	p.fails("--resume "+run, report.Unknown, "the server took 9 of 10 rows")
	p.memory.Script = nil
	p.fails("--resume "+run, report.PreflightFailed, "with 9 rows is claimed, and the run has no such batch")
}

func TestAppendAndResume(t *testing.T) {
	p := newPlace(t)
	p.succeeds(small)
	p.meddle = func(_ context.Context, op string, rows int64) error {
		if op == "reserve" {
			require.EqualValues(t, 195, rows)
		}
		return nil
	}
	first := p.run()
	require.NoError(t, os.RemoveAll(filepath.Join(p.state, first)))
	ctx, die := context.WithCancel(t.Context())
	p.meddle = func(_ context.Context, op string, number int64) error {
		if op == "load" && number == 9 {
			die()
		}
		return nil
	}
	_, err := push.Run(ctx, p.job(small+" --append --workers 1"))
	require.Error(t, err)
	p.meddle = func(context.Context, string, int64) error { return nil }
	p.fails("--resume "+p.run()+" --first-key 7", push.Usage, "--first-key cannot change in a resumed run: it was 195, now it is 7")
	r := p.succeeds("--resume " + p.run())
	require.EqualValues(t, 195, r.Plan.FirstKey)
	p.exact(0, 390)
}

func TestKilledDurationRun(t *testing.T) {
	p := newPlace(t)
	run := p.kill("--duration 1h --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16", 7)
	p.fails("--resume "+run+" --duration 2h", push.Usage, "--duration cannot change in a resumed run: it was 1h0m0s, now it is 2h0m0s")
	p.fails("--resume "+run+" --rows 5", push.Usage, "--rows cannot change in a resumed run: it was --duration 1h0m0s, now it is 5")
	r := p.succeeds("--resume " + run)
	require.EqualValues(t, 80, r.Result.Rows, "seven were in, and one more might have been begun")
	p.exact(0, 80)

	p = newPlace(t)
	run = p.kill("--duration 1h --distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16", 0)
	p.fails("--resume "+run, report.PreflightFailed, "the run had not begun to load: start a new one")
}

// A resume neither drops nor empties again: what the first process has loaded is not sent twice, and the table is the same.
func TestResumeKeepsWhatItsRunHasMade(t *testing.T) {
	for _, create := range []string{"recreate", "truncate"} {
		p := newPlace(t)
		p.memory.Script = func(number int64, attempt int) loadertest.Fault {
			if number == 10 && attempt == 1 {
				return loadertest.Fault{Before: syscall.EINVAL}
			}
			return loadertest.Fault{}
		}
		_, err := p.push(small + " --workers 1 --retries 0 --create " + create)
		require.Error(t, err)
		before := len(p.memory.Applied())
		require.Positive(t, before)
		require.Equal(t, "table-1/1", p.record().Identity)

		p.succeeds("--resume " + p.run())
		p.exact(0, 195)
		require.Len(t, p.memory.Applied(), 20)
		require.Equal(t, 1, p.memory.Attempts(0), "not sent again")
	}
}
