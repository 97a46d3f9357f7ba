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
	return Outline{
		Target: p.target.Target, Plan: p.plan, Warnings: p.warnings,
		Statements: p.target.Driver.Explain(p.target.Target, p.beginning(loader.CreateMode(c.Create))),
	}, nil
}
