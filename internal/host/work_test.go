package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

func TestWork(t *testing.T) {
	w := Work{}
	w.add(2, Load{
		Cores: []float64{10, 20, 30}, NICs: []Traffic{
			{Name: "ens5", Sent: 1000, Allowance: map[string]int64{"bw_out": 3, "pps": 1}}, {Name: "gone", Sent: 7}, {Name: "lo", Sent: 50},
		},
	}, Load{
		Cores: []float64{11, 22, 30, 99}, NICs: []Traffic{
			{Name: "ens5", Sent: 2000, Allowance: map[string]int64{"bw_out": 5, "pps": 1}}, {Name: "lo", Sent: 550}, {Name: "new", Sent: 1 << 40},
		},
	})
	w.add(2, Load{Cores: []float64{50, 50, 50}, NICs: []Traffic{{Name: "ens5", Sent: 9000}}},
		Load{Cores: []float64{51, 51, 50}, NICs: []Traffic{{Name: "ens5", Sent: 10_000}}})

	var e report.Evidence
	w.AddTo(&e, []NIC{{Name: "lo"}, {Name: "ens5", BitsPerSecond: 16_000}}, "")
	require.InDelta(t, 3.0/4, e.HottestCore, 1e-9)
	require.InDelta(t, 5.0/4/3, e.MachineCPU, 1e-9)
	require.Equal(t, "ens5", e.NIC)
	require.InDelta(t, 8*2000/4, e.NICBits, 1e-9)
	require.EqualValues(t, 16_000, e.NICSpeed)
	require.InDelta(t, .25, e.NICShare, 1e-9)
	require.Equal(t, map[string]int64{"bw_out": 2}, e.Allowance)

	var virtual report.Evidence
	w.AddTo(&virtual, []NIC{{Name: "ens5", BitsPerSecond: 3999}}, "")
	require.Zero(t, virtual.NICSpeed, "more than its speed went through it")
	require.Zero(t, virtual.NICShare)

	var none report.Evidence
	new(Work).AddTo(&none, nil, "")
	require.Equal(t, report.Evidence{}, none)
	blind := Work{}
	blind.add(1, Load{}, Load{})
	blind.AddTo(&none, nil, "")
	require.Zero(t, none.NICShare, "and no NaN")
}

func TestWorkStopsOnce(t *testing.T) {
	var w Work
	w.Stop()
	require.Zero(t, w.seconds, "it was not on")
	w.Start()
	w.Stop()
	once := w.seconds
	require.Positive(t, once)
	w.Stop()
	require.Equal(t, once, w.seconds)
}
