package sweep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// tuneBench is a scripted server, and what a search against it says and asks.
type tuneBench struct {
	*testing.T
	lines []string
	asked []string // "workers batch-rows" of every trial
	drain chan struct{}
	push  func(s sweep.Setup) (rate float64, err error)
	kept  []results.Entry
	head  func() results.Head
}

func newTuneBench(t *testing.T) *tuneBench {
	return &tuneBench{T: t, drain: make(chan struct{}), push: func(s sweep.Setup) (float64, error) { return kneeAt8(s), nil }}
}

// kneeAt8 is fast enough at 8 workers and batches of 1 MiB.
func kneeAt8(s sweep.Setup) float64 {
	return 1e6 * min(1, float64(s.Plan.Workers)/8) * min(1, float64(s.Plan.BatchBytes())/(1<<20-2048))
}

func bounds() sweep.Bounds {
	return sweep.Bounds{Trial: time.Minute, Budget: time.Hour, MaxWorkers: 64, Near: 0.05}
}

func (b *tuneBench) search(target string, bounds sweep.Bounds, flags ...string) (*sweep.Search, error) {
	b.Helper()
	push := map[string][]string{"target": {target}, "memory": {"64GiB"}, "payload-bytes": {"32"}} // rows that are measured soon
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		push[name] = append(push[name], value)
	}
	return sweep.NewSearch(push, planOptions(b).Sources, bounds)
}

func (b *tuneBench) find(flags ...string) (sweep.Found, error) {
	b.Helper()
	return b.findIn(bounds(), flags...)
}

func (b *tuneBench) findIn(bounds sweep.Bounds, flags ...string) (sweep.Found, error) {
	b.Helper()
	s, err := b.search("postgres://u:hunter2@h/db", bounds, flags...)
	require.NoError(b, err)
	b.head = s.Head
	job := sweep.Job{Push: b.scripted, Drain: b.drain, Keep: func(e results.Entry) error {
		b.kept = append(b.kept, e)
		return nil
	}}
	return s.Find(b.Context(), job, func(line string) { b.lines = append(b.lines, line) })
}

func (b *tuneBench) scripted(
	_ context.Context, c sweep.Case, drain <-chan struct{}, _ func(func() bool),
) (*report.Report, error) {
	b.asked = append(b.asked, fmt.Sprint(c.Plan.Workers, " ", c.Plan.BatchRows))
	rate, err := b.push(c.Setup)
	select {
	case <-b.drain:
		<-drain
		err = errors.New("interrupted")
	default:
	}
	s := c.Setup
	r := &report.Report{}
	r.Plan.Workers, r.Result.Rows, r.Result.RowsPerSecond = s.Plan.Workers, 1000, rate
	return r, err
}

func TestFindsWhatIsEnough(t *testing.T) {
	b := newTuneBench(t)
	f, err := b.find("method=copy", "payload-bytes=500")
	require.NoError(t, err)
	require.True(t, f.Complete)
	require.Equal(t, []int64{8, 1 << 20}, []int64{int64(f.Smallest.Workers), f.Smallest.BatchBytes})
	require.Equal(t, map[string][]string{"workers": {"8"}, "batch-bytes": {"1.0MiB"}, "create": {"recreate"}}, f.Use)
	require.Equal(t, b.asked[0], b.asked[1], "the first one counts for nothing")
	require.Contains(t, b.lines[0], "warm-up, ")
	require.Len(t, f.Entries, len(b.asked))

	// All of it is a record.
	head, entries := b.head(), b.kept
	require.Equal(t, f.Entries, entries, "on disk, each before the next one begins")
	require.Equal(t, "postgres://u@h/db", head.Parts[0].Push["target"][0])
	require.NotContains(t, head.Parts[0].Push, "workers")
	require.Equal(t, []string{"ack"}, head.Parts[0].Push["verify"])
	cells := map[int]results.Settings{}
	for _, e := range entries {
		require.Less(t, e.Cell, head.Parts[0].Cells)
		if was, known := cells[e.Cell]; known {
			require.Equal(t, was, e.Settings)
		}
		cells[e.Cell] = e.Settings
		require.Less(t, e.Repeat, head.Repeats)
	}

	f.Command = "terapush push …"
	var text, data strings.Builder
	require.NoError(t, f.WriteText(&text))
	require.Regexp(t, `(?m)^8 +1\.0MiB +[\d,]+ +1,000,000 .* 100\.0 % .*← enough$`, text.String())
	require.Regexp(t, `(?m)^enough +8 workers, batches of 1\.0MiB: 1,000,000 rows/s, \S+ \S+/s \(1,000,000\.\.1,000,000\), 100\.0 % of the best$`, text.String())
	require.NotRegexp(t, `(?m) $`, text.String())
	require.NotContains(t, text.String(), "note")
	require.True(t, strings.HasSuffix(text.String(), "\nuse: terapush push …\n"))
	require.NoError(t, f.WriteJSON(&data))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(data.String()), &got))
	require.Equal(t, "terapush.tune/v1", got["schema"])
	require.Equal(t, "terapush push …", got["use"])
	require.NotContains(t, data.String(), "hunter2")
}

// How far the measurements of a setting are apart stands beside their median.
func TestSpreadIsTold(t *testing.T) {
	b := newTuneBench(t)
	b.push = func(s sweep.Setup) (float64, error) {
		return kneeAt8(s) * []float64{0.9, 1, 1.1}[len(b.asked)%3], nil
	}
	f, err := b.find()
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, f.WriteText(&text))
	require.Regexp(t, `(?m)^best .* rows/s, .*/s \([\d,]+\.\.[\d,]+\)$`, text.String())
}

// Where the wire is the limit, that is the answer.
func TestNoSettingIsBetter(t *testing.T) {
	b := newTuneBench(t)
	b.push = func(sweep.Setup) (float64, error) { return 1000 * []float64{0.99, 1, 1.01}[len(b.asked)%3], nil }
	f, err := b.find()
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, f.WriteText(&text))
	require.Regexp(t, `(?m)^note +no setting is better than another here: all \d+ are within 5 % of the best$`, text.String())
	require.Contains(t, text.String(), "\nuse: ")
}

// With so much noise any setting may be the best one, and no command is the answer.
func TestNoCommandInNoise(t *testing.T) {
	b := newTuneBench(t)
	dice := rand.New(rand.NewPCG(3, 4))
	b.push = func(s sweep.Setup) (float64, error) { return kneeAt8(s) * (1 + 0.3*(2*dice.Float64()-1)), nil }
	f, err := b.find()
	require.NoError(t, err)
	require.True(t, f.Complete)
	require.False(t, f.Decided)
	require.Len(t, f.Turns.Ratios, 6)
	var text strings.Builder
	require.NoError(t, f.WriteText(&text))
	require.NotContains(t, text.String(), "use:")
	require.Regexp(t, `(?m)^in turns  \d+ workers?, .* reached \d+\.\d to \d+\.\d % of \d+ workers?, `, text.String())
	require.Contains(t, text.String(), "undecided with --tolerance 5 % the noise is too large")

	in := bounds()
	in.Near = 0.45
	f, err = b.findIn(in)
	require.NoError(t, err)
	require.True(t, f.Decided, "who gives away more needs less certainty")
}

// What was lucky in the search and slower in the turns is not called the best.
func TestBestIsTheFastest(t *testing.T) {
	for seed := range uint64(20) {
		b := newTuneBench(t)
		dice := rand.New(rand.NewPCG(seed, 4))
		b.push = func(s sweep.Setup) (float64, error) { return kneeAt8(s) * (1 + 0.3*(2*dice.Float64()-1)), nil }
		f, err := b.find()
		require.NoError(t, err)
		for _, one := range f.Trials {
			require.True(t, f.Decided || one.Rate <= f.Best.Rate, "%v, and %v", f.Best, one)
		}
	}
}

// The best of a search was lucky, or measured before the server slowed down: only what is measured in turns decides.
func TestTurnsDecide(t *testing.T) {
	b := newTuneBench(t)
	seen := map[string]int{}
	in := bounds()
	in.Near = 0.3
	in.MaxWorkers = 8
	b.push = func(s sweep.Setup) (float64, error) {
		asked := b.asked[len(b.asked)-1]
		seen[asked]++
		rate := map[int]float64{1: 100, 2: 200, 4: 600, 8: 1000}[s.Plan.Workers]
		if s.Plan.Workers == 8 && seen[asked] > 3 {
			rate = 300 // was fast in the search alone
		}
		return rate, nil
	}
	f, err := b.findIn(in, "batch-rows=1000")
	require.NoError(t, err)
	require.Equal(t, []int{8, 4}, []int{f.Turns.Setting.Workers, f.Turns.Rival.Workers})
	require.True(t, f.Decided)
	require.Equal(t, []string{"4"}, f.Use["workers"])
	turns := b.asked[len(b.asked)-12:]
	require.Equal(t, []string{"8 1000", "4 1000", "4 1000", "8 1000", "8 1000", "4 1000"}, turns[:6])

	// One possible setting has no rival.
	b = newTuneBench(t)
	in.MaxWorkers = 1
	f, err = b.findIn(in, "batch-rows=1000")
	require.NoError(t, err)
	require.True(t, f.Decided)
	require.Empty(t, f.Turns.Ratios)
}

func TestWhatIsGivenHolds(t *testing.T) {
	b := newTuneBench(t)
	f, err := b.find("workers=2")
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, f.Use["workers"])
	require.Equal(t, []string{"copy"}, f.Use["method"])
	for _, asked := range b.asked {
		require.Equal(t, "2 ", asked[:2])
	}
	head := b.head()
	require.Len(t, head.Parts[0].Axes, 1)
	require.Equal(t, []string{"2"}, head.Parts[0].Push["workers"])

	b = newTuneBench(t)
	f, err = b.find("batch-rows=1000", "verify=count")
	require.NoError(t, err)
	require.Equal(t, []string{"1000"}, f.Use["batch-rows"])
	require.NotContains(t, f.Use, "batch-bytes")
	for _, asked := range b.asked {
		require.Contains(t, asked, " 1000")
	}
}

func TestSearchMistakes(t *testing.T) {
	for flags, want := range map[string]string{
		"workers=2 batch-rows=5": "--workers and the size of a batch are both given",
		"stage=x":                "--stage is not an option of method copy",
		"method=copi":            `did you mean "copy"?`,
		"rows=5":                 "--trial and --rows: both say how much",
	} {
		in := bounds()
		in.TrialGiven = true
		_, err := newTuneBench(t).search("postgres://u@h/db", in, strings.Fields(flags)...)
		require.ErrorContains(t, err, want, flags)
	}
	for _, wrong := range []sweep.Bounds{{Trial: -1, Budget: 1, MaxWorkers: 1}, {Trial: 1, MaxWorkers: 1}, {Trial: 1, Budget: 1}, {Trial: 1, Budget: 1, MaxWorkers: 1, MaxBatchBytes: 5}} {
		_, err := newTuneBench(t).search("postgres://u@h/db", wrong)
		require.Error(t, err)
	}
}

// Connections, memory and sizes end a doubling, and a start that cannot be becomes smaller.
func TestLimitsEndADoubling(t *testing.T) {
	b := newTuneBench(t)
	refusal := &loader.Error{Op: "connect", Err: errors.New("too many clients"), Hint: "use fewer"}
	tooMany := fmt.Errorf("%w: %w", sweep.ErrLimit, refusal)
	b.push = func(s sweep.Setup) (float64, error) {
		if s.Plan.Workers > 2 {
			return 0, tooMany
		}
		return kneeAt8(s), nil
	}
	f, err := b.find()
	require.NoError(t, err)
	require.Equal(t, 2, f.Smallest.Workers)
	var refused []int
	for _, one := range f.Trials {
		if one.Error != "" {
			require.Equal(t, "more than the server allows: connect: too many clients (use fewer)", one.Error, "without the setting")
			refused = append(refused, one.Workers)
		}
	}
	require.Contains(t, refused, 4)
	require.NotContains(t, refused, 8)

	b = newTuneBench(t)
	b.push = func(sweep.Setup) (float64, error) { return 0, tooMany }
	_, err = b.find()
	require.ErrorIs(t, err, sweep.ErrLimit)
	require.Equal(t, "1 1310", b.asked[len(b.asked)-1], "it has gone down to the least, 64 KiB")
}

func TestMemoryAndTimeEndADoubling(t *testing.T) {
	b := newTuneBench(t)
	_, err := b.find("memory=40MiB")
	require.NoError(t, err)
	require.Contains(t, strings.Join(b.lines, "\n"), "cannot be tried: --memory holds")

	b = newTuneBench(t)
	b.push = func(sweep.Setup) (float64, error) { return 1000, nil } // half a MiB a second
	in := bounds()
	in.Trial = 4 * time.Second
	f, err := b.findIn(in)
	require.NoError(t, err)
	for _, one := range f.Trials {
		if one.Error == "" {
			require.LessOrEqual(t, int64(one.Workers)*one.BatchBytes, int64(4<<20), "batches that do not end within a trial")
		}
	}
}

// Of a server that is gone or full nothing more can be learnt; what is known stays known.
func TestErrorsThatEndASearch(t *testing.T) {
	for _, fatal := range []error{sweep.ErrUnreachable, sweep.ErrDiskFull, &push.Error{Outcome: report.VerificationFailed, Err: errors.New("rows are missing")}} {
		for _, at := range []int{1, 4} {
			b := newTuneBench(t)
			b.push = func(s sweep.Setup) (float64, error) {
				if len(b.asked) >= at {
					return 0, fatal
				}
				return kneeAt8(s), nil
			}
			f, err := b.find()
			require.ErrorIs(t, err, fatal)
			require.Len(t, b.asked, at)
			require.Equal(t, at > 1, len(f.Trials) > 0)
			require.False(t, f.Complete)
		}
	}
	b := newTuneBench(t)
	b.push = func(sweep.Setup) (float64, error) { return 0, errors.New("no such table") }
	_, err := b.find()
	require.EqualError(t, err, "no such table")
	require.Len(t, b.asked, 1, "smaller settings would not help")
}

func TestSearchStopped(t *testing.T) {
	for _, at := range []int{1, 5} {
		b := newTuneBench(t)
		b.push = func(s sweep.Setup) (float64, error) {
			if len(b.asked) == at {
				close(b.drain)
			}
			return kneeAt8(s), nil
		}
		f, err := b.find()
		require.ErrorIs(t, err, sweep.ErrStopped)
		require.Len(t, b.asked, at)
		require.Len(t, f.Entries, max(at-1, 0), "what was drained counts for nothing")
	}
}

func TestSearchBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTuneBench(t)
		in := bounds()
		b.push = func(s sweep.Setup) (float64, error) {
			if len(b.asked) == 3 {
				time.Sleep(2 * in.Budget)
				synctest.Wait()
			}
			return kneeAt8(s), nil
		}
		f, err := b.findIn(in)
		require.NoError(t, err)
		require.False(t, f.Complete)
		require.Len(t, b.asked, 3, "the trial under way is the last one")
		var text strings.Builder
		require.NoError(t, f.WriteText(&text))
		require.Contains(t, text.String(), "the budget was used up: the search is incomplete, and there may be better settings")
		require.False(t, f.Decided, "nothing was measured again")
		require.NotContains(t, text.String(), "use:")
	})
}

// The search leaves time to measure in turns.
func TestTurnsAreInTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTuneBench(t)
		in := bounds()
		in.Budget = 20 * time.Minute
		began := time.Now()
		b.push = func(s sweep.Setup) (float64, error) {
			time.Sleep(in.Trial)
			return kneeAt8(s), nil
		}
		f, err := b.findIn(in)
		require.NoError(t, err)
		require.False(t, f.Complete)
		require.Equal(t, "the budget was used up", f.Why)
		require.True(t, f.Decided)
		require.Len(t, f.Turns.Ratios, 6)
		require.LessOrEqual(t, time.Since(began), in.Budget)
	})
}
