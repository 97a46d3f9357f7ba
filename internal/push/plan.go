package push

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// replan makes the plan anew, for what is known now of the run and of the database.
func (p *push) replan(caps loader.Caps) error {
	made, warnings, err := run.MakePlan(p.spec, caps, p.resources)
	p.warnings = warnings
	if errors.As(err, new(*run.DeliveryError)) { // because of the server or the table, not of the command line
		return failed(report.PreflightFailed, err)
	}
	if err != nil {
		return failed(Usage, err)
	}
	p.caps, p.plan = caps, made
	return nil
}

// replanRun makes the plan anew of a run that has begun.
func (p *push) replanRun(r runlog.Record, caps loader.Caps) error {
	err := p.replan(caps)
	if weaker := (*run.DeliveryError)(nil); errors.As(err, &weaker) {
		return failed(report.PreflightFailed,
			fmt.Errorf("run %s is to deliver exactly once, and table %s cannot any more: %s", r.Run, r.Table, weaker.Reason))
	}
	if err != nil {
		return err
	}
	type rows struct{ distinct, bytes, encoded int64 }
	was := rows{r.Plan.DistinctRows, r.Plan.RowBytes, r.Plan.EncodedRowBytes}
	is := rows{p.plan.DistinctRows, p.plan.RowBytes, p.plan.EncodedRowBytes}
	if was != is {
		return failed(report.PreflightFailed, loader.Final(fmt.Errorf("run %s was begun by another version of terapush, whose batches this "+
			"one would make otherwise: take that version", r.Run)))
	}
	return nil
}

// endAt ends a run by duration, or of files, behind so many batches.
func (p *push) endAt(batches int64) {
	p.plan = p.plan.EndedAt(batches)
	p.spec = p.plan.Spec
	if p.plan.Files != nil {
		p.plan.Cut.End(batches)
	}
}

// machine returns what this process has for a run. linkBits is called only if the number of workers depends on it.
func machine(s config.Shard, c *config.Pace, linkBits func() int64) run.Resources {
	r := run.Resources{Shard: s, Workers: c.Workers, Memory: memory(c.Memory)}
	if r.Workers == 0 {
		r.Cores, r.LinkBits = runtime.GOMAXPROCS(0), linkBits()
	}
	return r
}

// memory returns the budget of all buffers in bytes. given is the user's, or 0.
func memory(given config.Bytes) int64 {
	if given > 0 {
		return int64(given)
	}
	if m := host.Memory(); m > 0 {
		return m / 4
	}
	return 1 << 30
}
