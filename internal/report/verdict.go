package report

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
)

const (
	// closeBehind is how far a limit's share may be behind the largest and still be named.
	closeBehind = 0.1
	// flowLimit is what EC2 allows a single connection outside of a placement group, in bits a second. From nearFlowLimit
	// on that may be what limits it.
	flowLimit, nearFlowLimit = 5e9, 4.5e9
	// fullMachine is the share of the machine's cores from which on all count as busy.
	fullMachine = 0.9
	// noFigure follows a verdict that is not about the database.
	noFigure = "do not quote this as the database's speed"
)

// bound returns the parts of the verdict's line: what took most of the workers' time, the evidence, and how busy
// client, network and server were.
func (r Report) bound() []string {
	b, e := r.BoundBy, r.BoundBy.Evidence
	first := event.Limit(b.Verdict)
	lostTo, evidence := r.explain(first)
	line := fmt.Sprintf("%s: %s of worker time %s", first, percent(b.Shares[b.Verdict]), lostTo)
	if shown := units.Join(", ", evidence...); shown != "" {
		line += " (" + shown + ")"
	}
	parts := []string{line}
	if second, ok := b.second(); ok {
		parts = append(parts, fmt.Sprintf("close behind %s, %s", second, percent(b.Shares[string(second)])))
	}
	if first == event.LimitClient || first == event.LimitSource || first == event.LimitRate {
		parts = append(parts, noFigure)
	}
	// More threads may be ready to run than there are cores.
	queued := min(e.ClientQueued, 1-e.ClientCPU)
	// If others leave this process no core, it waits for them, whatever the sockets measured.
	busy := e.MachineCPU >= fullMachine && e.ClientCPU < fullMachine
	var exceeded int64
	for _, n := range e.Allowance {
		exceeded += n
	}
	return append(parts,
		when(e.ClientCPU > 0 || r.Merged == nil, fmt.Sprintf("client CPU %s of %s", percent(e.ClientCPU), counted(int64(r.Client.Cores), "core")))+
			when(queued >= closeBehind, ", waited for a core "+percent(queued)+" of the time"),
		when(busy, "all cores of the machine "+percent(e.MachineCPU)+" busy"),
		e.nic(), when(exceeded != 0, "ENA allowances exceeded "+units.Count(exceeded)), e.Server.text(), e.ceiling())
}

// ceiling compares the run with calibrate's figure, which is smaller if calibrate ran on a busy machine.
func (e Evidence) ceiling() string {
	switch {
	case e.Ceiling == 0:
		return ""
	case e.OfCeiling > 1+closeBehind:
		return fmt.Sprintf("%.1f times what terapush calibrate found this client able to do (%s/s): calibrate again",
			e.OfCeiling, units.Bytes(int64(e.Ceiling)))
	}
	return fmt.Sprintf("%s of what this client can do (%s/s)", percent(e.OfCeiling), units.Bytes(int64(e.Ceiling)))
}

// second returns the limit with the second largest share if it is close to the largest.
func (b Bound) second() (event.Limit, bool) {
	others := make(map[event.Limit]float64)
	for _, limit := range event.Limits() {
		if string(limit) != b.Verdict {
			others[limit] = b.Shares[string(limit)]
		}
	}
	second := event.BoundBy(others)
	return second, second != "" && b.Shares[b.Verdict]-others[second] <= closeBehind
}

// explain returns what workers did in the time that a limit took, and the evidence for it; parts of that may be empty.
func (r Report) explain(l event.Limit) (lostTo string, evidence []string) {
	e := r.BoundBy.Evidence
	switch l {
	case event.LimitSource:
		return "waiting for rows to be made", []string{
			units.Count(r.Result.Refills) + " refills", counted(int64(r.Plan.Buffers), "buffer"),
			units.Bytes(r.Client.PeakRSSBytes) + " of memory",
		}
	case event.LimitClient: // the hottest core is known on Linux only
		return "at work, or waiting for a core", []string{when(e.HottestCore != 0, "hottest core "+percent(e.HottestCore))}
	case event.LimitNetwork:
		return "waiting for the network", []string{
			"retransmitted " + percent(e.Retransmitted), when(e.SndbufLimited != 0, "send buffer too small "+percent(e.SndbufLimited)),
			when(e.FastestBits >= nearFlowLimit,
				fmt.Sprintf("fastest connection %s, one flow on EC2 gets %s", bits(e.FastestBits), bits(flowLimit))),
		}
	case event.LimitProtocol:
		return "in round trips and overhead", []string{
			fmt.Sprintf("%.1f turns a batch × %s", e.TurnsPerBatch, duration(e.RTTSeconds)),
			fmt.Sprintf("wire/payload %.2f", e.WirePerPayload),
		}
	case event.LimitRate:
		return "waiting for --max-rate", []string{units.Bytes(r.Plan.MaxRate) + "/s"}
	case event.LimitTail:
		return "out of batches while others sent theirs", []string{fmt.Sprintf("%s for %s: take smaller batches, or more of them",
			counted(r.Result.Batches, "batch"), counted(int64(r.Plan.Workers), "worker"))}
	}
	window := when(e.RwndLimited != 0, "rwnd-limited "+percent(e.RwndLimited))
	if !e.Kernel {
		window = "the network's part in it is not known"
	}
	return "waiting for the server", []string{
		window, r.spent("between attempts ", event.BackingOff), r.spent("for commits ", event.WaitCommit),
	}
}

// spent returns the share of worker time in a state, "" if it is small.
func (r Report) spent(prefix string, s event.State) string {
	var all float64
	for _, state := range event.States() {
		all += r.WorkerSeconds[state.String()]
	}
	share := ratio(r.WorkerSeconds[s.String()], all)
	return when(share >= closeBehind, prefix+percent(share))
}

// nic returns the load of the interface that leads to the target.
func (e MachineEvidence) nic() string {
	switch {
	case e.NIC == "", e.NICBits == 0: // of a merged report
		return ""
	case e.NICSpeed == 0:
		return fmt.Sprintf("NIC %s %s", e.NIC, bits(e.NICBits))
	}
	return fmt.Sprintf("NIC %s of %s", percent(e.NICShare), bits(float64(e.NICSpeed)))
}

func (s ServerLoad) text() string {
	switch {
	case s.URL == "":
		return ""
	case s.Cores == 0:
		return fmt.Sprintf("server CPU %.1f cores", s.CPU)
	}
	return fmt.Sprintf("server CPU %s of %s", percent(s.CPU), counted(int64(s.Cores), "core"))
}

// percent formats small shares with one more digit: half a percent of retransmitted segments is a lot.
func percent(share float64) string {
	switch {
	case share > 0 && share < 0.0001:
		return "< 0.01 %"
	case share > 0 && share < 0.02:
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func bits(perSecond float64) string { return humanize.SIWithDigits(perSecond, 1, "bps") }
