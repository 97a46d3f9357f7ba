package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noises are how pushes of one speed differ, as factors of it.
var noises = []struct {
	name string
	of   func(*rand.Rand) float64
}{
	{"normal", func(r *rand.Rand) float64 { return 1 + 0.01*r.NormFloat64() }},
	{"lognormal", func(r *rand.Rand) float64 { return math.Exp(0.03 * r.NormFloat64()) }},
	{"bimodal", func(r *rand.Rand) float64 {
		speed := 1 + 0.01*r.NormFloat64()
		if r.Float64() < 0.4 {
			speed *= 0.8
		}
		return speed
	}},
	{"outliers", func(r *rand.Rand) float64 {
		speed := 1 + 0.01*r.NormFloat64()
		if r.Float64() < 0.1 {
			speed *= 0.3 + 0.5*r.Float64()
		}
		return speed
	}},
}

// machines are how the speed of a machine changes from one of n pushes to the next.
var machines = []struct {
	name string
	of   func(r *rand.Rand, n int) []float64
}{
	{"steady", func(_ *rand.Rand, n int) []float64 { return speeds(n, func(int) float64 { return 1 }) }},
	{"drift of 20 %", func(_ *rand.Rand, n int) []float64 {
		return speeds(n, func(i int) float64 { return 1 - 0.2*float64(i)/float64(n) })
	}},
	{"a step between the records", func(r *rand.Rand, n int) []float64 { return stepAt(r, n, n/2) }},
	{"a step anywhere", func(r *rand.Rand, n int) []float64 { return stepAt(r, n, r.IntN(n)) }},
	{"a step every ten pushes", func(r *rand.Rand, n int) []float64 {
		level := 1.0
		return speeds(n, func(int) float64 {
			if r.Float64() < 0.1 {
				level = 0.7 + 0.3*r.Float64()
			}
			return level
		})
	}},
	{"beside other work", func(r *rand.Rand, n int) []float64 {
		return speeds(n, func(int) float64 { return 0.5 + 0.5*r.Float64() })
	}},
}

func speeds(n int, of func(i int) float64) (all []float64) {
	for i := range n {
		all = append(all, of(i))
	}
	return all
}

func stepAt(r *rand.Rand, n, at int) []float64 {
	to := []float64{0.8, 0.9, 1.1, 1.25}[r.IntN(4)]
	return speeds(n, func(i int) float64 {
		if i < at {
			return 1
		}
		return to
	})
}

// simulated makes two points of n pushes, of which those of b are slower by a share, on a machine of these speeds. What
// is measured of the machine has a noise of 2 %.
func simulated(r *rand.Rand, machine []float64, noise func(*rand.Rand) float64, inTurns bool, slower float64) (a, b Point) {
	var rates [2][]float64
	of := [2]*Point{&a, &b}
	for i, speed := range machine {
		side := i * 2 / len(machine)
		if inTurns {
			side = (i + 1) / 2 % 2 // a b b a
		}
		rate := 1000 * speed * noise(r)
		if side == 1 {
			rate *= 1 - slower
		}
		rates[side] = append(rates[side], rate)
		of[side].begun = append(of[side].begun, time.Unix(int64(i), 0))
		of[side].speeds = append(of[side].speeds, speed*(1+0.02*r.NormFloat64()))
	}
	a.RowsPerSecond, b.RowsPerSecond = SampleOf(rates[0]), SampleOf(rates[1])
	return a, b
}

// Records of one speed are called slower in at most one of a hundred comparisons, and faster likewise, whatever the
// noise, and whatever the machine does meanwhile, in turns or one after the other. What is slower is found all the same.
// The table of `go test -v` says how often.
func TestRateOfWrongVerdicts(t *testing.T) {
	rounds := 50
	if os.Getenv("TERAPUSH_TEST_LONG") != "" {
		rounds = 300
	}
	for _, n := range []int{8, 16} {
		for _, machine := range machines {
			for _, noise := range noises {
				for _, inTurns := range []bool{false, true} {
					name := fmt.Sprintf("%d and %d pushes, %s, %s, in turns %t", n, n, machine.name, noise.name, inTurns)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						wrongVerdicts(t, rounds, func(r *rand.Rand, slower float64) Pair {
							return changeOf(simulated(r, machine.of(r, 2*n), noise.of, inTurns, slower))
						})
					})
				}
			}
		}
	}
}

func wrongVerdicts(t *testing.T, rounds int, compared func(r *rand.Rand, slower float64) Pair) {
	t.Helper()
	const threshold = 0.05
	for _, slower := range []float64{0, 0.05, 0.1} {
		r := rand.New(rand.NewPCG(41, math.Float64bits(slower)))
		verdicts, gate, refused := map[Verdict]int{}, map[string]int{}, 0
		for range rounds {
			c := compared(r, slower)
			verdicts[c.verdict(threshold)]++
			switch {
			case c.high < -threshold:
				gate["6"]++
			case c.holds(-threshold):
				gate["8"]++
			default:
				gate["0"]++
			}
			if !c.holds(-slower) {
				refused++
			}
		}
		share := func(n int) float64 { return 100 * float64(n) / float64(rounds) }
		t.Logf("slower by %2.0f %%: slower %5.1f %%, inconclusive %5.1f %%, equal %5.1f %%, faster %5.1f %%; exit code 6 %5.1f %%, "+
			"8 %5.1f %%, 0 %5.1f %%", 100*slower, share(verdicts[Slower]), share(verdicts[Inconclusive]), share(verdicts[Same]),
			share(verdicts[Faster]), share(gate["6"]), share(gate["8"]), share(gate["0"]))

		// By chance a rule that is wrong in 1 of 100 cases is in more of a few.
		most := int(float64(rounds)/100 + 3*math.Sqrt(float64(rounds)/100))
		switch {
		case slower == 0:
			require.LessOrEqual(t, verdicts[Slower], most)
			require.LessOrEqual(t, verdicts[Faster], most)
			require.LessOrEqual(t, gate["6"], most)
		case slower > threshold:
			require.LessOrEqual(t, gate["0"], most, "a loss is passed over")
		}
		require.LessOrEqual(t, refused, 2*most, "the range leaves out the true change")
	}
}
