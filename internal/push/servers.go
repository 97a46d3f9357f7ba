package push

import (
	"context"
	"crypto/tls"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// watchServers begins to ask the servers of --server-metrics how busy they are; once, for all loads of the process.
func (p *push) watchServers(ctx context.Context) {
	urls := p.Config.ServerMetrics.URLs()
	if len(urls) == 0 || p.servers != nil {
		return
	}
	p.servers = host.WatchServers(ctx, urls, p.trustOfMetrics)
}

// stopWatching ends that with the load, and does not wait for the last answers: the report does.
func (p *push) stopWatching() {
	if p.servers != nil {
		p.servers.Stop()
	}
}

// trustOfMetrics is the run's, but for what is of the target alone: the name in its certificate, and whether it has TLS.
func (p *push) trustOfMetrics(host string) (*tls.Config, error) {
	trust, mode := p.Config.Connect.Trust, loader.TLSMode(p.Config.Connect.TLS)
	trust.ServerName = ""
	if mode != loader.TLSRequire && mode != loader.TLSPrefer {
		mode = loader.TLSVerify
		if network.Local(host) {
			mode = loader.TLSPrefer
		}
	}
	c, _, err := trust.TLS(mode, host)
	return c, err
}

func (p *push) reportServer(r *report.Report) {
	if p.servers == nil {
		return
	}
	l, warning := p.servers.Load()
	r.BoundBy.Evidence.Server = report.ServerLoad(l)
	if warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
}
