package push

import (
	"crypto/tls"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// tls is what back-ends encrypt with. It notes that somebody did: a mode that only prefers it does not tell.
func (p *push) tls(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	config, plain, err = p.Config.Connect.Trust.TLS(mode, host)
	if config != nil {
		config.VerifyConnection = func(tls.ConnectionState) error { // called at the end of every handshake
			p.encrypted.Store(true)
			return nil
		}
	}
	return config, plain, err
}

// reportCeiling compares the run with the most that calibrate saw this machine do with the same protocol and rows.
func (p *push) reportCeiling(r *report.Report) {
	if p.Ceilings == "" || r.Result.BytesPerSecond <= 0 {
		return
	}
	best, ok, err := baseline.Best(p.Ceilings, baseline.Key{
		Stage: baseline.Load, Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: p.plan.Dataset, PayloadBytes: p.plan.PayloadBytes, PayloadKind: p.plan.PayloadKind, TLS: p.encrypted.Load(),
	})
	if err != nil {
		r.Warnings = append(r.Warnings, "the run is not compared with what this machine can do: "+err.Error())
	}
	if ok {
		r.BoundBy.Evidence.Ceiling = best.BytesPerSecond
		r.BoundBy.Evidence.OfCeiling = r.Result.BytesPerSecond / best.BytesPerSecond
	}
}
