package push

import (
	"context"
	"errors"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/loader"
)

// Outline is what is known of a run before it begins. Of a push no server is asked: its flavour and limits are not in it.
type Outline struct {
	Target     loader.Target
	Plan       run.Plan
	Warnings   []string
	Statements []loader.Statement // in which the run's id is RUN
	// Unread is why the columns of a load's table could not be read; nil if they were.
	Unread error
}

// Check returns what is wrong with a push whatever its size, its server and this machine are.
func Check(c *config.Push, drivers *loader.Registry) error {
	_, err := configured(c, drivers)
	return err
}

func configured(c *config.Push, drivers *loader.Registry) (*push, error) {
	p := assemble(Job{Config: *c, Drivers: drivers}, host.LocalLink(context.Background()))
	return p, p.configureNew(context.Background(), "RUN")
}

// NewOutline plans a push without connecting, and leaves the configuration as it is. The error has every problem that
// can be found so.
func NewOutline(c *config.Push, drivers *loader.Registry) (Outline, error) {
	p, err := configured(c, drivers)
	if err != nil {
		return Outline{}, err
	}
	if err := p.replan(p.caps); err != nil {
		return Outline{}, err
	}
	return p.outline(p.beginning(loader.CreateMode(p.Config.Create))), nil
}

func (p *push) outline(begins loader.Preparation) Outline {
	return Outline{
		Target: p.target.Target, Plan: p.plan, Warnings: p.warnings,
		Statements: p.target.Driver.Explain(p.target.Target, begins),
	}
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
	if err := p.configureNew(ctx, "RUN"); err != nil {
		return Outline{}, failed(Usage, err)
	}
	if _, err := p.leavesOut(); err != nil {
		return Outline{}, failed(Usage, err)
	}

	unread := p.target.Open(ctx)
	if ctx.Err() != nil {
		return Outline{}, ctx.Err()
	}
	plan := p.connected
	if unread != nil {
		plan = func(context.Context) error { return p.replan(p.caps) }
	}
	if err := plan(ctx); err != nil {
		return Outline{}, err
	}

	begins := p.beginning(loader.CreateNever)
	begins.Layout = p.plan.Files.Example()
	o := p.outline(begins)
	o.Unread = unread
	return o, nil
}
