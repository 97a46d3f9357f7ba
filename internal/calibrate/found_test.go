package calibrate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/host"
)

func rates(of ...float64) (s Series) {
	s = Series{Protocol: "mysql", Method: "load-data", Format: "tsv", Skipped: []Skipped{}}
	for i, rate := range of {
		s.Points = append(s.Points, baseline.Measurement{
			Key: baseline.Key{Stage: baseline.Load, Format: "tsv"}, Workers: 1 << i,
			BytesPerSecond: rate * 1e9, RowsPerSecond: rate * 1e9 / 520, CPUSecondsPerGiB: 0.3, BoundBy: "client-cpu",
		})
	}
	s.conclude()
	return s
}

func TestEnough(t *testing.T) {
	for name, c := range map[string]struct {
		rates  []float64
		enough bool
	}{
		"none":                         {nil, false},
		"still rising":                 {[]float64{1, 2, 3}, false},
		"once below":                   {[]float64{1, 2, 1.7}, false},
		"twice below":                  {[]float64{1, 2, 1.7, 1.79}, true},
		"nearly as good in between":    {[]float64{2, 1.7, 1.9, 1.7}, false},
		"fallen at once":               {[]float64{3, 1, 1}, true},
		"a new best after one setback": {[]float64{2, 1.7, 2.5, 2.3}, false},
	} {
		s := rates(c.rates...)
		require.Equal(t, c.enough, s.enough() != "", name)
	}
}

func found() Found {
	c := Calibration{Dataset: "documents", State: "/state", Version: "v1.2.3"}
	c.machine = host.Machine{Host: "anna", CPU: "AMD EPYC 7B13", Cores: 4}
	f := c.newFound(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	f.Seconds = 61.4
	draw := c.measurement(baseline.Key{Stage: baseline.Fill, PayloadKind: "bytes"}, 1)
	draw.BytesPerSecond, draw.RowsPerSecond, draw.CPUSecondsPerGiB = 1.2e9, 1.2e9/520, 0.89
	encode := draw
	encode.Stage, encode.Format, encode.PayloadKind, encode.Workers = baseline.Encode, "doriscsv", "text", 4
	f.Source = []baseline.Measurement{draw, encode}

	best := rates(1, 2, 1.7, 1.6)
	best.skip([]int{16, 32, 64}, best.enough())
	best.Complete = true
	encrypted := rates(0.9)
	encrypted.TLS, encrypted.Complete, encrypted.Points[0].Counting = true, true, true
	broken := Series{Protocol: "postgres", Method: "copy", Best: -1, Error: "dial tcp 10.0.0.7:15432: connect: connection refused"}
	f.Series = []Series{best, encrypted, broken}
	return f
}

func TestText(t *testing.T) {
	here, there, nothing := found(), found(), found()
	there.Host, there.RTTSeconds = "10.0.0.7", 0.000423
	nothing.Source, nothing.Series, nothing.Machine.CPU = nil, nil, ""
	for name, f := range map[string]Found{"here.txt": here, "there.txt": there, "nothing.txt": nothing} {
		var b strings.Builder
		require.NoError(t, f.WriteText(&b))
		golden.Equal(t, name, b.String())
	}
}

func TestShare(t *testing.T) {
	require.Zero(t, share(time.Now().Add(-time.Minute), 3))
	require.Zero(t, share(time.Now(), 0))
}

func TestNamesOfSinks(t *testing.T) {
	require.NoError(t, checkSink("MySQL 8.4.0-terapush-sink-no-count"))
	require.NoError(t, checkSink("terapush-sink"))
	require.ErrorContains(t, checkSink("MySQL 8.4.0"), `"MySQL 8.4.0"`)
}

func TestOutput(t *testing.T) {
	var c child
	require.Empty(t, c.output())
	c.stderr.WriteString(strings.Repeat("all is well\n", 1000) + "panic: no\n")
	require.True(t, strings.HasSuffix(c.output(), "panic: no"))
	require.Less(t, len(c.output()), 3<<10)
}
