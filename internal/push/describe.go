package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Described is a table of a schema, or why it cannot be described.
type Described struct {
	Name string
	*loader.Description
	Err error
}

// DescribeSchema reads what the tables of a schema are like, and names the server. It changes nothing.
func DescribeSchema(ctx context.Context, j Job, schema string) (all []Described, server string, err error) {
	found, server, err := describing(ctx, j, func(ctx context.Context, can loader.Describer) ([]*loader.Description, error) {
		return can.DescribeAll(ctx, schema)
	})
	if err == nil && len(found) == 0 {
		err = failed(report.PreflightFailed, fmt.Errorf("schema %s has no table that this user sees", schema))
	}
	if err != nil {
		return nil, "", err
	}

	for _, d := range found {
		if !j.Config.Stats {
			all = append(all, Described{d.Table, d, nil})
			continue
		}
		one := j
		one.Config.Table = schema + "." + d.Table
		_, _, err := describing(ctx, one, func(ctx context.Context, can loader.Describer) (*loader.Description, error) {
			return d, can.Shapes(ctx, d)
		})
		lost := []loader.Class{loader.ClassConnection, loader.ClassShutdown}
		gone := err != nil && slices.Contains(lost, loader.VerdictOf(err).Class)
		if gone || OutcomeOf(err) == report.Interrupted || ctx.Err() != nil {
			return nil, "", err
		}
		all = append(all, Described{d.Table, d, err})
	}
	return all, server, nil
}

// describing asks what an open target can describe.
func describing[T any](
	ctx context.Context, j Job, ask func(context.Context, loader.Describer) (T, error),
) (answer T, server string, err error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	p.target.Driver, p.target.Target, err = p.Config.LoaderTarget(p.Drivers, config.Earlier{})
	if err == nil {
		_, err = p.target.Driver.Check(p.target.Target)
	}
	if err != nil {
		return answer, "", failed(Usage, err)
	}

	answer, err = openDescriber(soft, p, ask)
	if err == nil {
		s := p.target.Loader.Server()
		server = strings.TrimSpace(s.Product + " " + s.Version)
	}
	return answer, server, errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
}

func openDescriber[T any](
	ctx context.Context, p *push, ask func(context.Context, loader.Describer) (T, error),
) (none T, err error) {
	if err := p.waiting(ctx, func() error { return p.target.Open(ctx) }); err != nil {
		return none, err
	}
	if p.target.Can.Describer == nil {
		return none, fmt.Errorf("%s has no tables that could be described", p.target.Driver.Name())
	}
	return target.Ask(ctx, p.target, "table", func(ctx context.Context) (T, error) {
		return ask(ctx, p.target.Can.Describer)
	})
}
