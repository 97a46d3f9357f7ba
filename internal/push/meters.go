package push

import (
	"context"
	"crypto/tls"
	"slices"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// meters are all that counts and times a run in this process.
type meters struct {
	stats    *stats.Collector // nil before the load
	wire     *network.Dialer
	usage    stats.Meter
	account  *stats.Bottleneck // of the workers' time; nil as stats are
	timeline *stats.Timeline   // runs as long as stats are made
	machine  machineWork
	servers  *host.ServerWatcher // nil where nobody watches

	loadCPU float64       // seconds of CPU time while rows moved
	visible time.Duration // from the last ack until the rows were seen; 0: an ack says it, or nobody looked
}

// start begins to count, with what earlier processes have acknowledged; nil for none.
func (m *meters) start(o stats.Options, earlier *stats.Earlier, wire *network.Dialer) {
	m.wire = wire
	o.WireBytes = wire.Sent
	o.Lost = func() stats.Lost {
		a := m.account.Account()
		return stats.Lost{Seconds: a.Seconds, BoundBy: a.BoundBy, Sockets: a.Sockets}
	}
	m.account = stats.NewBottleneck(m.reading)
	m.stats = stats.New(o)
	if earlier != nil {
		m.stats.Resume(*earlier)
	}
	m.timeline = stats.StartTimeline(o.Start, m.account.Sample, m.stats.Progress)
}

// reading is what the account of the workers' time is made of.
func (m *meters) reading() stats.Reading {
	w, u := m.stats.Work(), stats.ProcessUsage()
	return stats.Reading{
		At: w.At, Workers: w.Seconds, Sockets: m.wire.Sockets(), CPU: u.CPU(), Queued: u.QueuedSeconds, Cores: u.Cores,
		Payload: w.Payload, Wire: m.wire.Sent(),
	}
}

// resume begins a phase in which workers work: their time, and what the machine does in it, count from here on.
func (m *meters) resume(p event.Phase) {
	m.account.Sample()
	m.machine.start()
	m.stats.Phase(p)
}

// pause ends it, where it is on, with the start of another phase. The last window ends behind all time of workers.
func (m *meters) pause(next event.Phase) {
	m.stats.Phase(next)
	m.account.Sample()
	m.machine.stop()
}

// sinceLastAck is 0 where this process had no ack.
func (m *meters) sinceLastAck() time.Duration {
	s := m.stats.Snapshot()
	if s.AppliedBatches+s.AlreadyBatches == 0 {
		return 0
	}
	return time.Since(s.LastProgress)
}

// watchServers begins to ask the servers of --server-metrics how busy they are; once, for all loads of the process.
func (m *meters) watchServers(ctx context.Context, c *config.Push) {
	urls := c.ServerMetrics.URLs()
	if len(urls) == 0 || m.servers != nil {
		return
	}
	// Trust is the run's, but for what is of the target alone: the name in its certificate, and whether it has TLS.
	m.servers = host.WatchServers(ctx, urls, func(host string) (*tls.Config, error) {
		trust, mode := c.Connect.Trust, loader.TLSMode(c.Connect.TLS)
		trust.ServerName = ""
		if mode != loader.TLSRequire && mode != loader.TLSPrefer {
			mode = loader.TLSVerify
			if network.Local(host) {
				mode = loader.TLSPrefer
			}
		}
		c, _, err := trust.TLS(mode, host)
		return c, err
	})
}

// stopWatching ends that with the load, and does not wait for the last answers: the report does.
func (m *meters) stopWatching() {
	if m.servers != nil {
		m.servers.Stop()
	}
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
