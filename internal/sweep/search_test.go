package sweep

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// search makes a search with this measurement.
func search(measure func(Setting) (float64, error)) *tune {
	values := [2][]int64{doublings(4, 1, 512), doublings(16<<20, 64<<10, 256<<20)}
	return &tune{Start: Setting{Workers: 4, BatchBytes: 16 << 20}, Values: values, Near: 0.05, Measure: measure}
}

// server is a simulated database: its rate grows in proportion to workers and to batches up to a knee of each, falls
// slowly beyond, and is noisy.
type server struct {
	workers, batch float64 // the knees
	noise          float64 // of one standard deviation
	random         *rand.Rand
	asked          int
}

func (s *server) rate(at Setting) float64 {
	past := func(x, knee float64) float64 {
		if x <= knee {
			return x / knee
		}
		return math.Pow(x/knee, -0.05)
	}
	return 1e6 * past(float64(at.Workers), s.workers) * past(float64(at.BatchBytes), s.batch)
}

func (s *server) measure(at Setting) (float64, error) {
	s.asked++
	return s.rate(at) * max(0.1, 1+s.noise*s.random.NormFloat64()), nil
}

// A step is a doubling: the search is right when neither workers nor batch are further than that from the knee. Both may
// lie a few percent below it, which multiply.
func TestFindsTheKnee(t *testing.T) {
	const seeds = 200
	found, asked := 0, 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := &server{
			workers: math.Exp2(random.Float64() * 8), batch: float64(128<<10) * math.Exp2(random.Float64()*10),
			noise: 0.03, random: random,
		}
		r := search(s.measure)
		_, smallest, err := r.run(t.Context())
		require.NoError(t, err)
		require.False(t, r.cut)
		asked += s.asked
		if within(float64(smallest.Workers), s.workers) && within(float64(smallest.BatchBytes), s.batch) &&
			s.rate(smallest.Setting) > 0.85*1e6 {
			found++
		}
	}
	t.Logf("%d of %d, %d measurements each", found, seeds, asked/seeds)
	require.GreaterOrEqual(t, found, seeds*95/100)
}

func within(a, b float64) bool { return a <= 2*b && b <= 2*a }

// A search whose context ends after its last measurement is complete, and one that wanted another is not.
func TestExactlyEnoughTime(t *testing.T) {
	run := func(limit int) (s *tune, smallest *Tried, asked int) {
		ctx, cancel := context.WithCancel(t.Context())
		s = search(func(at Setting) (float64, error) {
			if asked++; asked == limit {
				cancel()
			}
			return min(float64(at.Workers), 16), nil
		})
		best, smallest, err := s.run(ctx)
		require.Equal(t, limit > 0, err != nil)
		require.NotNil(t, best)
		return s, smallest, asked
	}
	_, want, needed := run(0)
	s, smallest, asked := run(needed)
	require.Equal(t, needed, asked)
	require.False(t, s.cut)
	require.Equal(t, want, smallest)
	s, _, asked = run(4)
	require.Equal(t, 4, asked)
	require.True(t, s.cut)
}

// A setting that fails when it is measured again is not measured without end.
func TestASettingThatFailsLater(t *testing.T) {
	asked := map[Setting]int{}
	s := search(func(at Setting) (float64, error) {
		if asked[at]++; at.Workers == 16 && asked[at] > 1 {
			return 0, errors.New("too many connections")
		}
		return min(float64(at.Workers), 16), nil
	})
	_, _, err := s.run(t.Context())
	require.NoError(t, err)
	require.False(t, s.cut)
	require.Less(t, len(s.tried), 100)
}

func TestNothingCanBeMeasured(t *testing.T) {
	refused := errors.New("connection refused")
	_, _, err := search(func(Setting) (float64, error) { return 0, refused }).run(t.Context())
	require.ErrorIs(t, err, errNothing)
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "4 workers")
}
