package push

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// report fills in what is known, however far the run came.
func (p *push) report(err error) *report.Report {
	r := &report.Report{Warnings: p.notes.list, Cost: p.cost}
	r.Result.Outcome = OutcomeOf(err)
	if err != nil {
		r.Result.Error = err.Error()
	}
	r.Run = report.Run{Started: p.started, Resumed: p.state.resumed}
	if p.state.log != nil {
		r.Run.ID, r.Run.Started, r.Run.Resumable = p.state.run(), p.state.log.Record().Started, p.resumable(err)
	}
	if m := &p.meters; m.stats != nil {
		// Before anything is measured for the report itself, so that only the run is counted.
		s := m.stats.Snapshot()
		r.Measure(s, m.stats.Latency(), m.usage.Usage())
		e := report.NewEvidence(m.account.Account(), max(s.StoredBatches, s.AppliedBatches+s.AlreadyBatches))
		m.machine.AddTo(&e, p.target.link.Cards(), p.target.link.LeavesBy(destination(p.target.Target)))
		r.BoundBy = report.NewBound(s.LimitSeconds, e)
		if p.Config.Prices != "" {
			r.Price = p.plan.price(s, p.target.caps(), p.started)
		}
		r.Client.LoadSeconds = m.loadCPU
		r.Timeline = report.NewTimeline(m.timeline.Stop())
		if m.servers != nil {
			load, warning := m.servers.Load()
			r.BoundBy.Evidence.Server = report.ServerLoad(load)
			if warning != "" {
				r.Warnings = append(r.Warnings, warning)
			}
		}
	}
	r.Latency.Loop, r.Latency.VisibleSeconds = report.Closed, p.meters.visible.Seconds()
	if p.Config.MaxRate > 0 {
		r.Latency.Loop = report.Open
	}
	p.reportError(r, err)
	p.reportTarget(r)
	p.reportPlan(r)
	p.reportCeiling(r)
	if p.stored > 0 {
		alone := p.plan.Rows // in the table: a run that appends shares it with rows nobody counted
		if p.Config.Append {
			alone = 0
		}
		r.Stored = report.NewStored(p.stored, alone)
	}
	if r.Verify = p.verified.Report(); !r.Verify.Ran {
		r.Verify.Mode = p.Config.Verify
	}
	r.Complete()
	return r
}

// resumable reports whether a resume can go on with what a process leaves that ended with err.
func (p *push) resumable(err error) bool {
	switch OutcomeOf(err) {
	case report.PreflightFailed, report.Interrupted, report.Unknown, report.Failed:
	default:
		return false
	}
	begun := p.state.lastKnown() >= 0 || p.meters.stats != nil && p.meters.stats.Snapshot().Attempts > 0
	return (begun || !p.plan.ByDuration) && !errors.As(err, new(*loader.FinalError))
}

// reportError counts what ended the run outside of an attempt: a disk that is full when the table is made, or read. What
// is no error of the database has no class; of a file of ours a back-end would think that it was the network.
func (p *push) reportError(r *report.Report, err error) {
	if err == nil || p.target.driver == nil || r.Result.Outcome == report.Interrupted || r.Result.Outcome == Usage {
		return
	}
	class := p.target.driver.Classify(err).Class
	if errors.As(err, new(*fs.PathError)) || class == "" || class == loader.ClassOther || r.Result.Errors[string(class)] > 0 {
		return
	}
	if r.Result.Errors == nil {
		r.Result.Errors = make(map[string]int64)
	}
	r.Result.Errors[string(class)] = 1
}

func (p *push) reportTarget(r *report.Report) {
	t := &p.target
	if t.driver == nil {
		return
	}
	r.Target = report.Target{Backend: t.driver.Name(), URL: t.String(), Via: p.Config.Via.String(), Table: t.table.Name}
	if t.loader != nil {
		s := t.loader.Server()
		r.Target.Server, r.Target.Endpoint, r.Target.Settings = strings.TrimSpace(s.Product+" "+s.Version), s.Endpoint, s.Settings
	}
}

func (p *push) reportPlan(r *report.Report) {
	made := &p.plan
	r.Plan = report.Plan{
		Method: made.Method, Format: string(made.Format), Delivery: string(made.Delivery),
		Dataset: made.Dataset, Seed: made.Seed, Rows: made.Rows, FirstKey: made.FirstKey,
		Workers: made.Workers, Buffers: made.Buffers, BatchRows: made.BatchRows,
		BatchBytes: made.BatchBytes(), GroupBatches: made.GroupBatches, DistinctRows: made.DistinctRows, Distinct: made.DistinctRows * made.RowBytes,
		MaxRate: int64(p.Config.MaxRate), Options: p.target.Options,
	}
	if p.Config.Duration > 0 { // the plan itself has a number of rows as soon as the time is over
		r.Plan.Rows = 0
	}
	if made.data != nil && p.feed.Load() != nil {
		// Measured after the run, on rows made again: it costs tens of milliseconds and no one waits for it.
		if ratio, err := dataset.CompressionRatio(made.data, made.Rows); err == nil {
			r.Plan.ZstdRatio = ratio
		}
	}
}

// reportCeiling compares the run with the most that calibrate saw this machine do with the same protocol and rows.
func (p *push) reportCeiling(r *report.Report) {
	if p.Ceilings == "" || r.Result.BytesPerSecond <= 0 {
		return
	}
	best, ok, err := baseline.Best(p.Ceilings, baseline.Key{
		Stage: baseline.Load, Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: p.plan.Dataset, PayloadBytes: p.plan.PayloadBytes, PayloadKind: p.plan.PayloadKind, TLS: p.target.encrypted.Load(),
	})
	if err != nil {
		r.Warnings = append(r.Warnings, "the run is not compared with what this machine can do: "+err.Error())
	}
	if ok {
		r.BoundBy.Evidence.Ceiling = best.BytesPerSecond
		r.BoundBy.Evidence.OfCeiling = r.Result.BytesPerSecond / best.BytesPerSecond
	}
}
