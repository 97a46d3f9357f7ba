package push

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

// facts are what a plan is made of. They are a value: who knows more makes others, and of these another plan.
type facts struct {
	spec      run.Spec      // what every process of the run has
	caps      loader.Caps   // of the method, as far as they are known
	resources run.Resources // of this process
}

// planned is the newest plan, and what it was made of. It is replaced as a whole, by replan and by endAt alone.
type planned struct {
	facts
	plan     run.Plan // the run's once its record is written
	warnings []string // of the plan that was made last, if only in vain
}

// gatherFacts finds driver and method, what that can do on any server, and what this process has: all facts but the
// spec.
func gatherFacts(
	c *config.Push, drivers *loader.Registry, earlier config.Earlier, link host.Link,
) (driver loader.Driver, to loader.Target, found facts, err error) {
	driver, to, err = c.LoaderTarget(drivers, earlier)
	if err == nil {
		found.caps, err = driver.Check(to)
	}
	if err := errors.Join(c.Validate(), err); err != nil {
		return driver, to, found, err
	}
	found.resources = machine(shardOf(c), &c.Pace, func() int64 { return link.Bits(destination(to)) })
	return driver, to, found, nil
}

// firstPlan is replan, unless the run has begun: that has a plan, and is planned again once its table is known.
func (p *push) firstPlan(asked facts) error {
	p.silent = asksNothing(&p.Config, asked.caps)
	if asked.spec.Method != "" {
		return nil
	}
	return p.replan(asked)
}

// replan makes the plan anew, of what is known now.
func (p *push) replan(f facts) error {
	made, warnings, err := run.MakePlan(f.spec, f.caps, f.resources)
	if err != nil {
		p.planned = planned{p.facts, p.plan, warnings}
		return unplanned(err)
	}
	p.setPlan(planned{f, made, warnings})
	return nil
}

// replanAs is replan for another spec.
func (p *push) replanAs(s run.Spec) error { return p.replan(facts{s, p.caps, p.resources}) }

// unplanned gives an error of run.MakePlan its outcome.
func unplanned(err error) error {
	if errors.As(err, new(*run.DeliveryError)) { // because of the server or the table, not of the command line
		return failed(report.PreflightFailed, err)
	}
	return failed(Usage, err)
}

// replanRun makes the plan anew of a run that has begun.
func (p *push) replanRun(r runlog.Record, f facts) error {
	err := p.replan(f)
	if weaker := (*run.DeliveryError)(nil); errors.As(err, &weaker) {
		return failed(report.PreflightFailed,
			fmt.Errorf("run %s promises exactly once, which table %s no longer supports: %s", r.Run, r.Table, weaker.Reason))
	}
	if err != nil {
		return err
	}
	type rows struct{ distinct, bytes, encoded int64 }
	was := rows{r.Plan.DistinctRows, r.Plan.RowBytes, r.Plan.EncodedRowBytes}
	is := rows{p.plan.DistinctRows, p.plan.RowBytes, p.plan.EncodedRowBytes}
	if was != is {
		return failed(report.PreflightFailed, loader.Final(fmt.Errorf("run %s was begun by another version of terapush, "+
			"and this one would make other batches of it: resume it with that version", r.Run)))
	}
	return nil
}

// endAt ends a run by duration, or of files, behind so many batches.
func (p *push) endAt(batches int64) {
	ended := p.plan.EndedAt(batches)
	p.setPlan(planned{facts{ended.Spec, p.caps, p.resources}, ended, p.warnings})
}

// setPlan replaces the plan, here and where the run's batches are known.
func (p *push) setPlan(made planned) {
	p.planned = made
	p.progress.SetPlan(made.plan)
}

// machine returns what this process has for a run. linkBits is called only if the number of workers depends on it.
func machine(s config.Shard, c *config.Pace, linkBits func() int64) run.Resources {
	r := run.Resources{Shard: s, Workers: c.Workers, Memory: memory(c.Memory), Cut: new(source.Cut)}
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

// shardOf returns the shard of a named run that this process sends. Of a load it is a run of its own.
func shardOf(c *config.Push) config.Shard {
	if c.Files != nil {
		return config.Shard{}
	}
	return c.Shard
}

// destination returns the host that sessions send to; "" for a socket or no server. Of a store it is that of the
// endpoint, or else the bucket, whose name stands for Amazon's.
func destination(t loader.Target) string {
	if t.Via != nil {
		t = *t.Via
	}
	if u, err := url.Parse(t.Params.Get("endpoint")); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if len(t.Hosts) == 0 {
		return ""
	}
	host, _, _ := net.SplitHostPort(t.Address(0, "0"))
	return host
}
