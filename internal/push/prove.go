package push

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// prove checks that every row arrived, and then lets go of the claims: until here they were the only proof.
func (p *push) prove(ctx context.Context) error {
	p.stats.Phase(event.Verify)
	if err := p.verify(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if sizer, can := p.loader.(loader.Sizer); can && p.verified.Mode.Scans() > 0 {
		err := p.retried("size", func(ctx context.Context) (err error) {
			p.stored, err = sizer.Stored(ctx)
			return err
		})(ctx)
		if err != nil {
			p.warn(fmt.Sprintf("the table's size is not known: %v", err))
		}
	}
	if p.verified.Mode == verify.Count || p.verified.Mode == verify.Full {
		// A row that was not taken may be there all the same, as somebody else's under the same key.
		return errors.Join(failed(report.Failed, p.finish(ctx)), p.missing())
	}
	return p.missing()
}

func (p *push) verify(ctx context.Context) error {
	wanted, err := verify.ParseMode(p.Config.Verify)
	if err != nil {
		return err
	}
	possible := func(m verify.Mode) (verify.Mode, string) { return verify.Possible(p.loader, m) }
	objects := verify.OnlyObjects(p.loader)
	if objects {
		possible = verify.PossibleObjects
	}
	mode, weaker := possible(wanted)
	if weaker != "" {
		p.warn(weaker)
	}
	if objects && mode == verify.Count {
		err = p.verifyObjects(ctx)
	} else {
		p.verified, err = verify.Run(ctx, p.loader, mode, p.expect(), p.stats.Snapshot().Rows)
	}
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if mode == verify.None {
		return nil // nothing was looked at, so nothing is said about it
	}
	p.stats.Verified(event.Verification{OK: p.verified.OK, ExpectedRows: p.verified.ExpectedRows, FoundRows: p.verified.FoundRows})
	if !p.verified.OK {
		return &Error{Outcome: report.VerificationFailed, Err: fmt.Errorf("%s", p.verified.Summary())}
	}
	return nil
}

// verifyObjects compares what lies in the store with what the journal says was acknowledged.
func (p *push) verifyObjects(ctx context.Context) error {
	var strange []string
	var err error
	p.verified, strange, err = verify.Objects(ctx, p.loader.(loader.Inventory), p.id(), p.expect(), p.lengths.of)
	if len(strange) > 0 {
		p.warn(fmt.Sprintf("objects under the run's prefix that are none of its batches, among them %s", strings.Join(strange, ", ")))
	}
	return err
}

func (p *push) expect() verify.Expect {
	return verify.Expect{
		FirstKey: p.plan.FirstKey, Rows: p.plan.Rows, BatchRows: p.plan.BatchRows, Distinct: p.plan.DistinctRows,
		Dataset: p.data, VerifyRows: p.Config.VerifyRows, Seed: p.plan.Seed, Retried: p.retried,
	}
}

// missing is the error of a run whose server took fewer rows than it was sent and called it success.
func (p *push) missing() error {
	if n := p.stats.Snapshot().MissingRows; n != 0 {
		return &Error{Outcome: report.Rejected, Err: fmt.Errorf("the server took %d rows less than it was sent", n)}
	}
	return nil
}

// finish notes that the run is proven before it removes the claims: the other way round, a crash in between would
// leave a run whose rows nobody could tell from missing ones.
func (p *push) finish(ctx context.Context) error {
	r := p.ledger.Record()
	r.Stage = runlog.Verified
	if err := p.ledger.Save(r); err != nil {
		return err
	}
	claims, can := p.loader.(loader.Claims)
	if !can || !p.claims() {
		return nil
	}
	forget := func(ctx context.Context) error {
		_, err := claims.Forget(ctx, p.id())
		return err
	}
	if err := p.retried("claims", forget)(ctx); err != nil {
		p.warn(fmt.Sprintf("the run's claims are still in the claim table: %v", err))
	}
	return nil
}

// claims tells whether the claim table holds anything of the run: claims, or the range of keys that was set aside for it.
func (p *push) claims() bool {
	return p.contract.Dedup == loader.DedupTx || p.Config.Append && p.ledger.Record().Flag("first-key") == ""
}

// measure asks what the load has cost the server, however it ended. It comes when all clocks stand still, so that the
// answer is in no rate, and asks nothing of a server that the user has no patience with.
func (p *push) measure(ctx context.Context) {
	measurer, can := p.loader.(loader.Measurer)
	if !can || !p.loaded || ctx.Err() != nil {
		return
	}
	bound, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	var notes []string
	p.cost, notes = measurer.Measured(bound)
	for _, n := range notes {
		p.warn(n)
	}
}

// report fills in what is known, however far the run came.
func (p *push) report(err error) *report.Report {
	r := &report.Report{Warnings: p.warnings, Cost: p.cost}
	r.Result.Outcome = OutcomeOf(err)
	if err != nil {
		r.Result.Error = err.Error()
	}
	r.Run = report.Run{Started: p.started, Resumed: p.resumed}
	if p.ledger != nil {
		r.Run.ID, r.Run.Started, r.Run.Resumable = p.id(), p.ledger.Record().Started, p.resumable(err)
	}
	if p.stats != nil {
		// Before anything is measured for the report itself, so that only the run is counted.
		s := p.stats.Snapshot()
		r.Measure(s, p.stats.Latency(), p.meter.Usage())
		p.reportBound(r, s)
		p.reportPrice(r, s)
		p.warnOfWire(r, s)
		r.Client.LoadSeconds = p.loadCPU
		r.Timeline = report.NewTimeline(p.timeline.Stop())
		p.reportServer(r)
	}
	r.Latency.Loop, r.Latency.VisibleSeconds = report.Closed, p.visible.Seconds()
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
	p.reportVerify(r)
	r.Complete()
	return r
}

// reportError counts what ended the run outside of an attempt: a disk that is full when the table is made, or read. What
// is no error of the database has no class; of a file of ours a back-end would think that it was the network.
func (p *push) reportError(r *report.Report, err error) {
	if err == nil || p.driver == nil || r.Result.Outcome == report.Interrupted || r.Result.Outcome == Usage {
		return
	}
	var file *fs.PathError
	class := p.driver.Classify(err).Class
	if errors.As(err, &file) || class == "" || class == loader.ClassOther || r.Result.Errors[string(class)] > 0 {
		return
	}
	if r.Result.Errors == nil {
		r.Result.Errors = make(map[string]int64)
	}
	r.Result.Errors[string(class)] = 1
}

func (p *push) reportTarget(r *report.Report) {
	if p.driver == nil {
		return
	}
	r.Target = report.Target{Backend: p.driver.Name(), URL: p.target.String(), Via: p.Config.Via.String(), Table: p.table.Name}
	if p.loader != nil {
		s := p.loader.Server()
		r.Target.Server, r.Target.Endpoint, r.Target.Settings = strings.TrimSpace(s.Product+" "+s.Version), s.Endpoint, s.Settings
	}
}

func (p *push) reportPlan(r *report.Report) {
	r.Plan = report.Plan{
		Method: p.contract.Method, Format: string(p.contract.Format), Delivery: string(p.contract.Delivery),
		Dataset: p.plan.Dataset, Seed: p.plan.Seed, Rows: p.plan.Rows, FirstKey: p.plan.FirstKey,
		Workers: p.plan.Workers, Buffers: p.plan.Buffers, BatchRows: p.plan.BatchRows,
		BatchBytes: p.plan.BatchBytes(), GroupBatches: p.contract.GroupBatches, DistinctRows: p.plan.DistinctRows, Distinct: p.plan.DistinctRows * p.plan.RowBytes,
		MaxRate: int64(p.Config.MaxRate), Options: p.target.Options,
	}
	if p.Config.Duration > 0 { // the plan itself has a number of rows as soon as the time is over
		r.Plan.Rows = 0
	}
	if p.data != nil && p.feed.Load() != nil {
		// Measured after the run, on rows made again: it costs tens of milliseconds and no one waits for it.
		if ratio, err := dataset.CompressionRatio(p.data, p.plan.Rows); err == nil {
			r.Plan.ZstdRatio = ratio
		}
	}
}

func (p *push) reportVerify(r *report.Report) {
	v := p.verified
	r.Verify = report.Verify{
		Mode: p.Config.Verify, Ran: v.Mode != "", OK: v.OK && v.Mode != verify.None,
		ExpectedRows: v.ExpectedRows, FoundRows: v.FoundRows, SampledRows: v.SampledRows, BadCount: v.BadCount,
	}
	if v.Mode != "" {
		r.Verify.Mode = string(v.Mode)
	}
	for _, b := range v.BadBatches {
		r.Verify.BadBatches = append(r.Verify.BadBatches, report.BadBatch{
			Number: b.Number, FirstKey: b.FirstKey, LastKey: b.LastKey, Rows: b.Rows, Found: b.Found,
			Reason: string(b.Reason), Detail: b.Detail,
		})
	}
	if v.Mode == verify.Full && v.DistinctRows != v.FoundRows {
		r.Verify.Problems = append(r.Verify.Problems, fmt.Sprintf("%d rows, but only %d different keys", v.FoundRows, v.DistinctRows))
	}
	for _, b := range v.BadRows {
		r.Verify.Problems = append(r.Verify.Problems, b.String())
	}
	if more := v.BadRowCount - int64(len(v.BadRows)); more > 0 {
		r.Verify.Problems = append(r.Verify.Problems, fmt.Sprintf("%d more rows of the sample are wrong", more))
	}
}
