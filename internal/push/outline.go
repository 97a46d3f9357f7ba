package push

import (
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/pkg/loader"
)

// Outline is the plan of a push in numbers, as far as it can be known without a server, with what it warns of. It refuses
// what Check does.
func Outline(c *config.Push, drivers *loader.Registry) (plan.Plan, []string, error) {
	p, err := sketch(c, drivers)
	if err != nil {
		return plan.Plan{}, nil, err
	}
	return p.plan, p.warnings, nil
}
