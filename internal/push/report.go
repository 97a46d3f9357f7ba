package push

import (
	"errors"
	"strings"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// report returns what is known, however far the run came.
func (p *push) report(err error) *report.Report {
	r := &report.Report{Warnings: p.notes.List, Cost: p.cost}
	r.Result.Outcome = OutcomeOf(err)
	if err != nil {
		r.Result.Error = loader.Explain(err)
	}
	r.Run = report.Run{Started: p.started, ProcessStarted: p.started, Resumed: p.progress.Continued(), Flags: p.Given}
	if p.progress.Log() != nil {
		r.Run.ID, r.Run.Started, r.Run.Resumable = p.progress.ID(), p.progress.Log().Record().Started, p.resumable(err)
	}
	if shard := p.plan.Sends(); !shard.Whole() {
		r.Run.Shard = &report.Shard{
			Index: shard.Index, Count: shard.Count, FirstKey: p.plan.ShardKeys().First, Rows: p.plan.ShardRows(),
		}
	}
	if p.meters.stats != nil {
		p.reportMeters(r)
		// A shard that others have begun the run before has not gone on with anything of its own.
		r.Run.Resumed = r.Run.Resumed && (p.Config.Resume != "" || r.Run.ResumedRows > 0)
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
		rows := p.plan.Rows
		if p.Config.Append && (p.plan.Files == nil || p.target.Found.HasRows) {
			rows = 0 // the table has other rows too
		}
		r.Stored = report.NewStored(p.stored, rows)
	}
	if r.Verify = p.verified.Report(); !r.Verify.Ran {
		r.Verify.Mode = string(p.mode)
	}
	r.Complete()
	return r
}

// reportMeters comes first, so that the report's own work is not measured.
func (p *push) reportMeters(r *report.Report) {
	m := &p.meters
	if m.warming {
		m.warmedUp()
	}
	s := m.stats.Snapshot()
	r.Measure(s, m.warm, m.stats.Latency(), m.usage.Usage())
	r.Latency.Histogram = m.stats.Histogram()
	r.AddFailures(m.stats.Failures())
	account := m.account.Measured()
	applied := s.AppliedBatches + s.AlreadyBatches - m.warm.AppliedBatches - m.warm.AlreadyBatches
	e := report.NewEvidence(account, max(s.StoredBatches-m.warm.StoredBatches, applied))
	m.machine.AddTo(&e, p.link.Cards(), p.link.LeavesBy(destination(p.target.Target)))
	r.BoundBy = report.NewBound(account.Seconds, e)
	r.Client.LoadSeconds = m.loadCPU
	r.Client.Host, r.Client.Machine, r.Client.MachineCores = host.Place()
	r.Timeline = report.NewTimeline(m.timeline.Stop())
	if m.servers == nil {
		return
	}
	load, warning := m.servers.Load()
	r.BoundBy.Evidence.Server = report.ServerLoad(load)
	if warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
}

// resumable reports whether a run that ended with err can be resumed.
func (p *push) resumable(err error) bool {
	switch OutcomeOf(err) {
	case report.PreflightFailed, report.Interrupted, report.Unknown, report.Failed:
	default:
		return false
	}
	begun := p.progress.LastKnown() >= 0 || p.meters.stats != nil && p.meters.stats.Snapshot().Attempts > 0
	return (begun || !p.plan.ByDuration()) && !errors.As(err, new(*loader.FinalError))
}

// reportError counts an error that ended the run outside of an attempt, such as a full disk while the table was made.
func (p *push) reportError(r *report.Report, err error) {
	if r.Result.Outcome == report.Interrupted || r.Result.Outcome == Usage {
		return
	}
	class := loader.VerdictOf(err).Class
	if class == "" || class == loader.ClassOther || r.Result.Errors[string(class)] > 0 {
		return
	}
	if r.Result.Errors == nil {
		r.Result.Errors = make(map[string]int64)
	}
	r.Result.Errors[string(class)] = 1
}

func (p *push) reportTarget(r *report.Report) {
	t := p.target
	if t.Driver == nil {
		return
	}
	r.Target = report.Target{Backend: t.Driver.Name(), URL: t.String(), Via: t.Store(), Table: t.Found.Name}
	if t.Loader != nil {
		s := t.Loader.Server()
		r.Target.Server = strings.TrimSpace(s.Product + " " + s.Version)
		r.Target.Endpoint, r.Target.Settings = s.Endpoint, s.Settings
	}
}

func (p *push) reportPlan(r *report.Report) {
	made := &p.plan
	r.Plan = report.Plan{
		Method: made.Method, Format: string(made.Format), Delivery: string(made.Delivery),
		Dataset: made.DatasetID(), Seed: made.Seed, Rows: made.Rows, FirstKey: made.FirstKey,
		Workers: made.Workers, Buffers: made.Buffers, BatchRows: made.BatchRows,
		BatchBytes: made.BatchBytes(), GroupBatches: made.GroupBatches, DistinctRows: made.DistinctRows,
		Distinct: made.DistinctRows * made.RowBytes,
		MaxRate:  int64(p.Config.MaxRate), Options: p.target.Options,
	}
	if p.input != nil {
		p.input.report(&r.Plan)
	}
	if p.Config.Duration > 0 { // the plan got a number of rows when the time was over
		r.Plan.Rows = 0
	}
}

// reportCeiling compares the run with calibrate's best for the same protocol and rows.
func (p *push) reportCeiling(r *report.Report) {
	if p.Ceilings == "" || r.Result.BytesPerSecond <= 0 {
		return
	}
	best, ok, err := baseline.Best(p.Ceilings, baseline.Key{
		Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: p.plan.DatasetID(), PayloadBytes: p.plan.PayloadBytes, PayloadKind: p.plan.PayloadKind,
		TLS: p.target.Encrypted(),
	})
	if err != nil {
		r.Warnings = append(r.Warnings, "the run is not compared with what this machine can do: "+err.Error())
	}
	if ok {
		r.BoundBy.Evidence.Ceiling = best.BytesPerSecond
		r.BoundBy.Evidence.OfCeiling = r.Result.BytesPerSecond / best.BytesPerSecond
	}
}
