package push

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// Describe reads what the table of --table is like, and names the server. It changes nothing.
func Describe(ctx context.Context, j Job) (d *loader.Description, server string, err error) {
	return describing(ctx, j, func(ctx context.Context, can loader.Describer) (*loader.Description, error) {
		return shapeOf(ctx, can, j.Config.Stats)
	})
}

func shapeOf(ctx context.Context, can loader.Describer, stats bool) (*loader.Description, error) {
	d, err := can.Describe(ctx)
	if err != nil || !stats {
		return d, err
	}
	return d, can.Shapes(ctx, d)
}

// DescribeSchema reads what the tables of a schema are like, and names the server. It changes nothing.
func DescribeSchema(ctx context.Context, j Job, schema string) (all []*loader.Description, server string, err error) {
	all, server, err = describing(ctx, j, func(ctx context.Context, can loader.Describer) ([]*loader.Description, error) {
		found, err := can.DescribeAll(ctx, schema)
		if err != nil || !j.Config.Stats || len(found) == 0 {
			return found, err
		}
		return found, can.Shapes(ctx, found...)
	})
	if err == nil && len(all) == 0 {
		err = failed(report.PreflightFailed, fmt.Errorf("schema %s has no table that this user sees", schema))
	}
	return all, server, err
}

// describing asks what an open target can describe.
func describing[T any](
	ctx context.Context, j Job, ask func(context.Context, loader.Describer) (T, error),
) (answer T, server string, err error) {
	err = withoutLoad(ctx, j, func(p *push, ctx context.Context) (err error) {
		t := p.target
		if t.Driver, t.Target, err = p.Config.LoaderTarget(p.Drivers, config.Earlier{}); err != nil {
			return failed(Usage, err)
		}
		if _, err := t.Driver.Check(t.Target); err != nil {
			return failed(Usage, err)
		}
		if err := p.waiting(ctx, func() error { return t.Open(ctx) }); err != nil {
			return err
		}
		if t.Can.Describer == nil {
			return fmt.Errorf("%s has no tables that could be described", t.Driver.Name())
		}

		s := t.Loader.Server()
		server = strings.TrimSpace(s.Product + " " + s.Version)
		answer, err = target.Ask(ctx, t, "table", func(ctx context.Context) (T, error) {
			return ask(ctx, t.Can.Describer)
		})
		return err
	})
	return answer, server, err
}
