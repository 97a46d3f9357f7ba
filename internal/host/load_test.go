package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

const netDev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 300 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0
  ens5:1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
`

func TestReadLoad(t *testing.T) {
	ena := map[string]uint64{"bw_out_allowance_exceeded": 7, "pps_allowance_exceeded": 0, "conntrack_allowance_available": 100, "tx_bytes": 9}
	for name, c := range map[string]struct {
		files  map[string]string
		driver map[string]uint64
		want   Load
	}{
		"cores and interfaces": {
			map[string]string{
				"proc/stat":                        "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 100 200 300 9000 9000 400 500 600 50 60\ncpu1 1 0 0 7 0 0 0 0\nintr 1 2 3\n",
				"proc/net/dev":                     netDev,
				"sys/class/net/ens5/device/driver": "->../../bus/pci/drivers/ena",
			},
			ena, Load{Cores: []float64{21, 0.01}, NICs: []Traffic{
				{Name: "lo", Sent: 300},
				{Name: "ens5", Sent: 2000, Allowance: map[string]int64{"bw_out_allowance_exceeded": 7, "pps_allowance_exceeded": 0}},
			}},
		},
		"an ENA that does not answer": {
			map[string]string{"proc/net/dev": netDev, "sys/class/net/ens5/device/driver": "->../../bus/pci/drivers/ena"},
			nil, Load{NICs: []Traffic{{Name: "lo", Sent: 300}, {Name: "ens5", Sent: 2000}}},
		},
		"another driver is not asked": {
			map[string]string{"proc/net/dev": netDev, "sys/class/net/ens5/device/driver": "->../../bus/pci/drivers/mlx5_core"},
			ena, Load{NICs: []Traffic{{Name: "lo", Sent: 300}, {Name: "ens5", Sent: 2000}}},
		},
		"an interface with a colon": {
			map[string]string{"proc/net/dev": "eth0:1: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0"},
			nil, Load{NICs: []Traffic{{Name: "eth0:1", Sent: 6}}},
		},
		"garbage is left out": {
			map[string]string{
				"proc/stat":    "cpu0 1 2 x 4 5 6 7 8\ncpu1\ncpu2 1 2 3\n\x00\xff\ncpu3 100 0 0 0 0 0 0 0\n",
				"proc/net/dev": "a: 1\nb: 1 2 3 4 5 6 7 8 nine 10 11 12 13 14 15 16\n: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\x00",
			},
			nil, Load{Cores: []float64{1}},
		},
		"nothing can be read": {nil, nil, Load{}},
		"folders where files should be": {
			map[string]string{"proc/stat/": "", "proc/net/dev/": "", "sys/class/net/ens5/device/driver/": ""}, nil, Load{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, readLoad(plant(t, c.files), func(nic string) map[string]uint64 {
				require.Equal(t, "ens5", nic)
				return c.driver
			}))
		})
	}
}

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
