package sweep_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

// bench is a scripted server and what a sweep against it leaves.
type bench struct {
	job     sweep.Job
	drain   chan struct{}
	entries []results.Entry
	order   []string // the pushes as they were begun
	// push decides what becomes of a push; a nil error and a rate of 100 is the default.
	push func(name string, drain <-chan struct{}) (rate float64, err error)
}

// plan has two methods and five numbers of workers, and workers is the knee's axis.
func plan(change ...func(*sweep.Plan)) sweep.Plan {
	p := sweep.Plan{Name: "p", Repeats: 1, Interleaved: true, Parts: []sweep.Part{{Axes: []results.Axis{
		{Name: "method", Values: []string{"copy", "insert"}}, {Name: "workers", Values: []string{"1", "2", "4", "8", "16"}},
	}}}}
	for _, f := range change {
		f(&p)
	}
	return p
}

// oneRow is the plan without its methods.
func oneRow(repeats int) sweep.Plan {
	return plan(func(p *sweep.Plan) {
		p.Knee, p.Repeats = "workers", repeats
		p.Parts[0].Axes = p.Parts[0].Axes[1:]
	})
}

func newBench(p sweep.Plan) *bench {
	b := &bench{drain: make(chan struct{})}
	b.job = sweep.Job{Plan: p, Cases: p.Cases(), Digest: "d", Drain: b.drain, Push: b.scripted, Keep: b.keep}
	return b
}

func (b *bench) keep(e results.Entry) error { b.entries = append(b.entries, e); return nil }

func (b *bench) scripted(_ context.Context, c sweep.Case, drain <-chan struct{}, begun func(func() bool)) (*report.Report, error) {
	begun(func() bool { return true })
	name := nameOf(c.Settings)
	b.order = append(b.order, name)
	r := &report.Report{}
	r.Result.Outcome, r.Result.Rows, r.Result.RowsPerSecond = report.OK, 1000, 100
	if b.push == nil {
		return r, nil
	}
	rate, err := b.push(name, drain)
	r.Result.RowsPerSecond = rate
	if err != nil {
		r.Result.Outcome, r.Result.Error = report.Failed, err.Error()
	}
	select {
	case <-drain:
		r.Result.Outcome = report.Interrupted
	default:
	}
	return r, err
}

func nameOf(settings []results.Setting) string {
	var words []string
	for _, s := range settings {
		words = append(words, s.Value)
	}
	return strings.Join(words, " ")
}

// told is what is recorded, push by push.
func (b *bench) told() []string {
	var all []string
	for _, e := range b.entries {
		text := fmt.Sprintf("%s #%d %s", nameOf(e.Settings), e.Repeat, e.Status)
		if e.WarmUp {
			text = "warm-up " + text
		}
		all = append(all, text)
	}
	return all
}

func (b *bench) run(t *testing.T) error {
	t.Helper()
	return sweep.Run(t.Context(), b.job)
}

func TestEveryCellOfEveryRepeatOnce(t *testing.T) {
	for _, interleaved := range []bool{true, false} {
		b := newBench(plan(func(p *sweep.Plan) { p.Repeats, p.Interleaved, p.WarmUp = 3, interleaved, 2 }))
		require.NoError(t, b.run(t))
		told := b.told()
		require.Equal(t, []string{"warm-up copy 1 #0 measured", "warm-up copy 1 #1 measured"}, told[:2])
		for repeat := range 3 {
			one := slices.Clone(told[2+10*repeat : 12+10*repeat])
			want := []string{}
			for _, c := range b.job.Cases {
				want = append(want, fmt.Sprintf("%s #%d measured", nameOf(c.Settings), repeat))
			}
			if interleaved {
				require.NotEqual(t, want, one, "shuffled")
				slices.Sort(want)
				slices.Sort(one)
			}
			require.Equal(t, want, one)
		}
	}
}

func TestOrderIsThePlans(t *testing.T) {
	orders := map[string]bool{}
	for _, digest := range []string{"a", "a", "b", "c", "d"} {
		b := newBench(plan(func(p *sweep.Plan) { p.Repeats = 2 }))
		b.job.Digest = digest
		require.NoError(t, b.run(t))
		orders[strings.Join(b.order, ",")] = true
	}
	require.Len(t, orders, 4, "the same for the same digest, and another for another")

	few, many := newBench(plan()), newBench(plan(func(p *sweep.Plan) { p.Repeats = 4 }))
	require.NoError(t, few.run(t))
	require.NoError(t, many.run(t))
	require.Equal(t, few.order, many.order[:10], "more repeats come behind")
}

// With a precision each case has as many trials as its median needs, and the others go on.
func TestPrecision(t *testing.T) {
	noise := map[string][]float64{
		"1":  {100, 101, 99, 100, 102, 98, 100, 100},                          // known after six
		"2":  {100, 150, 90, 100, 101, 99, 100, 102, 100, 100, 100},           // two outliers: after nine
		"4":  {50, 150, 60, 140, 70, 130, 50, 150, 60, 140, 70, 130, 50, 150}, // never
		"8":  {100, -1, 100, 100, 100, 100, 100, 100, 100},                    // one failure
		"16": {-1, -1, -1, -1, -1, -1, -1, -1},                                // nothing but failures
	}
	one := oneRow(1)
	one.Knee = ""
	require.NoError(t, one.SetRepeats(sweep.Auto, 0.05))
	b := newBench(one)
	trials := map[string]int{}
	b.push = func(name string, _ <-chan struct{}) (float64, error) {
		rate := noise[name][trials[name]%len(noise[name])]
		trials[name]++
		if rate < 0 {
			return 0, errors.New("failed")
		}
		return rate, nil
	}
	b.run(t)
	require.Equal(t, map[string]int{"1": 6, "2": 9, "4": 50, "8": 7, "16": 2}, trials)
	for _, e := range b.entries {
		require.NotEqual(t, results.Skipped, e.Status, "a case that is known was not skipped")
	}
}

func TestPartsOneAfterTheOther(t *testing.T) {
	b := newBench(plan(func(p *sweep.Plan) {
		second := p.Parts[0]
		second.Name, second.Axes = "second", []results.Axis{{Name: "rows", Values: []string{"a", "b"}}}
		p.Parts, p.Knee, p.Repeats, p.WarmUp = append(p.Parts, second), "workers", 2, 1
	}))
	require.NoError(t, b.run(t))
	parts := ""
	for _, e := range b.entries {
		parts += fmt.Sprint(e.Part)
	}
	// Five values of one rate: the third ends each of the two rows, so that 6 are measured and 4 skipped; then 6 more.
	require.Equal(t, "0"+strings.Repeat("0", 16)+"1"+strings.Repeat("1", 4), parts)
}

// Rows go up side by side, all repeats of a value before the next one, and each ends where it stops paying.
func TestKnee(t *testing.T) {
	rates := map[string]float64{
		"copy 1": 100, "copy 2": 190, "copy 4": 195, "copy 8": 150, // and 16 is past the knee
		"insert 1": 10, "insert 2": 20, "insert 4": 20, "insert 8": 22, "insert 16": 22,
	}
	b := newBench(plan(func(p *sweep.Plan) { p.Knee, p.Repeats = "workers", 2 }))
	b.push = func(name string, _ <-chan struct{}) (float64, error) {
		require.Contains(t, rates, name, "past the knee")
		return rates[name], nil
	}
	require.NoError(t, b.run(t))
	for step, workers := range []string{"1", "2", "4", "8"} {
		for repeat := range 2 {
			pair := b.order[4*step+2*repeat : 4*step+2*repeat+2]
			require.ElementsMatch(t, []string{"copy " + workers, "insert " + workers}, pair)
		}
	}
	require.Len(t, b.order, 9+9)
	require.Contains(t, b.told(), "copy 16 #0 skipped")
	require.NotContains(t, b.told(), "copy 16 #1 skipped", "said once")
	last := b.entries[slices.IndexFunc(b.entries, func(e results.Entry) bool { return e.Status == results.Skipped })]
	require.Equal(t, "past the knee: two values of workers in succession were no better, 95 % of each had been reached before", last.Error)
	require.Nil(t, last.Report)
}

// In order a case has all its repeats before the next one, so that medians end its row.
func TestKneeInOrder(t *testing.T) {
	b := newBench(plan(func(p *sweep.Plan) { p.Knee, p.Repeats, p.Interleaved = "workers", 2, false }))
	require.NoError(t, b.run(t))
	want := []string{}
	for _, cell := range []string{"copy 1", "copy 2", "copy 4", "insert 1", "insert 2", "insert 4"} {
		want = append(want, cell, cell)
	}
	require.Equal(t, want, b.order)
}

// One push that was lucky or unlucky neither ends a row nor keeps it going.
func TestKneeByMedians(t *testing.T) {
	for name, c := range map[string]struct {
		rates map[string][]float64 // of the repeats
		last  string
	}{
		"unlucky": {map[string][]float64{"1": {100, 100, 100}, "2": {90, 200, 210}, "4": {95, 400, 390}, "8": {800, 10, 810}, "16": {1600, 1600, 1600}}, "16"},
		"lucky":   {map[string][]float64{"1": {100, 100, 100}, "2": {100, 900, 101}, "4": {100, 102, 900}}, "4"},
		// 5 % of the higher one, as the knee of a table has it: 100 is near 105.2 and not near 105.3.
		"near":     {map[string][]float64{"1": {100, 100, 100}, "2": {105.2, 105.2, 105.2}, "4": {105.2, 105.2, 105.2}}, "4"},
		"not near": {map[string][]float64{"1": {100, 100, 100}, "2": {105.3, 105.3, 105.3}, "4": {105, 105, 105}, "8": {105, 105, 105}}, "8"},
		// Many small steps come to something.
		"slow": {map[string][]float64{"1": {100, 100, 100}, "2": {104, 104, 104}, "4": {108, 108, 108}, "8": {112, 112, 112}, "16": {116, 116, 116}}, "16"},
	} {
		b := newBench(oneRow(3))
		done := map[string]int{}
		b.push = func(workers string, _ <-chan struct{}) (float64, error) {
			require.Contains(t, c.rates, workers, name)
			done[workers]++
			return c.rates[workers][done[workers]-1], nil
		}
		require.NoError(t, b.run(t))
		require.Equal(t, c.last, b.order[len(b.order)-1], name)
		for workers, n := range done {
			require.Equal(t, 3, n, "%s: workers %s", name, workers)
		}
	}
}

// With more repeats a row may turn out to go on, and its skipped cases are done; or to have ended before, and then the cases
// that were begun get their repeats all the same.
func TestMoreRepeatsMoveTheKnee(t *testing.T) {
	flat := map[string]float64{"1": 100, "2": 100, "4": 100, "8": 100, "16": 100}
	rising := map[string]float64{"1": 100, "2": 200, "4": 400, "8": 800, "16": 1600}
	for _, c := range []struct {
		first, later map[string]float64
		done         map[string]int // by the second process
	}{
		{flat, map[string]float64{"1": 100, "2": 300, "4": 900, "8": 900, "16": 900}, map[string]int{"1": 2, "2": 2, "4": 2, "8": 3, "16": 3}},
		{rising, flat, map[string]int{"1": 2, "2": 2, "4": 2, "8": 2, "16": 2}},
		{flat, flat, map[string]int{"1": 2, "2": 2, "4": 2}},
	} {
		b := newBench(oneRow(1))
		b.push = func(name string, _ <-chan struct{}) (float64, error) { return c.first[name], nil }
		require.NoError(t, b.run(t))
		again := newBench(oneRow(3))
		again.job.Done, again.entries = slices.Clone(b.entries), slices.Clone(b.entries)
		again.push = func(name string, _ <-chan struct{}) (float64, error) { return c.later[name], nil }
		require.NoError(t, again.run(t))
		done := map[string]int{}
		for _, name := range again.order {
			done[name]++
		}
		require.Equal(t, c.done, done)
	}
}

func TestFailedPushesAreDoneAgainWhenThatIsWanted(t *testing.T) {
	b := newBench(plan(func(p *sweep.Plan) { p.Repeats, p.WarmUp = 2, 1 }))
	b.push = func(name string, _ <-chan struct{}) (float64, error) {
		if strings.HasSuffix(name, " 2") {
			return 0, errors.New("no such option")
		}
		return 100, nil
	}
	require.NoError(t, b.run(t))
	require.Len(t, b.entries, 21)
	whole := slices.Clone(b.entries)

	b.job.Done, b.order, b.push = slices.Clone(whole), nil, nil
	require.NoError(t, b.run(t))
	require.Empty(t, b.order, "a failure is a result")

	b.job.RetryFailed = true
	require.NoError(t, b.run(t))
	slices.Sort(b.order)
	require.Equal(t, []string{"copy 2", "copy 2", "insert 2", "insert 2"}, b.order)
	latest := results.Record{Entries: b.entries}.Latest()
	require.Len(t, latest, 21)
	for _, e := range latest {
		require.Equal(t, results.Measured, e.Status)
	}
}

func TestFailuresSayNothingAboutTheKnee(t *testing.T) {
	b := newBench(plan(func(p *sweep.Plan) { p.Knee = "workers" }))
	rate := 100.0
	b.push = func(name string, _ <-chan struct{}) (float64, error) {
		if strings.HasSuffix(name, " 2") || strings.HasSuffix(name, " 4") {
			return 0, errors.New("no such option")
		}
		rate *= 2
		return rate, nil
	}
	require.NoError(t, b.run(t), "failed cases do not end a sweep")
	require.Len(t, b.order, 10)
	require.Contains(t, b.told(), "copy 4 #0 failed")
	i := slices.IndexFunc(b.entries, func(e results.Entry) bool { return e.Status == results.Failed })
	require.Equal(t, "no such option", b.entries[i].Error)
	require.NotNil(t, b.entries[i].Report)
}

// A trial that ends within its warm-up has no rate, not one of 0.
func TestATrialOfItsWarmUpAlone(t *testing.T) {
	b := newBench(plan())
	b.job.Cases = b.job.Cases[:1]
	b.job.Push = func(context.Context, sweep.Case, <-chan struct{}, func(func() bool)) (*report.Report, error) {
		return &report.Report{Result: report.Result{Rows: 5}, Measured: &report.Measured{}}, nil
	}
	require.NoError(t, b.run(t))
	require.Equal(t, results.Failed, b.entries[0].Status)
	require.Contains(t, b.entries[0].Error, "nothing was measured")
}

// What the limit bounds is the time in which rows move: what comes before and behind is no part of what is compared.
func TestLimit(t *testing.T) {
	const never = 100 * time.Hour
	for name, c := range map[string]struct {
		fill, load, prove time.Duration
		rows              int64
		outcome           report.Outcome // of a push that is drained
		want              results.Status
		seconds           float64
		says              string
	}{
		"in time":        {load: time.Second, want: results.Measured, seconds: 1},
		"a long load":    {load: never, rows: 5, want: results.Limited, seconds: 60},
		"a long filling": {fill: 3 * time.Minute, load: never, rows: 5, want: results.Limited, seconds: 240},
		"a long proof":   {fill: time.Second, load: time.Second, prove: time.Hour, want: results.Measured, seconds: 3602},
		"no rows":        {load: never, want: results.Failed, seconds: 60, says: "the limit of 1m0s passed before a row was acknowledged"},
		"never filled": {fill: never, want: results.Failed, seconds: 660,
			says: "10m0s for preparing and filling and the limit of 1m0s passed before a row was acknowledged"},
		"a failure": {load: never, rows: 5, outcome: report.Failed, want: results.Failed, seconds: 60, says: "row 7 is bad"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(plan(func(p *sweep.Plan) { p.Limit = time.Minute }))
				b.job.Cases = b.job.Cases[:1]
				b.job.Push = func(_ context.Context, _ sweep.Case, drain <-chan struct{}, begun func(func() bool)) (*report.Report, error) {
					var loaded atomic.Bool
					for i, takes := range []time.Duration{c.fill, c.load, c.prove} {
						if i == 1 {
							begun(func() bool { return !loaded.Load() })
						}
						loaded.Store(i == 2)
						select {
						case <-drain:
							result := report.Result{Outcome: cmp.Or(c.outcome, report.Interrupted), Rows: c.rows}
							return &report.Report{Result: result}, errors.New("row 7 is bad")
						case <-time.After(takes):
						}
					}
					return &report.Report{}, nil
				}
				require.NoError(t, b.run(t))
				require.Len(t, b.entries, 1)
				require.Equal(t, c.want, b.entries[0].Status)
				require.Equal(t, c.seconds, b.entries[0].Seconds)
				require.Equal(t, c.says, b.entries[0].Error)
			})
		})
	}
}

// What has not begun when the time is up is skipped, and a sweep that is gone on with has spent what is recorded.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(func(p *sweep.Plan) { p.Budget, p.Settle = 35*time.Second, 2*time.Second })
		b := newBench(p)
		b.push = func(string, <-chan struct{}) (float64, error) { time.Sleep(10 * time.Second); return 100, nil }
		begun := time.Now()
		require.NoError(t, b.run(t))
		require.Equal(t, 10*time.Second+2*12*time.Second, time.Since(begun), "the third begins after 24 s and ends after 34")
		require.Len(t, b.order, 3)
		require.Len(t, b.entries, 10)
		require.Equal(t, "the sweep's time of 35s was up", b.entries[9].Error)

		b.job.Done = slices.Clone(b.entries)
		b.job.Plan.Budget = 55 * time.Second
		require.NoError(t, b.run(t))
		require.Len(t, b.order, 3+3, "30 s are spent")
		require.Len(t, b.entries, 10+3, "what is skipped again is not said again")

		b.job.Done, b.job.Plan.Budget = slices.Clone(b.entries), 0
		require.NoError(t, b.run(t))
		require.Len(t, b.order, 10)
		slices.Sort(b.order)
		require.Len(t, slices.Compact(b.order), 10)
	})
}

func TestAServerWithoutRoomEndsTheSweep(t *testing.T) {
	b := newBench(plan())
	b.push = func(string, <-chan struct{}) (float64, error) {
		if len(b.order) == 4 {
			return 0, fmt.Errorf("%w: could not extend file", sweep.ErrDiskFull)
		}
		return 100, nil
	}
	err := b.run(t)
	require.ErrorIs(t, err, sweep.ErrDiskFull)
	require.ErrorContains(t, err, "could not extend file")
	require.Len(t, b.entries, 4)
	require.Equal(t, results.Failed, b.entries[3].Status)
}

// What failed because the server was down is not recorded when the sweep ends for it, and is when the server comes back.
func TestUnreachable(t *testing.T) {
	away := map[int]bool{2: true, 3: true, 5: true, 7: true, 8: true, 9: true}
	b := newBench(plan())
	b.push = func(string, <-chan struct{}) (float64, error) {
		if away[len(b.order)] {
			return 0, fmt.Errorf("%w: connection refused", sweep.ErrUnreachable)
		}
		return 100, nil
	}
	err := b.run(t)
	require.ErrorIs(t, err, sweep.ErrUnreachable)
	require.ErrorContains(t, err, "3 pushes in succession failed")
	require.ErrorContains(t, err, "connection refused")
	require.Len(t, b.order, 9)
	require.Len(t, b.entries, 6)
	failed := 0
	for i, e := range b.entries {
		require.Equal(t, b.order[i], nameOf(e.Settings), "in the order in which they ended")
		if e.Status == results.Failed {
			failed++
		}
	}
	require.Equal(t, 3, failed)

	away = map[int]bool{9: true, 10: true}
	b = newBench(plan())
	b.push = func(string, <-chan struct{}) (float64, error) {
		if away[len(b.order)] {
			return 0, sweep.ErrUnreachable
		}
		return 100, nil
	}
	require.NoError(t, b.run(t))
	require.Len(t, b.entries, 10, "the last two failed, and the sweep is over")
}

// A sweep can be killed before and after every push.
func TestGoingOnAfterEveryCut(t *testing.T) {
	rates := func(name string, _ <-chan struct{}) (float64, error) {
		if name == "insert 2" {
			return 0, errors.New("refused")
		}
		return float64(len(name)), nil
	}
	p := plan(func(p *sweep.Plan) { p.Repeats, p.WarmUp, p.Knee = 3, 1, "workers" })
	whole := newBench(p)
	whole.push = rates
	require.NoError(t, whole.run(t))
	for cut := range len(whole.entries) + 1 {
		b := newBench(p)
		b.push = rates
		b.entries = slices.Clone(whole.entries[:cut])
		b.job.Done = slices.Clone(b.entries)
		require.NoError(t, b.run(t))
		require.Equal(t, whole.told(), b.told(), "cut at %d", cut)
	}
}

// The push that runs is drained and forgotten.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(plan(func(p *sweep.Plan) { p.Limit = time.Hour }))
		b.push = func(_ string, drain <-chan struct{}) (float64, error) {
			if len(b.order) == 3 {
				close(b.drain)
				<-drain
				return 50, errors.New("stopped by a signal")
			}
			return 100, nil
		}
		require.ErrorIs(t, b.run(t), sweep.ErrStopped)
		require.Len(t, b.entries, 2)
		require.Len(t, b.order, 3)
	})
}

func TestStopWhileTheServerSettlesAndWhenAPushEndsWellAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(plan(func(p *sweep.Plan) { p.Settle = time.Hour }))
		go func() { time.Sleep(time.Minute); close(b.drain) }()
		require.ErrorIs(t, b.run(t), sweep.ErrStopped)
		require.Len(t, b.entries, 1)

		b = newBench(plan())
		b.push = func(string, <-chan struct{}) (float64, error) { close(b.drain); return 100, nil }
		require.ErrorIs(t, b.run(t), sweep.ErrStopped)
		require.Len(t, b.entries, 1, "it was whole, so it counts")
	})
	b := newBench(plan())
	ctx, cancel := context.WithCancel(t.Context())
	b.push = func(string, <-chan struct{}) (float64, error) { cancel(); return 0, context.Canceled }
	require.ErrorIs(t, sweep.Run(ctx, b.job), sweep.ErrStopped, "a second signal")
	require.Empty(t, b.entries)
}

func TestARecordThatCannotBeWrittenEndsTheSweep(t *testing.T) {
	b := newBench(plan())
	b.job.Keep = func(results.Entry) error { return errors.New("the disk of the record is full") }
	require.ErrorContains(t, b.run(t), "the disk of the record is full")
	require.Len(t, b.order, 1)
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(plan(func(p *sweep.Plan) { p.Repeats, p.Settle = 2, time.Second }))
		b.push = func(name string, _ <-chan struct{}) (float64, error) {
			time.Sleep(time.Duration(len(name)) * time.Second)
			return 100, nil
		}
		var ended []sweep.Progress
		b.job.End = func(p sweep.Progress, e results.Entry) {
			require.Equal(t, results.Measured, e.Status)
			ended = append(ended, p)
		}
		require.NoError(t, b.run(t))
		require.Len(t, ended, 20)
		for i, p := range ended {
			require.Equal(t, [2]int{i + 1, 20}, [2]int{p.Number, p.Total})
		}
		require.Zero(t, ended[19].Left)
		sum := 0
		for _, name := range b.order[11:] {
			sum += len(name) + 1
		}
		require.Equal(t, time.Duration(sum)*time.Second, ended[10].Left, "every case has been done once")
	})
}

func TestBegin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sweep.jsonl")
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cell := 0
	begin := func(change func(*results.Head)) ([]string, error) {
		h := results.Head{
			Name: "p", Started: begun.Add(time.Hour), Version: "1.0.0", Machine: host.Machine{Host: "a", CPU: "fast"}, Repeats: 3, Limit: 60,
			Parts: []results.Part{{Cells: 9, Axes: []results.Axis{{Name: "workers", Values: strings.Fields("1 2 3 4 5 6 7 8 9")}}}},
		}
		if cell == 0 {
			h.Started = begun
		}
		change(&h)
		h.Digest = results.Digest(h.Parts, time.Duration(h.Limit)*time.Second)
		file, err := results.Open(path)
		require.NoError(t, err)
		defer file.Close()
		warnings, err := sweep.Begin(file, h)
		if err == nil {
			require.NoError(t, file.Append(results.Entry{Cell: cell, Status: results.Failed}))
			cell++
		}
		return warnings, err
	}
	as := func(*results.Head) {}
	elsewhere := func(h *results.Head) { h.Machine.Host, h.Version = "b", "1.1.0" }
	for _, c := range []struct {
		what     string
		change   func(*results.Head)
		warnings int
		heads    int
	}{
		{"new", as, 0, 1},
		{"the same", as, 0, 1},
		{"fewer repeats", func(h *results.Head) { h.Repeats = 1 }, 0, 1},
		{"more repeats", func(h *results.Head) { h.Repeats = 4 }, 0, 2},
		{"fewer again", as, 0, 2},
		{"elsewhere", elsewhere, 2, 3},
		{"there again", elsewhere, 0, 3},
		{"back", as, 2, 4},
	} {
		warnings, err := begin(c.change)
		require.NoError(t, err, c.what)
		require.Len(t, warnings, c.warnings, c.what)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.heads, strings.Count(string(text), `{"schema"`), c.what)
	}
	r, err := results.Read(path)
	require.NoError(t, err)
	require.Equal(t, 4, r.Head.Repeats, "the most that was asked for")
	require.Equal(t, begun, r.Head.Started)

	_, err = begin(func(h *results.Head) { h.Limit = 90 })
	require.EqualError(t, err, "the record holds another sweep: limit was 1m0s, now it is 1m30s")
}

// A record tells a change of the machine from one of what is pushed: its speed is measured before and after every push.
func TestSpeedOfTheMachine(t *testing.T) {
	b := newBench(plan())
	speed := 0.0
	b.job.Speed = func() float64 { speed++; return speed }
	require.NoError(t, b.run(t))
	for i, e := range b.entries {
		require.InDelta(t, float64(2*i)+1.5, e.Speed, 1e-9)
	}
}
