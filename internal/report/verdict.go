package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
)

const (
	// closeBehind is how far a limit's share may be behind the largest and still be named.
	closeBehind = 0.1
	// flowLimit is what EC2 allows a single connection outside of a placement group, and nearFlowLimit the rate from
	// which on that may be the connection's limit. In bits a second.
	flowLimit, nearFlowLimit = 5e9, 4.5e9
	// fullMachine is the share of the machine's cores from which on all count as busy.
	fullMachine = 0.9
	// noFigure follows a verdict that is not about the database.
	noFigure = "do not quote this as the database's speed"
)

// bound is the line of the verdict: what took most of the workers' time, what shows it, and how busy client, network and
// server were.
func (r Report) bound() []string {
	b, e := r.BoundBy, r.BoundBy.Evidence
	first := event.Limit(b.Verdict)
	parts := []string{fmt.Sprintf("%s: %s of worker time %s%s", first, percent(b.Shares[b.Verdict]), lostTo(first), inBrackets(r.shown(first)))}
	if second, ok := b.second(); ok {
		parts = append(parts, fmt.Sprintf("close behind %s, %s", second, percent(b.Shares[string(second)])))
	}
	if first == event.LimitClient || first == event.LimitSource || first == event.LimitRate {
		parts = append(parts, noFigure)
	}
	parts = append(parts, fmt.Sprintf("client CPU %s of %s", percent(e.ClientCPU), counted(int64(r.Client.Cores), "core", "cores"))+e.queued(),
		e.machine(), e.nic(), e.allowances(), e.Server.text())
	return append(parts, e.ceiling())
}

// ceiling compares the run with what calibrate found. That may be less, where it ran on a busy machine.
func (e Evidence) ceiling() string {
	switch {
	case e.Ceiling == 0:
		return ""
	case e.OfCeiling > 1+closeBehind:
		return fmt.Sprintf("%.1f times what terapush calibrate found this client able to do (%s/s): calibrate again", e.OfCeiling, units.Bytes(int64(e.Ceiling)))
	}
	return fmt.Sprintf("%s of what this client can do (%s/s)", percent(e.OfCeiling), units.Bytes(int64(e.Ceiling)))
}

// second returns the limit with the second largest share, where it is close to the largest.
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

// lostTo returns what the workers did meanwhile.
func lostTo(l event.Limit) string {
	switch l {
	case event.LimitSource:
		return "waiting for rows to be made"
	case event.LimitClient:
		return "at work, or waiting for a core"
	case event.LimitNetwork:
		return "waiting for the network"
	case event.LimitProtocol:
		return "in round trips and overhead"
	case event.LimitRate:
		return "waiting for --max-rate"
	case event.LimitTail:
		return "out of batches while others sent theirs"
	}
	return "waiting for the server"
}

// shown returns the evidence that belongs to a limit; parts of it may be empty.
func (r Report) shown(l event.Limit) []string {
	e := r.BoundBy.Evidence
	switch l {
	case event.LimitSource:
		return []string{units.Count(r.Result.Refills) + " refills", counted(int64(r.Plan.Buffers), "buffer", "buffers"),
			units.Bytes(r.Client.PeakRSSBytes) + " of memory"}
	case event.LimitClient:
		return []string{share("hottest core ", e.HottestCore)} // known on Linux only
	case event.LimitNetwork:
		return []string{"retransmitted " + percent(e.Retransmitted), share("send buffer too small ", e.SndbufLimited), e.flow()}
	case event.LimitProtocol:
		return []string{fmt.Sprintf("%.1f turns a batch × %s", e.TurnsPerBatch, duration(e.RTTSeconds)),
			fmt.Sprintf("wire/payload %.2f", e.WirePerPayload)}
	case event.LimitRate:
		return []string{units.Bytes(r.Plan.MaxRate) + "/s"}
	case event.LimitTail:
		return []string{fmt.Sprintf("%s for %s: take smaller batches, or more of them",
			counted(r.Result.Batches, "batch", "batches"), counted(int64(r.Plan.Workers), "worker", "workers"))}
	}
	shown := []string{share("rwnd-limited ", e.RwndLimited), r.spent("between attempts ", event.BackingOff), r.spent("for commits ", event.WaitCommit)}
	if !e.Kernel {
		shown[0] = "the network's part in it is not known"
	}
	return shown
}

// spent returns the share of worker time in a state, "" where it is small.
func (r Report) spent(prefix string, s event.State) string {
	var all float64
	for _, seconds := range r.WorkerSeconds {
		all += seconds
	}
	if of := ratio(r.WorkerSeconds[s.String()], all); of >= closeBehind {
		return prefix + percent(of)
	}
	return ""
}

// queued returns "" unless the process would have used noticeably more of its cores than others left it. More threads may
// be ready to run than there are cores.
func (e Evidence) queued() string {
	more := min(e.ClientQueued, 1-e.ClientCPU)
	if more < closeBehind {
		return ""
	}
	return " and ready for " + percent(more) + " more"
}

// machine returns "" unless others leave this process no core: then it waits for them, whatever the sockets measured.
func (e Evidence) machine() string {
	if e.MachineCPU < fullMachine || e.ClientCPU >= fullMachine {
		return ""
	}
	return "all cores of the machine " + percent(e.MachineCPU) + " busy"
}

// nic returns how full the interface was that leads to the target.
func (e Evidence) nic() string {
	switch {
	case e.NIC == "":
		return ""
	case e.NICSpeed == 0:
		return fmt.Sprintf("NIC %s %s", e.NIC, bits(e.NICBits))
	}
	return fmt.Sprintf("NIC %s of %s", percent(e.NICShare), bits(float64(e.NICSpeed)))
}

// flow returns the fastest connection, "" unless it is as fast as one connection may be.
func (e Evidence) flow() string {
	if e.FastestBits < nearFlowLimit {
		return ""
	}
	return fmt.Sprintf("fastest connection %s, one flow on EC2 gets %s", bits(e.FastestBits), bits(flowLimit))
}

func (e Evidence) allowances() string {
	var sum int64
	for _, n := range e.Allowance {
		sum += n
	}
	return nonZero("ENA allowances exceeded ", sum)
}

func (s ServerLoad) text() string {
	switch {
	case s.URL == "":
		return ""
	case s.Cores == 0:
		return fmt.Sprintf("server CPU %.1f cores", s.CPU)
	}
	return fmt.Sprintf("server CPU %s of %s", percent(s.CPU), counted(int64(s.Cores), "core", "cores"))
}

// parts returns the sum and its items.
func (p Price) parts() []string {
	parts := []string{money(p.Total, p.Currency)}
	for _, i := range p.Items {
		parts = append(parts, fmt.Sprintf("%s %s (%s × %s at %s)", i.Name, money(i.Cost, ""),
			amount(i.Amount), i.Unit, amount(i.Each)))
	}
	return parts
}

// money formats a sum with hundredths.
func money(n float64, currency string) string {
	text := fmt.Sprintf("%.2f", n)
	if n > 0 && n < 0.005 {
		text = "< 0.01"
	}
	return strings.TrimSpace(text + " " + currency)
}

// amount formats a number below one with three digits, and others with up to three behind the point.
func amount(n float64) string {
	if n > 0 && n < 1 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	return humanize.Commaf(math.Round(n*1000) / 1000)
}

// percent formats small shares with a digit more: half a percent of retransmitted segments is many.
func percent(share float64) string {
	switch {
	case share > 0 && share < 0.0001:
		return "< 0.01 %"
	case share > 0 && share < 0.02:
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// share returns "" for a share of 0.
func share(prefix string, n float64) string {
	if n == 0 {
		return ""
	}
	return prefix + percent(n)
}

func bits(perSecond float64) string { return humanize.SIWithDigits(perSecond, 1, "bps") }

func inBrackets(parts []string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return " (" + strings.Join(kept, ", ") + ")"
}
