package push_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// A run that appends and does not begin leaves no keys reserved: it has no record to forget it by, and all that append
// later would come behind its range.
func TestAppendThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail func(ctx context.Context, p *fixture) error
		says string
	}{
		"the answer is lost": {func(context.Context, *fixture) error { return errors.New("the answer is lost") }, "the answer is lost"},
		"no record can be made": {func(_ context.Context, p *fixture) error {
			return errors.Join(os.RemoveAll(p.state), os.WriteFile(p.state, nil, 0o600))
		}, "not a directory"},
		"stopped": {func(ctx context.Context, p *fixture) error {
			close(p.drain)
			<-ctx.Done()
			return ctx.Err()
		}, "stopped by a signal"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t)
			back := 0
			p.hook = func(ctx context.Context, op string, _ int64) error {
				if op == "give back" {
					back++
				}
				if op == "after reserve" {
					return c.fail(ctx, p)
				}
				return nil
			}
			r, err := p.push(small + " --append --rows 1000000")
			require.ErrorContains(t, err, c.says)
			require.Empty(t, r.Run.ID)
			require.Equal(t, 1, back)
			require.Empty(t, p.memory.Runs())
			p.forgetFolder()
			p.hook, p.drain = nil, make(chan struct{})
			require.Zero(t, p.succeeds(small+" --append").Plan.FirstKey)
		})
	}
}

// A plan that only the first key makes impossible is refused behind the reservation.
func TestAppendWithKeysTooLong(t *testing.T) {
	p := newFixture(t)
	p.succeeds("--rows 1000 --first-key 1000000000000000 --payload-bytes 16 --batch-rows 1000 --workers 1")
	p.forgetFolder()
	const long = "--rows 2000 --payload-bytes 16 --workers 1 --append --payload-kind text --format csv --batch-rows 1000 --memory "
	p.fails(long+"40000", push.Usage, "more than --memory")
	require.EqualValues(t, 1_000_000_000_001_000, p.succeeds(long+"10MB").Plan.FirstKey, "the first one holds no keys")
}

// What does not fit behind the rows that are there is refused before keys are reserved.
func TestAppendToAFullTable(t *testing.T) {
	p := newFixture(t)
	p.succeeds(small + " --first-key 4611686018427387000")
	p.failOn("give back", errors.New("it is down"))
	r := p.fails(small+" --append --rows 1000", report.PreflightFailed, "--append to table memory: the first free key is 4611686018427387195, "+
		"after all rows and all keys reserved for other runs, and the largest one is 4611686018427387903: there is no room for 1000 rows; "+
		"choose another --table, fewer --rows, or a --first-key with room after it")
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "the table may still belong to run ")
	require.Contains(t, r.Warnings[0], "which did not begin: terapush forget frees it (it is down)")
	p.hook = nil
	require.EqualValues(t, 4611686018427387195, p.succeeds(small+" --append --rows 700").Plan.FirstKey)
}

// bare is a back-end that can be asked, and that keeps no rows of runs.
type bare struct {
	loader.Loader
	loader.Resolver
	loader.Counter
}

// Where keys cannot be reserved the user says from where on, and no rows may be there.
func TestAppendFromAChosenKey(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	p.wrap = func(h hooked) loader.Loader { return bare{h, h, h} }
	p.succeeds(small)
	p.fails(small+" --append", report.PreflightFailed, "memory cannot find the free keys: give --first-key with --append, behind the table's largest key")
	p.forgetFolder()
	r := p.succeeds(small + " --append --first-key 195")
	require.EqualValues(t, 195, r.Plan.FirstKey)
	require.True(t, r.Verify.OK)
	require.Empty(t, r.Warnings)
	p.exact(0, 390)
	require.EqualValues(t, 195, p.succeeds("--resume "+r.Run.ID).Plan.FirstKey)
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.wrap = func(h hooked) loader.Loader { return bare{h, h, h} }
		p.memory.Script = oneSecond
		require.EqualValues(t, 1000, p.succeeds("--append --first-key 1000 "+timed+"2s").Plan.FirstKey)
	})

	p = newFixture(t)
	p.succeeds(small + " --first-key 194")
	p.fails(small+" --append --first-key 0", report.PreflightFailed,
		"1 rows of table memory have keys from 0 to 194, which the run needs: choose a larger --first-key")
	p.fails(small+" --append --first-key 388", report.PreflightFailed, "1 rows of table memory have keys from 388 to 582")
	p.succeeds(small + " --append --first-key 389")

	p, _ = newStore(t)
	r = p.succeeds(small + " --append --first-key 200")
	require.Equal(t, []string{"it was not checked that the keys from 200 on are free in table memory"}, r.Warnings)
}

// A run has its table alone while it is open, whatever has become of its process; runs that append share it. Who is
// refused reads which run it is, whose, and the command that frees the table.
func TestTableOfAnOpenRun(t *testing.T) {
	t.Parallel()
	p := newFixture(t)
	run := p.kill(small, 5)
	for _, args := range []string{"", " --create recreate", " --create truncate", " --append"} {
		r := p.fails("--state-dir "+t.TempDir()+" "+small+args, report.PreflightFailed, "table memory belongs to run "+run+" of ")
		require.Contains(t, r.Result.Error, "terapush forget TARGET --run "+run+" frees the table")
		require.Empty(t, r.Run.ID)
		require.Len(t, p.memory.Applied(), 5)
	}
	p.succeeds("--resume " + run)
	p.succeeds(small + " --append --state-dir " + t.TempDir())

	p = newFixture(t)
	run = p.kill(small+" --append", 5)
	other := p.succeeds(small + " --append --state-dir " + t.TempDir())
	require.EqualValues(t, 195, other.Plan.FirstKey)
	p.fails("--resume "+run+" --first-key 7", push.Usage, "--first-key cannot change in a resumed run: it was 0, now it is 7")
	p.succeeds("--resume " + run)
	p.exact(0, 390)
	p.failOn("take", errors.New("a look at the table takes nothing"))
	_, err := push.CheckServer(t.Context(), p.job(small+" --append"))
	require.NoError(t, err)
	require.Len(t, p.memory.Runs(), 2)
}

// Two runs that begin with the same keys find no row that has one of them yet.
func TestAppendsWithTheSameFirstKey(t *testing.T) {
	p := newFixture(t)
	var second error
	elsewhere := " --state-dir " + t.TempDir()
	p.then("after reserve", func() {
		p.hook = nil
		_, second = p.push(small + " --append --first-key 100" + elsewhere)
	})
	r := p.succeeds(small + " --append --first-key 0")
	require.ErrorContains(t, second, "table memory belongs to run "+r.Run.ID)
	require.Equal(t, report.PreflightFailed, push.OutcomeOf(second))
	p.exact(0, 195)
	p.succeeds(small + " --append --first-key 195" + elsewhere)
}

// What a preflight finds after the run's row was made leaves the table to the next run.
func TestPreflightGivesTheTableBack(t *testing.T) {
	p := newFixture(t)
	p.failOn("probe", errors.New("no room on the device"))
	p.fails(small, report.PreflightFailed, "no room on the device")
	require.Empty(t, p.memory.Runs())
	p.hook = nil
	p.succeeds(small)
	p.fails(small, report.PreflightFailed, "table memory holds rows")
	require.Len(t, p.memory.Runs(), 1)

	part := p.job(small)
	part.ID = "run.2" // of a run of several tables, which takes neither --append nor --table
	_, err := push.Run(p.Context(), part)
	require.Contains(t, loader.Explain(err), "table memory holds rows (empty it, or leave it out of the file; --create truncate ")

	p.succeeds(small + " --append")
}

// References of a table to itself are to its rows from key 0 on, which a run that begins elsewhere does not send.
func TestFirstKeyOfRowsThatReferToThemselves(t *testing.T) {
	own, err := dataset.ParseSpec("staff.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n"+
		"  boss: {ref: {column: id, rows: 10}}\n"), nil)
	require.NoError(t, err)
	job := newFixture(t).job("--rows 100 --first-key 50")
	job.Config.Dataset, job.Config.Own = own.Name, own
	_, err = push.Run(t.Context(), job)
	require.ErrorContains(t, err, "--first-key 50: column boss refers to the first rows of its own table, from key 0 on")
}
