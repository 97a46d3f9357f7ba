package push

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// meters are all that counts and times a run in this process.
type meters struct {
	stats    *stats.Collector // nil before the load
	wire     *netio.Dialer
	usage    stats.Meter
	account  *stats.Bottleneck // of the workers' time; nil as stats are
	timeline *stats.Timeline   // runs as long as stats are made
	machine  host.Work
	servers  *host.ServerWatcher // nil where nobody watches

	loadCPU float64       // seconds of CPU time while rows moved
	visible time.Duration // from the last ack until the rows were seen; 0: an ack says it, or nobody looked
}

// start begins to count, with what earlier processes have acknowledged; nil for none.
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
	m.machine.Start()
	m.stats.Phase(p)
}

// pause ends it, where it is on, with the start of another phase. The last window ends behind all time of workers.
func (m *meters) pause(next event.Phase) {
	m.stats.Phase(next)
	m.account.Sample()
	m.machine.Stop()
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
			if netio.Local(host) {
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
