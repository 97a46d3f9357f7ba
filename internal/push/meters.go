package push

import (
	"context"
	"crypto/tls"
	"net/url"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// meters count and time a run in this process.
type meters struct {
	stats    *stats.Collector // nil before the load
	wire     *netio.Dialer
	usage    stats.Meter
	account  *stats.Bottleneck // where the workers' time goes; nil before the load
	timeline *stats.Timeline
	machine  host.Work
	servers  *host.ServerWatcher // nil without --server-metrics

	warming bool           // until the end of the warm-up
	warm    event.Snapshot // of that end; zero without a warm-up
	loadCPU float64        // seconds of CPU time during the load, without the warm-up
	visible time.Duration  // from the last ack until the rows were visible; 0: not measured
}

// start starts the counters, from what earlier processes acknowledged if that is not nil.
func (m *meters) start(o stats.Options, earlier *stats.Earlier, wire *netio.Dialer) {
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

// reading returns the counters that the account of the workers' time is computed from.
func (m *meters) reading() stats.Reading {
	w, u := m.stats.Work(), stats.ProcessUsage()
	return stats.Reading{
		At: w.At, Workers: w.Seconds, Sockets: m.wire.Sockets(), CPU: u.CPU(), Queued: u.QueuedSeconds, Cores: u.Cores,
		Payload: w.Payload, Wire: m.wire.Sent(),
	}
}

// startWork begins a phase in which workers run: their time and the machine's load count from now on.
func (m *meters) startWork(p event.Phase) {
	m.account.Sample()
	m.machine.Start()
	m.stats.Phase(p)
}

// stopWork ends such a phase, if one is on, and begins the next.
func (m *meters) stopWork(next event.Phase) {
	m.stats.Phase(next)
	m.account.Sample()
	m.machine.Stop()
}

// measure measures a load from now on, or from the end of its warm-up on, when over is called, until end is called.
func (m *meters) measure(warmUp time.Duration, over func()) (end func()) {
	before := stats.ProcessUsage().CPU()
	count := func() { m.loadCPU = stats.ProcessUsage().CPU() - before }
	if warmUp == 0 {
		over()
		return count
	}
	m.warming = true
	called := make(chan struct{})
	timer := time.AfterFunc(warmUp, func() {
		defer close(called)
		m.warmedUp()
		before = stats.ProcessUsage().CPU()
		over()
	})
	return func() {
		if !timer.Stop() {
			<-called
			count()
		}
	}
}

// warmedUp begins what is measured.
func (m *meters) warmedUp() {
	m.warming = false
	m.account.WarmedUp()
	m.warm = m.stats.WarmedUp()
	m.machine = host.Work{}
	m.machine.Start()
}

// sinceLastAck returns 0 if this process had no ack.
func (m *meters) sinceLastAck() time.Duration {
	s := m.stats.Snapshot()
	if s.AppliedBatches+s.AlreadyBatches == 0 {
		return 0
	}
	return time.Since(s.LastProgress)
}

// watchServers starts to read the CPU load from the urls of --server-metrics, once for all loads of the process.
func (m *meters) watchServers(ctx context.Context, urls []*url.URL, c *config.Connect) {
	if len(urls) == 0 || m.servers != nil {
		return
	}
	// The authorities of the target are trusted here too; its certificate name and TLS mode are not used, but for those
	// that verify nothing.
	m.servers = host.WatchServers(ctx, urls, func(host string) (*tls.Config, error) {
		trust, mode := c.Trust, loader.TLSMode(c.TLS)
		trust.ServerName = ""
		if mode != loader.TLSRequire && mode != loader.TLSPrefer {
			mode = loader.TLSVerify
			if netio.Local(host) {
				mode = loader.TLSPrefer
			}
		}
		c, _, err := trust.TLS(mode, host)
		return c, err
	})
}
