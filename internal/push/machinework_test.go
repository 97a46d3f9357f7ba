package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

func TestMachineWork(t *testing.T) {
	w := machineWork{}
	w.add(2, host.Load{
		Cores: []float64{10, 20, 30}, NICs: []host.Traffic{
			{Name: "ens5", Sent: 1000, Allowance: map[string]int64{"bw_out": 3, "pps": 1}}, {Name: "gone", Sent: 7}, {Name: "lo", Sent: 50},
		},
	}, host.Load{
		Cores: []float64{11, 22, 30, 99}, NICs: []host.Traffic{
			{Name: "ens5", Sent: 2000, Allowance: map[string]int64{"bw_out": 5, "pps": 1}}, {Name: "lo", Sent: 550}, {Name: "new", Sent: 1 << 40},
		},
	})
	w.add(2, host.Load{Cores: []float64{50, 50, 50}, NICs: []host.Traffic{{Name: "ens5", Sent: 9000}}},
		host.Load{Cores: []float64{51, 51, 50}, NICs: []host.Traffic{{Name: "ens5", Sent: 10_000}}})

	var e report.Evidence
	w.addTo(&e, []host.NIC{{Name: "lo"}, {Name: "ens5", BitsPerSecond: 16_000}}, "")
	require.InDelta(t, 3.0/4, e.HottestCore, 1e-9)
	require.InDelta(t, 5.0/4/3, e.MachineCPU, 1e-9)
	require.Equal(t, "ens5", e.NIC)
	require.InDelta(t, 8*2000/4, e.NICBits, 1e-9)
	require.EqualValues(t, 16_000, e.NICSpeed)
	require.InDelta(t, .25, e.NICShare, 1e-9)
	require.Equal(t, map[string]int64{"bw_out": 2}, e.Allowance)

	var virtual report.Evidence
	w.addTo(&virtual, []host.NIC{{Name: "ens5", BitsPerSecond: 3999}}, "")
	require.Zero(t, virtual.NICSpeed, "more than its speed went through it")
	require.Zero(t, virtual.NICShare)

	var none report.Evidence
	new(machineWork).addTo(&none, nil, "")
	require.Equal(t, report.Evidence{}, none)
	blind := machineWork{}
	blind.add(1, host.Load{}, host.Load{})
	blind.addTo(&none, nil, "")
	require.Zero(t, none.NICShare, "and no NaN")
}

func TestMachineWorkStopsOnce(t *testing.T) {
	var w machineWork
	w.stop()
	require.Zero(t, w.seconds, "it was not on")
	w.start()
	w.stop()
	once := w.seconds
	require.Positive(t, once)
	w.stop()
	require.Equal(t, once, w.seconds)
}

func TestEvidence(t *testing.T) {
	a := stats.Account{
		Sockets: event.Sockets{Dialled: 9}, Fastest: 1e6,
		Total: stats.Window{
			Seconds: 10, Workers: map[event.State]float64{event.Sending: 30, event.Idle: 10}, CPU: 5, Cores: 2, Payload: 1000, Wire: 1310,
			Sockets: event.Sockets{
				Blocked: 20, Awaited: 10, Turns: 50, RoundTrips: 4, Kernel: true, Busy: 25, RwndLimited: 20, SndbufLimited: 1,
				Retransmits: 3, Segments: 600,
			},
		},
	}
	require.Equal(t, report.Evidence{
		Blocked: .5, Awaited: .25, RoundTrips: .1, Kernel: true, RwndLimited: .8, SndbufLimited: .04, TurnsPerBatch: 5, RTTSeconds: .08,
		Connections: 9, Retransmitted: .005, FastestBits: 8e6, ClientCPU: .25, WirePerPayload: 1.31,
	}, evidence(a, new(machineWork), nil, "", 10))
	require.Equal(t, report.Evidence{}, evidence(stats.Account{}, new(machineWork), nil, "", 0), "nothing is infinite")
}

func TestWireAndEncodedBytes(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		s       event.Snapshot
		resumed bool
		staged  bool
		want    string
	}{
		"as many":                  {s: event.Snapshot{EncodedBytes: 100 * mib, WireBytes: 104 * mib}},
		"more":                     {s: event.Snapshot{EncodedBytes: 100 * mib, WireBytes: 131 * mib}, want: "the sockets took 131.0 MiB for 100.0 MiB of encoded bytes, +31 %"},
		"less":                     {s: event.Snapshot{EncodedBytes: 100 * mib, WireBytes: 50 * mib}, want: "-50 %"},
		"a small run":              {s: event.Snapshot{EncodedBytes: 1000, WireBytes: 90_000}},
		"another library's socket": {s: event.Snapshot{EncodedBytes: 100 * mib}},
		"nothing acknowledged":     {s: event.Snapshot{WireBytes: 100 * mib}},
		"of this process": {
			s:       event.Snapshot{EncodedBytes: 300 * mib, ResumedRows: 2 * mib, ResumedBatches: 2, WireBytes: 101 * mib},
			resumed: true,
		},
		"of another process": {
			s:       event.Snapshot{EncodedBytes: 300 * mib, ResumedRows: mib, ResumedBatches: 1, WireBytes: 101 * mib},
			resumed: true, want: "-50 %",
		},
		"stored":    {s: event.Snapshot{StoredBytes: 100 * mib, WireBytes: 100 * mib}, staged: true},
		"stored up": {s: event.Snapshot{EncodedBytes: 100 * mib, StoredBytes: 200 * mib, WireBytes: 110 * mib}, staged: true, want: "-45 %"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &push{plan: plan{Plan: config.Plan{EncodedRowBytes: 100}}}
			p.state.resumed = c.resumed
			if c.staged {
				p.plan.GroupBatches = 1
			}
			var r report.Report
			p.warnOfWire(&r, c.s)
			if c.want == "" {
				require.Empty(t, r.Warnings)
				return
			}
			require.Len(t, r.Warnings, 1)
			require.Contains(t, r.Warnings[0], c.want)
			require.Contains(t, r.Warnings[0], "TLS")
		})
	}
}
