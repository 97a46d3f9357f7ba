package push_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// A run that appends and does not begin leaves no keys set aside: without a record nobody could forget it, and all who
// append later would come behind its range.
func TestAppendThatDoesNotBegin(t *testing.T) {
	lost := errors.New("the answer is lost")
	for name, c := range map[string]struct {
		op     string
		meddle func(p *place) error
		says   string
	}{
		"the answer is lost": {op: "reserved", meddle: func(*place) error { return lost }, says: lost.Error()},
		"no record can be made": {op: "reserved", meddle: func(p *place) error {
			return errors.Join(os.RemoveAll(p.state), os.WriteFile(p.state, nil, 0o600))
		}, says: "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			forgotten := 0
			p.meddle = func(_ context.Context, op string, _ int64) error {
				switch op {
				case "forget":
					forgotten++
				case c.op:
					return c.meddle(p)
				}
				return nil
			}
			p.fails(small+" --append --rows 1000000", report.PreflightFailed, c.says)
			require.Equal(t, 1, forgotten)
			require.NoError(t, os.RemoveAll(p.state))
			p.failOn("", nil)
			require.Zero(t, p.succeeds(small+" --append").Plan.FirstKey)
		})
	}
}

// A plan that only the first key makes impossible is refused behind the reservation.
func TestAppendWithKeysTooLong(t *testing.T) {
	p := newPlace(t)
	const long = " --dataset documents --payload-kind text --format csv --batch-rows 1000 --memory "
	r := p.succeeds("--rows 1000 --first-key 1000000000000000 --payload-bytes 16 --batch-rows 1000 --workers 1")
	require.EqualValues(t, 1_000_000_000_000_000, r.Plan.FirstKey)
	require.NoError(t, os.RemoveAll(p.state))
	const rows = "--rows 2000 --payload-bytes 16 --workers 1 --append"
	p.fails(rows+long+"40000", push.Usage, "more than --memory")
	require.NoError(t, os.RemoveAll(p.state))
	require.EqualValues(t, 1_000_000_000_001_000, p.succeeds(rows+long+"10MB").Plan.FirstKey, "the first one holds no keys")
}

// What does not fit behind the rows that are there is refused before keys are set aside.
func TestAppendToAFullTable(t *testing.T) {
	p := newPlace(t)
	p.succeeds(small + " --first-key 4611686018427387000")
	p.failOn("forget", errors.New("it is down"))
	r := p.fails(small+" --append --rows 1000", report.PreflightFailed, "--append to table memory: the first free key is 4611686018427387195, "+
		"after all rows and all keys reserved for other runs, and the largest one is 4611686018427387903: there is no room for 1000 rows; "+
		"choose another --table, fewer --rows, or a --first-key with room after it")
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], "keys may still be reserved for run ")
	require.Contains(t, r.Warnings[0], "remove its rows from the claim table (it is down)")
	p.failOn("", nil)
	require.EqualValues(t, 4611686018427387195, p.succeeds(small+" --append --rows 700").Plan.FirstKey)
}

// A run holds its table against others as long as it sends: alone, or with others that add to it. Verifying holds nothing.
func TestHold(t *testing.T) {
	p := newPlace(t)
	held := func(op func()) (holds []loader.Hold) {
		p.prepared = func(asked loader.Preparation) { holds = append(holds, asked.Hold) }
		op()
		return holds
	}
	require.Equal(t, []loader.Hold{loader.HoldAlone}, held(func() { p.succeeds(small) }))
	run := p.run()
	require.Equal(t, []loader.Hold{loader.HoldNone}, held(func() { p.succeeds("--resume " + run) }))
	require.NoError(t, os.RemoveAll(p.state))
	require.Equal(t, []loader.Hold{loader.HoldShared}, held(func() { run = p.kill(small+" --append", 25) }))
	require.Equal(t, []loader.Hold{loader.HoldShared}, held(func() { p.succeeds("--resume " + run) }))
	require.Equal(t, []loader.Hold{loader.HoldNone}, held(func() {
		_, err := push.Verify(t.Context(), p.job("--resume "+run))
		require.NoError(t, err)
	}))
	require.Equal(t, []loader.Hold{loader.HoldNone}, held(func() {
		_, err := push.CheckServer(t.Context(), p.job(small+" --append"))
		require.NoError(t, err)
	}))
}
