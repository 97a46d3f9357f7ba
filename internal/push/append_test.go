package push_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
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
			forgotten := 0
			p.hook = func(ctx context.Context, op string, _ int64) error {
				if op == "forget" {
					forgotten++
				}
				if op == "after reserve" {
					return c.fail(ctx, p)
				}
				return nil
			}
			r, err := p.push(small + " --append --rows 1000000")
			require.ErrorContains(t, err, c.says)
			require.Empty(t, r.Run.ID)
			require.Equal(t, 1, forgotten)
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
	p.failOn("forget", errors.New("it is down"))
	r := p.fails(small+" --append --rows 1000", report.PreflightFailed, "--append to table memory: the first free key is 4611686018427387195, "+
		"after all rows and all keys reserved for other runs, and the largest one is 4611686018427387903: there is no room for 1000 rows; "+
		"choose another --table, fewer --rows, or a --first-key with room after it")
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "keys may still be reserved for run ")
	require.Contains(t, r.Warnings[0], "remove its rows from the claim table (it is down)")
	p.hook = nil
	require.EqualValues(t, 4611686018427387195, p.succeeds(small+" --append --rows 700").Plan.FirstKey)
}

// bare is a back-end that can be asked, and that reserves no keys.
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

	p = newFixture(t) // one that could reserve keys is not asked to
	p.succeeds(small + " --first-key 194")
	p.failOn("reserve", errors.New("not asked for"))
	p.fails(small+" --append --first-key 0", report.PreflightFailed,
		"1 rows of table memory have keys from 0 to 194, which the run needs: choose a larger --first-key")
	p.fails(small+" --append --first-key 388", report.PreflightFailed, "1 rows of table memory have keys from 388 to 582")
	p.succeeds(small + " --append --first-key 389")

	p, _ = newStore(t)
	r = p.succeeds(small + " --append --first-key 200")
	require.Equal(t, []string{"it was not checked that the keys from 200 on are free in table memory"}, r.Warnings)
}

// A run holds its table against others as long as it sends: alone, or with others that add to it. Verifying holds nothing.
func TestHold(t *testing.T) {
	p := newFixture(t)
	held := func(want loader.Hold, do func()) {
		p.prepared = nil
		do()
		require.Len(t, p.prepared, 1)
		require.Equal(t, want, p.prepared[0].Hold)
	}
	held(loader.HoldAlone, func() { p.succeeds(small) })
	run := p.run()
	held(loader.HoldNone, func() { p.succeeds("--resume " + run) })
	p.forgetFolder()
	held(loader.HoldShared, func() { run = p.kill(small+" --append", 25) })
	p.fails("--resume "+run+" --first-key 7", push.Usage, "--first-key cannot change in a resumed run: it was 195, now it is 7")
	held(loader.HoldShared, func() { require.EqualValues(t, 195, p.succeeds("--resume "+run).Plan.FirstKey) })
	p.exact(0, 390)
	require.Equal(t, runlog.Verified, p.record().Stage)
	held(loader.HoldNone, func() { p.verifies(run) })
	held(loader.HoldNone, func() {
		_, err := push.CheckServer(t.Context(), p.job(small+" --append"))
		require.NoError(t, err)
	})
}
