package results

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// under is a point of 100 bytes a row whose client can do so many bytes a second.
func under(method string, rate, ceiling float64) Point {
	r := &report.Report{Target: report.Target{Backend: "mysql"}, Plan: report.Plan{Method: method}}
	r.Result.Seconds, r.Result.RowsPerSecond, r.Result.BytesPerSecond = 1, rate/100, rate
	r.BoundBy.Evidence.Ceiling = ceiling
	p := Point{Pushes: []*report.Report{r}}
	p.summarise()
	return p
}

func TestCeilings(t *testing.T) {
	fast, slow := under("load-data", 1.0*gib, 2*gib), under("load-data", 0.5*gib, 2*gib)
	insert, uncalibrated := under("insert", 0.1*gib, gib), under("load-data", 1.5*gib, 0)
	table := Table{Points: []Point{slow, fast, insert, uncalibrated, {}}}
	all := table.ceilings()
	require.Equal(t, []ceiling{
		{"this client: 2.0 GiB/s (mysql load-data)", 2 * gib, 2 * gib / 100.0},
		{"this client: 1.0 GiB/s (mysql insert)", gib, gib / 100.0},
	}, all)
	for i, want := range []struct {
		point int
		share float64
	}{{1, 0.5}, {2, 0.1}} {
		point, share := table.under(all[i])
		require.Equal(t, want.point, point)
		require.InDelta(t, want.share, share, 1e-9)
	}
	point, _ := (&Table{Points: []Point{uncalibrated}}).under(all[0])
	require.Equal(t, -1, point)
}

// Rows of other lengths have another ceiling, although its bytes read the same.
func TestCeilingsOfOtherRows(t *testing.T) {
	short, long := under("load-data", gib, 2*gib), under("load-data", gib, 2*gib)
	long.Typical.Result.RowsPerSecond /= 2
	nearly := under("load-data", gib, 2*gib)
	nearly.Typical.Result.RowsPerSecond *= 1.01
	require.Len(t, Table{Points: []Point{short, long, nearly}}.ceilings(), 2)
}

// All quantities that are per second or per byte are of the measured part.
func TestFiguresAfterAWarmUp(t *testing.T) {
	r := &report.Report{Measured: &report.Measured{Seconds: 2, Rows: 100, PayloadBytes: gib}}
	r.Result = report.Result{Rows: 900, Seconds: 8, RowsPerSecond: 50, BytesPerSecond: gib / 2, WireBytes: 9 * gib}
	r.Client = report.Client{Cores: 4, LoadSeconds: 4}
	r.BoundBy.Evidence.WirePerPayload = 1.5
	all := figuresOf(r)
	require.Equal(t, []float64{50, 2, 4, 50, 0.75 * gib}, []float64{
		all[rowRate], all[seconds], all["cpu_seconds_per_gib"], all["client_cpu_percent"], all["sent_bytes_per_second"],
	})
	r.Measured = &report.Measured{}
	r.Result.RowsPerSecond, r.Result.BytesPerSecond = 0, 0
	_, known := figuresOf(r)[rowRate]
	require.False(t, known, "nothing was measured")
}

// A record may hold anything.
func TestOddCeilings(t *testing.T) {
	for _, bytes := range []float64{math.NaN(), math.Inf(1), -1, 0, math.MaxFloat64} {
		_, ok := under("load-data", gib, bytes).ceiling()
		require.False(t, ok, bytes)
	}
	for _, rate := range []float64{0, math.NaN(), math.Inf(1), -1} {
		p := under("load-data", gib, gib)
		p.Typical.Result.BytesPerSecond = rate
		_, ok := p.ceiling()
		require.False(t, ok, rate)
	}
}

func TestTimesOfWhatIsNoNumber(t *testing.T) {
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0} {
		require.Empty(t, times(n, 1))
		require.Empty(t, times(1, n))
	}
	require.Equal(t, "×0.50", times(1, 2))
}

// The interval of a median is two of the values, by their ranks. The median of all is between those of ranks low and high
// if low or more, and less than high, of n values are below it: each is with a probability of one half.
func TestIntervalOfAMedian(t *testing.T) {
	for n := range 60 {
		var values []float64
		for i := range n {
			values = append(values, float64(n-i))
		}
		s := SampleOf(values)
		if n < LeastTrials {
			require.True(t, math.IsInf(s.Precision(), 1), n)
			continue
		}
		within := 0.0
		for below := int(s.MedianLow); below < int(s.MedianHigh); below++ {
			ways := 1.0
			for i := range below {
				ways *= float64(n-i) / float64(i+1)
			}
			within += ways / math.Pow(2, float64(n))
		}
		require.GreaterOrEqual(t, within, 0.95, n)
		require.LessOrEqual(t, within, 0.985, "%d: it is wider than it must be", n)
	}
	require.InDelta(t, 0.4286, SampleOf([]float64{2, 3, 3, 4, 4, 5}).Precision(), 1e-4)
}
