package push

import (
	"context"
	"errors"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/loader"
)

// Outline is what is known of a run before it begins. Of a push no server is asked: its flavour and limits are not in
// it.
type Outline struct {
	Target     loader.Target
	Plan       run.Plan
	Warnings   []string
	Statements []loader.Statement // in which the run's id is RUN
	// Unread is why the columns of a load's table could not be read; nil if they were.
	Unread error
}

const outlinedRun = "RUN"

// CheckFlags returns what is wrong with a push whatever its size, its server and this machine are.
func CheckFlags(c *config.Push, drivers *loader.Registry) error {
	_, _, _, err := offlineFacts(c, drivers)
	return err
}

// offlineFacts is what a push asks for, and of which database, as far as no server has to be asked.
func offlineFacts(
	c *config.Push, drivers *loader.Registry,
) (driver loader.Driver, to loader.Target, f facts, err error) {
	driver, to, f, err = gatherFacts(c, drivers, config.Earlier{}, host.LocalLink(context.Background()))
	if err != nil {
		return driver, to, f, err
	}
	f.spec = specOf(c, to.Method)
	return driver, to, f, f.spec.Check(f.caps)
}

// NewOutline plans a push without connecting. The error has every problem that can be found so.
func NewOutline(c *config.Push, drivers *loader.Registry) (Outline, error) {
	driver, to, f, err := offlineFacts(c, drivers)
	if err != nil {
		return Outline{}, err
	}
	made, warnings, err := run.MakePlan(f.spec, f.caps, f.resources)
	if err != nil {
		return Outline{}, unplanned(err)
	}

	first := preparation(c, outlinedRun, &made, loader.CreateMode(c.Create))
	first.Began, first.Silent = time.Now(), asksNothing(c, f.caps)
	return Outline{
		Target: to, Plan: made, Warnings: warnings, Statements: driver.Explain(to, asNew(c, first)),
	}, nil
}

// OutlineLoad plans a load. It reads the beginnings of the files and, from a server that can be reached, the columns of
// the table. Nothing is sent, and nothing is written, in the database or here.
func OutlineLoad(ctx context.Context, j Job) (o Outline, err error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	o, err = p.outlineFiles(soft)
	return o, errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
}

func (p *push) outlineFiles(ctx context.Context) (Outline, error) {
	asked, err := p.configureNew(ctx, outlinedRun)
	if err != nil {
		return Outline{}, failed(Usage, err)
	}
	if _, err := p.leavesOut(asked); err != nil {
		return Outline{}, failed(Usage, err)
	}

	unread := p.target.Open(ctx)
	switch {
	case ctx.Err() != nil:
		return Outline{}, ctx.Err()
	case unread == nil:
		err = p.connected(ctx, asked)
	default:
		err = p.firstPlan(asked)
	}
	if err != nil {
		return Outline{}, err
	}

	first := asNew(&p.Config, p.preparation(loader.CreateNever))
	first.Layout = p.plan.Files.Example()
	return Outline{
		Target: p.target.Target, Plan: p.plan, Warnings: p.warnings,
		Statements: p.target.Driver.Explain(p.target.Target, first), Unread: unread,
	}, nil
}
