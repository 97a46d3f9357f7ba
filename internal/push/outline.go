package push

import (
	"context"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/loader"
)

// Outline is what is known of a push without a server: flavour and limits of the server are not in it.
type Outline struct {
	Target     loader.Target
	Plan       run.Plan
	Warnings   []string
	Statements []loader.Statement // in which the run's id is RUN
}

// NewOutline plans a push without connecting, and leaves the configuration as it is. The error has every problem that
// can be found so.
func NewOutline(c *config.Push, drivers *loader.Registry) (Outline, error) {
	p := assemble(Job{Config: *c, Drivers: drivers}, host.LocalLink(context.Background()))
	if err := p.configureNew(context.Background(), "RUN"); err != nil {
		return Outline{}, err
	}
	if err := p.replan(p.caps); err != nil {
		return Outline{}, err
	}
	return Outline{
		Target: p.target.Target, Plan: p.plan, Warnings: p.warnings,
		Statements: p.target.Driver.Explain(p.target.Target, p.beginning(loader.CreateMode(c.Create))),
	}, nil
}
