package push

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// Describe reads what the table of --table is like, and names the server. It changes nothing.
func Describe(ctx context.Context, j Job) (d *loader.Description, server string, err error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	if _, err := p.target.Configure(&p.Config, p.Drivers, config.Earlier{}); err != nil {
		return nil, "", failed(Usage, err)
	}

	d, err = p.describeTable(soft)
	if err == nil {
		s := p.target.Loader.Server()
		server = strings.TrimSpace(s.Product + " " + s.Version)
	}
	return d, server, errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
}

func (p *push) describeTable(ctx context.Context) (*loader.Description, error) {
	if err := p.waiting(ctx, func() error { return p.target.Open(ctx) }); err != nil {
		return nil, err
	}
	if p.target.Can.Describer == nil {
		return nil, fmt.Errorf("%s has no tables that could be described", p.target.Driver.Name())
	}
	return target.Ask(ctx, p.target, "table", func(ctx context.Context) (*loader.Description, error) {
		return p.target.Can.Describer.Describe(ctx)
	})
}
