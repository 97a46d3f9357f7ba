package push

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// rowsMove begins the phase in which workers work: their time, and what the machine does in it, count from here on.
func (p *push) rowsMove() {
	p.account.Sample()
	p.machine.start()
	p.stats.Phase(p.moving())
}

// rowsRest ends it, where it is on, with the start of another phase. The last window ends behind all time of workers.
func (p *push) rowsRest(next event.Phase) {
	p.stats.Phase(next)
	p.account.Sample()
	p.machine.stop()
}

// reading is what the account of the workers' time is made of.
func (p *push) reading() stats.Reading {
	w, u := p.stats.Work(), stats.ProcessUsage()
	return stats.Reading{
		At: w.At, Workers: w.Seconds, Sockets: p.wire.Sockets(), CPU: u.CPU(), Queued: u.QueuedSeconds, Cores: u.Cores,
		Payload: w.Payload, Wire: p.wire.Sent(),
	}
}

// lostTime is the account as snapshots show it.
func (p *push) lostTime() stats.Lost {
	a := p.account.Account()
	return stats.Lost{Seconds: a.Seconds, BoundBy: a.BoundBy, Sockets: a.Sockets}
}

// machineWork is what the machine did while rows moved, which may be more than once.
type machineWork struct {
	since  time.Time // zero: they do not move
	before host.Load

	seconds float64
	cores   []float64 // seconds that each was busy
	nics    map[string]host.Traffic
}

func (w *machineWork) start() { w.since, w.before = time.Now(), host.ReadLoad() }

func (w *machineWork) stop() {
	if w.since.IsZero() {
		return
	}
	w.add(time.Since(w.since).Seconds(), w.before, host.ReadLoad())
	w.since = time.Time{}
}

func (w *machineWork) add(seconds float64, before, now host.Load) {
	w.seconds += seconds
	// Cores and interfaces that came meanwhile have no beginning, and those that went no end.
	for i := range min(len(now.Cores), len(before.Cores)) {
		if i == len(w.cores) {
			w.cores = append(w.cores, 0)
		}
		w.cores[i] += max(now.Cores[i]-before.Cores[i], 0)
	}
	for _, n := range now.NICs {
		for _, b := range before.NICs {
			if b.Name == n.Name {
				w.traffic(b, n)
			}
		}
	}
}

func (w *machineWork) traffic(before, now host.Traffic) {
	if w.nics == nil {
		w.nics = make(map[string]host.Traffic)
	}
	t := w.nics[now.Name]
	if t.Allowance == nil {
		t.Allowance = make(map[string]int64)
	}
	t.Name = now.Name
	t.Sent += max(now.Sent-before.Sent, 0)
	t.Received += max(now.Received-before.Received, 0)
	for name, n := range now.Allowance {
		t.Allowance[name] += max(n-before.Allowance[name], 0)
	}
	w.nics[now.Name] = t
}

// addTo tells of the cores, of the interface that leads to the target, and of what the driver held back. Where nobody knows
// that one, it is the one that sent most.
func (w *machineWork) addTo(e *report.Evidence, nics []host.NIC, to string) {
	if w.seconds <= 0 {
		return
	}
	if len(w.cores) > 0 {
		var sum float64
		for _, busy := range w.cores {
			sum += busy
		}
		// The clocks of two files differ by a little.
		e.HottestCore, e.MachineCPU = min(slices.Max(w.cores)/w.seconds, 1), min(sum/w.seconds/float64(len(w.cores)), 1)
	}
	var most host.Traffic
	e.Allowance = make(map[string]int64)
	for _, t := range w.nics {
		if t.Sent > most.Sent || t.Sent == most.Sent && t.Name < most.Name {
			most = t
		}
		for name, n := range t.Allowance {
			if n > 0 {
				e.Allowance[name] += n
			}
		}
	}
	if t, known := w.nics[to]; known {
		most = t
	}
	e.NIC, e.NICBits = most.Name, 8*float64(most.Sent)/w.seconds
	for _, n := range nics {
		// A pair of virtual interfaces says 10 Gbit/s whatever it can do.
		if n.Name == most.Name && float64(n.BitsPerSecond) >= e.NICBits {
			e.NICSpeed, e.NICShare = n.BitsPerSecond, over(e.NICBits, float64(n.BitsPerSecond))
		}
	}
}

// evidence is what the verdict rests on.
func evidence(a stats.Account, w *machineWork, nics []host.NIC, to string, batches int64) report.Evidence {
	t := a.Total
	e := report.Evidence{
		Blocked: over(t.Sockets.Blocked, t.WorkerSeconds()), Awaited: over(t.Sockets.Awaited, t.WorkerSeconds()),
		RoundTrips: over(t.Sockets.RoundTrips, t.WorkerSeconds()),
		Kernel:     t.Sockets.Kernel, RwndLimited: over(t.Sockets.RwndLimited, t.Sockets.Busy),
		SndbufLimited: over(t.Sockets.SndbufLimited, t.Sockets.Busy),
		TurnsPerBatch: over(float64(t.Sockets.Turns), float64(batches)), RTTSeconds: over(t.Sockets.RoundTrips, float64(t.Sockets.Turns)),
		Connections:   a.Sockets.Dialled,
		Retransmitted: over(float64(t.Sockets.Retransmits), float64(t.Sockets.Segments)),
		FastestBits:   8 * a.Fastest,
		ClientCPU:     over(t.CPU, t.Seconds*float64(t.Cores)), ClientQueued: over(t.Queued, t.Seconds*float64(t.Cores)),
		WirePerPayload: over(float64(t.Wire), float64(t.Payload)),
	}
	w.addTo(&e, nics, to)
	return e
}

func over(n, by float64) float64 {
	if by <= 0 {
		return 0
	}
	return n / by
}

// reportBound fills in the verdict.
func (p *push) reportBound(r *report.Report, s event.Snapshot) {
	batches := max(s.StoredBatches, s.AppliedBatches+s.AlreadyBatches)
	r.BoundBy = report.NewBound(s.LimitSeconds, evidence(p.account.Account(), &p.machine, p.link.cards(), p.link.leavesBy(destination(p.target)), batches))
}

const (
	// disagreement is how far bytes on the wire and bytes of bodies may be apart, as a share of the latter. What is less
	// than fewBytes are handshakes and questions, and no finding.
	disagreement = 0.05
	fewBytes     = 1 << 20
)

// warnOfWire tells where the wire had other bytes to carry than the bodies that count. Where nothing was sent over a
// connection of ours, nobody knows.
func (p *push) warnOfWire(r *report.Report, s event.Snapshot) {
	bodies := s.EncodedBytes
	if p.resumed {
		bodies -= p.amount(s.ResumedBatches, s.ResumedRows).EncodedBytes
	}
	if p.contract.Staged() {
		bodies = s.StoredBytes
	}
	apart := s.WireBytes - bodies
	if bodies <= 0 || s.WireBytes == 0 || max(apart, -apart) < fewBytes || float64(max(apart, -apart)) <= disagreement*float64(bodies) {
		return
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf(
		"the sockets took %s for %s of encoded bytes, %+.0f %%: TLS, what the protocol puts around them, and what was sent again",
		humanize.IBytesN(uint64(s.WireBytes), 4), humanize.IBytesN(uint64(bodies), 4), 100*float64(apart)/float64(bodies)))
}
