package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
)

// The order of a map does not show in the last digits.
func TestEqualTimesGiveEqualShares(t *testing.T) {
	shares := func() map[string]float64 {
		lost := map[event.Limit]float64{}
		for i, limit := range event.Limits() {
			lost[limit] = float64(i+1) / 10
		}
		return report.NewBound(lost, report.Evidence{}).Shares
	}
	for range 100 {
		require.Equal(t, shares(), shares())
	}
}

// The lines of all verdicts, one golden file: what a person reads.
func TestVerdictLines(t *testing.T) {
	evidence := report.Evidence{
		SocketEvidence: report.SocketEvidence{
			Kernel: true, TurnsPerBatch: 6.04, RTTSeconds: .0501, Retransmitted: .0042, RwndLimited: .81, FastestBits: 4.91e9,
		},
		MachineEvidence: report.MachineEvidence{
			ClientCPU: .31, HottestCore: .64, NIC: "ens5", NICBits: 19e9, NICShare: .38, NICSpeed: 50e9,
		},
		WirePerPayload: 1.31,
	}
	with := func(change func(e *report.Evidence)) report.Evidence {
		e := evidence
		change(&e)
		return e
	}
	states := map[string]map[string]float64{
		"a target that fails": {"send": 1, "wait_ack": 2, "backoff": 7},
		"nearly two":          {"send": 85, "wait_commit": 15},
	}
	var text strings.Builder
	for _, c := range []struct {
		what string
		lost map[event.Limit]float64
		e    report.Evidence
	}{
		{"source", map[event.Limit]float64{event.LimitSource: 70, event.LimitTarget: 30}, evidence},
		{"client-cpu", map[event.Limit]float64{event.LimitClient: 97, event.LimitTarget: 3},
			with(func(e *report.Evidence) { e.ClientCPU, e.HottestCore = .99, 1 })},
		{"client-cpu on a system that does not tell of cores", map[event.Limit]float64{event.LimitClient: 97, event.LimitTarget: 3},
			with(func(e *report.Evidence) { e.HottestCore, e.NIC = 0, "" })},
		{"a network that loses next to nothing", map[event.Limit]float64{event.LimitNetwork: 88, event.LimitTarget: 12},
			with(func(e *report.Evidence) { e.Retransmitted = 1e-7 })},
		{"network", map[event.Limit]float64{event.LimitNetwork: 88, event.LimitTarget: 12}, evidence},
		{"a network without a flow near its limit, and a small send buffer", map[event.Limit]float64{event.LimitNetwork: 88, event.LimitTarget: 12},
			with(func(e *report.Evidence) {
				e.FastestBits, e.SndbufLimited, e.Retransmitted = 4.4e9, .3, 0
				e.Allowance = map[string]int64{"bw_out_allowance_exceeded": 1200, "pps_allowance_exceeded": 34}
			})},
		{"protocol", map[event.Limit]float64{event.LimitProtocol: 71, event.LimitTarget: 29}, evidence},
		{"target", map[event.Limit]float64{event.LimitTarget: 94, event.LimitClient: 6}, evidence},
		{"a target that fails", map[event.Limit]float64{event.LimitTarget: 97, event.LimitClient: 3}, evidence},
		{"a target behind a system that does not tell", map[event.Limit]float64{event.LimitTarget: 94, event.LimitClient: 6},
			with(func(e *report.Evidence) { e.Kernel, e.RwndLimited = false, 0 })},
		{"limit", map[event.Limit]float64{event.LimitRate: 93, event.LimitTarget: 7}, evidence},
		{"tail", map[event.Limit]float64{event.LimitTail: 51, event.LimitTarget: 40, event.LimitSource: 9}, evidence},
		{"nearly two", map[event.Limit]float64{event.LimitTarget: 48, event.LimitClient: 38, event.LimitTail: 14}, evidence},
		{"a loopback", map[event.Limit]float64{event.LimitTarget: 100},
			with(func(e *report.Evidence) { e.NIC, e.NICBits, e.NICShare, e.NICSpeed = "lo", 23.6e9, 0, 0 })},
		{"a machine that others use", map[event.Limit]float64{event.LimitTarget: 100},
			with(func(e *report.Evidence) { e.MachineCPU = .998 })},
		{"no interface known", map[event.Limit]float64{event.LimitTarget: 100},
			with(func(e *report.Evidence) { e.NIC, e.NICBits, e.NICShare, e.NICSpeed = "", 0, 0, 0 })},
		{"a ceiling and the server's metrics", map[event.Limit]float64{event.LimitTarget: 100},
			with(func(e *report.Evidence) {
				e.Ceiling, e.OfCeiling = 1.9*(1<<30), .57
				e.Server = report.ServerLoad{URL: "http://db1:9100/metrics", CPU: .83, Cores: 16}
			})},
		{"a server's metrics without cores", map[event.Limit]float64{event.LimitTarget: 100},
			with(func(e *report.Evidence) { e.Server = report.ServerLoad{URL: "http://db1:8030/metrics", CPU: 3.21} })},
	} {
		r := done()
		r.WorkerSeconds = states[c.what]
		r.Client.Cores, r.Plan.Buffers, r.Plan.Workers, r.Plan.MaxRate, r.Result.Refills = 8, 12, 64, 100<<20, 1234
		r.BoundBy = report.NewBound(c.lost, c.e)
		text.WriteString("# " + c.what + "\n" + lineOf(t, r, "bound by  ") + "\n")
	}
	golden.Equal(t, "verdicts.txt", text.String())
}

// lineOf is the one line of the summary that begins so.
func lineOf(t *testing.T, r report.Report, begin string) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	var found []string
	for _, l := range strings.Split(text.String(), "\n") {
		if strings.HasPrefix(l, begin) {
			found = append(found, l)
		}
	}
	require.Len(t, found, 1, text.String())
	return found[0]
}

func TestSecondLimit(t *testing.T) {
	for second, named := range map[float64]bool{0: false, 30: false, 44.9: false, 45.1: true, 49: true} {
		r := done()
		r.BoundBy = report.NewBound(map[event.Limit]float64{event.LimitNetwork: 100 - second, event.LimitTarget: second}, report.Evidence{})
		require.Equal(t, named, strings.Contains(lineOf(t, r, "bound by  network"), "close behind target"), second)
	}
}
